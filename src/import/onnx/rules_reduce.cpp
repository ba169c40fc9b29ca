#include <fmt/format.h>

#include <numeric>

#include "import/onnx/rules.h"

namespace pyc::onnx {

int64_t axis_of(CloseContext& c, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    c.refuse(Code::kInvalidArgument,
             fmt::format("axis {} is out of range for rank {}", axis, rank));
    return 0;
  }
  return axis < 0 ? axis + rank : axis;
}

int64_t int_of(CloseContext& c, double value) {
  constexpr double kLimit = 4611686018427387904.0;  // 2^62
  if (value > -kLimit && value < kLimit) return static_cast<int64_t>(value);
  c.refuse(Code::kInvalidArgument, fmt::format("{} is no integer that can be used here", value));
  return 0;
}

Ints axes_of(CloseContext& c, int version, size_t input) {
  if (c.version() < version) return c.attr_ints("axes");
  return c.has(input) ? c.ints(c.input(input)) : Ints{};
}

namespace {

template <Name Op>
Status reduce(CloseContext& c) {
  const ValueId x = c.input(0);
  const bool sum = std::string_view(Op.text) == "reduce_sum";
  const Ints axes = axes_of(c, sum ? 13 : 18, 1);
  if (axes.empty() && c.attr_int("noop_with_empty_axes", 0) != 0) {
    // Nothing is joined, but what each element goes through on its way stays.
    const ValueId lone = c.reshape(x, [&] {
      Shape s = c.shape(x);
      s.push_back(1);
      return s;
    }());
    return c.give(c.op(Op.text, {lone}, {{"axes", Ints{-1}}, {"keepdims", false}}));
  }
  return c.give(c.op(Op.text, {x}, {{"axes", axes}, {"keepdims", c.attr_int("keepdims", 1) != 0}}));
}

// Before opset 13 the softmax family worked on the input as a matrix, split at `axis`.
template <Name Op>
Status softmax(CloseContext& c) {
  const ValueId x = c.input(0);
  const Shape shape = c.shape(x);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = c.attr_int("axis", 1);
  const int64_t at = axis == rank ? rank : axis_of(c, axis, rank);
  const auto product = [](auto begin, auto end) {
    return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
  };
  const ValueId matrix = c.reshape(
      x, {product(shape.begin(), shape.begin() + at), product(shape.begin() + at, shape.end())});
  return c.give(c.reshape(c.op(Op.text, {matrix}, {{"axis", int64_t{1}}}), shape));
}

template <Name Op>
Status cumulate(CloseContext& c) {
  const ValueId x = c.input(0);
  const int64_t axis = c.int_value(c.input(1));
  return c.give(c.op(Op.text, {x},
                     {{"axis", axis_of(c, axis, c.rank(x))},
                      {"exclusive", c.attr_int("exclusive", 0) != 0},
                      {"reverse", c.attr_int("reverse", 0) != 0}}));
}

Status top_k(CloseContext& c) {
  const ValueId x = c.input(0);
  const int64_t k = c.version() < 10 ? c.attr_int("k") : c.int_value(c.input(1));
  const ValueId values = c.op("top_k", {x},
                              {{"k", k},
                               {"axis", axis_of(c, c.attr_int("axis", -1), c.rank(x))},
                               {"largest", c.attr_int("largest", 1) != 0}});
  c.set(0, values);
  c.set(1, c.ok() ? c.result(values, 1) : values);
  return c.status();
}

constexpr Rule kReduceRules[] = {
    {"CumProd", cumulate<"cumprod">},
    {"CumSum", cumulate<"cumsum">},
    {"Hardmax", softmax<"hardmax">},
    {"LogSoftmax", softmax<"log_softmax">},
    {"ReduceL1", reduce<"reduce_l1">},
    {"ReduceL2", reduce<"reduce_l2">},
    {"ReduceLogSum", reduce<"reduce_log_sum">},
    {"ReduceLogSumExp", reduce<"reduce_log_sum_exp">},
    {"ReduceMax", reduce<"reduce_max">},
    {"ReduceMean", reduce<"reduce_mean">},
    {"ReduceMin", reduce<"reduce_min">},
    {"ReduceProd", reduce<"reduce_prod">},
    {"ReduceSum", reduce<"reduce_sum">},
    {"ReduceSumSquare", reduce<"reduce_sum_square">},
    {"Softmax", softmax<"softmax">},
    {"TopK", top_k},
};

}  // namespace

Rules reduce_rules() { return kReduceRules; }

}  // namespace pyc::onnx
