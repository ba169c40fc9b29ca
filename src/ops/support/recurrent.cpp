#include "ops/support/recurrent.h"

#include <algorithm>

#include "ops/support/cell_functions.h"

namespace pyc::ops {
namespace {

constexpr size_t kRecurrentRequired = 3;
// Each step becomes a few nodes.
constexpr int64_t kMaxRecurrentSteps = 4096;

using Floats = std::vector<double>;

const Floats& recurrent_floats(const ir::Attrs& attrs, std::string_view name) {
  return std::get<Floats>(attrs.find(name)->second);
}

int64_t directions_of(const InferArgs& args) {
  return args.attr_string("direction") == "bidirectional" ? 2 : 1;
}

size_t function_count(std::string_view names) {
  return 1 + static_cast<size_t>(std::count(names.begin(), names.end(), ','));
}

// The functions of all directions, one after the other.
Result<std::vector<ActivationSpec>> functions_of(const InferArgs& args, const RecurrentKind& kind) {
  std::string names = args.attr_string("activations");
  const auto directions = static_cast<size_t>(directions_of(args));
  if (names.empty()) {
    for (size_t d = 0; d < directions; ++d) {
      names += (d == 0 ? "" : ",") + std::string(kind.activations);
    }
  }
  PYC_ASSIGN(auto functions, parse_activations(names, recurrent_floats(args.attrs, "alphas"),
                                               recurrent_floats(args.attrs, "betas")));
  const size_t expected = directions * function_count(kind.activations);
  if (functions.size() != expected) {
    return refuse(Code::kInvalidArgument, "expected ", static_cast<int64_t>(expected),
                  " activations, found ", static_cast<int64_t>(functions.size()));
  }
  return functions;
}

// Sizes, with the batch in its place.
struct RecurrentSizes {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t directions = 0;
};

RecurrentSizes recurrent_sizes(const InferArgs& args, const TensorType& x, const TensorType& r) {
  const bool batch_first = args.attr_int("layout") == 1;
  return {x.shape[batch_first ? 1 : 0], x.shape[batch_first ? 0 : 1], x.shape[2], r.shape[2],
          directions_of(args)};
}

Status check_recurrent_attrs(const InferArgs& args) {
  const std::string& direction = args.attr_string("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return refuse(Code::kInvalidArgument,
                  "direction must be \"forward\", \"reverse\" or \"bidirectional\", found \"",
                  direction, "\"");
  }
  const int64_t layout = args.attr_int("layout");
  if (layout != 0 && layout != 1) {
    return refuse(Code::kInvalidArgument, "layout must be 0 or 1, found ", layout);
  }
  if (args.attr_float("clip") < 0.0) {
    return refuse(Code::kInvalidArgument, "clip must not be negative");
  }
  return {};
}

Status check_shape(std::string_view name, const TensorType& found, const Shape& expected) {
  if (found.shape == expected) return {};
  return refuse(Code::kShapeMismatch, "", name, " must have shape ", expected, ", found ", found);
}

Shape state_shape(const RecurrentSizes& s, bool batch_first) {
  if (batch_first) return {s.batch, s.directions, s.hidden};
  return {s.directions, s.batch, s.hidden};
}

Status check_optional(const InferArgs& args, const RecurrentKind& kind, const RecurrentSizes& s) {
  for (std::string_view name : kind.operands) {
    const int at = operand_at(args.attrs, kRecurrentRequired, name);
    if (at < 0) continue;
    const TensorType& found = args.inputs[static_cast<size_t>(at)];
    if (name == "sequence_lens") {
      PYC_TRY(require_dtype(name, found, kIndices));
      PYC_TRY(check_shape(name, found, {s.batch}));
      continue;
    }
    PYC_TRY(require_same_dtype(args.inputs[0], found));
    if (name == "b") {
      PYC_TRY(check_shape(name, found, {s.directions, 2 * kind.gates * s.hidden}));
    } else if (name == "p") {
      PYC_TRY(check_shape(name, found, {s.directions, 3 * s.hidden}));
    } else {
      PYC_TRY(check_shape(name, found, state_shape(s, args.attr_int("layout") == 1)));
    }
  }
  return {};
}

// Unrolls one node.
class Unroller {
 public:
  Unroller(Compose& c, const ir::Node& node, const RecurrentKind& kind, const RecurrentSteps& steps,
           const std::vector<ActivationSpec>& functions)
      : c_(c),
        node_(node),
        kind_(kind),
        steps_(steps),
        functions_(functions),
        s_(recurrent_sizes(c.attrs(), c.input_type(0), c.input_type(2))),
        wide_(compute_dtype(c.input_type(0).dtype)) {}

  std::vector<ValueId> build() {
    x_ = batch_first() ? c_.transpose(c_.wide_input(0), {1, 0, 2}) : c_.wide_input(0);
    std::vector<std::vector<ValueId>> results(1 + kind_.states);
    for (int64_t d = 0; d < s_.directions; ++d) {
      const std::vector<ValueId> one = run_direction(d);
      for (size_t i = 0; i < one.size(); ++i) results[i].push_back(one[i]);
    }
    std::vector<ValueId> outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      ValueId all = c_.concat(results[i], i == 0 ? 1 : 0);
      if (batch_first()) all = c_.transpose(all, i == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2});
      outputs.push_back(c_.cast(all, c_.input_type(0).dtype));
    }
    return outputs;
  }

 private:
  bool batch_first() const { return c_.attrs().attr_int("layout") == 1; }

  // Row d of the optional input, in the shape given; kNoId when it is left out.
  ValueId optional_row(std::string_view name, int64_t d, Shape shape) {
    const int at = operand_at(node_.attrs, kRecurrentRequired, name);
    if (at < 0) return ir::kNoId;
    ValueId x = c_.wide_input(static_cast<size_t>(at));
    if (batch_first() && c_.type(x).rank() == 3) x = c_.transpose(x, {1, 0, 2});
    return c_.reshape(c_.slice(x, 0, d, d + 1), std::move(shape));
  }

  ValueId weights(size_t i, int64_t d) {
    const Shape shape = c_.input_type(i).shape;
    const ValueId row = c_.reshape(c_.slice(c_.wide_input(i), 0, d, d + 1), {shape[1], shape[2]});
    return c_.transpose(row, {1, 0});
  }

  ValueId zeros(Shape shape) { return c_.expand(c_.constant(wide_, {}, {0.0}), std::move(shape)); }

  Direction direction(int64_t d) {
    Direction result{};
    const size_t count = function_count(kind_.activations);
    const double clip = c_.attrs().attr_float("clip");
    for (size_t i = 0; i < count; ++i) {
      const ActivationSpec& f = functions_[static_cast<size_t>(d) * count + i];
      result.functions.emplace_back([this, f, clip](ValueId x) {
        if (clip > 0.0) {
          x = c_.op("min", {c_.op("max", {x, c_.scalar_like(x, -clip)}), c_.scalar_like(x, clip)});
        }
        return activate(c_, f, x);
      });
    }
    const int64_t width = kind_.gates * s_.hidden;
    result.r_transposed = weights(2, d);
    const ValueId bias = optional_row("b", d, {2 * width});
    result.w_bias = bias == ir::kNoId ? bias : c_.slice(bias, 0, 0, width);
    result.r_bias = bias == ir::kNoId ? bias : c_.slice(bias, 0, width, 2 * width);
    result.peepholes = optional_row("p", d, {3 * s_.hidden});
    result.hidden = s_.hidden;
    return result;
  }

  // Whether each sequence of the batch reaches step t: [B,1].
  ValueId alive(int64_t t) {
    const int at = operand_at(node_.attrs, kRecurrentRequired, "sequence_lens");
    if (at < 0) return ir::kNoId;
    const ValueId lengths = c_.cast(c_.input(static_cast<size_t>(at)), DType::kI64);
    const ValueId step = c_.scalar_like(lengths, static_cast<double>(t));
    return c_.reshape(c_.op("less", {step, lengths}), {s_.batch, 1});
  }

  // y [T,1,B,H] and the last states [1,B,H].
  std::vector<ValueId> run_direction(int64_t d) {
    const Direction one = direction(d);
    ValueId all = c_.op("matmul", {x_, weights(1, d)});
    const ValueId bias = steps_.bias(one);
    if (bias != ir::kNoId) all = c_.add(all, bias);
    std::vector<ValueId> states;
    for (std::string_view name : {"initial_h", "initial_c"}) {
      if (states.size() == kind_.states) break;
      const Shape shape{s_.batch, s_.hidden};
      const ValueId given = optional_row(name, d, shape);
      states.push_back(given != ir::kNoId ? given : zeros(shape));
    }
    const bool backwards = c_.attrs().attr_string("direction") == "reverse" || d == 1;
    std::vector<ValueId> rows(static_cast<size_t>(s_.steps));
    for (int64_t i = 0; i < s_.steps; ++i) {
      const int64_t t = backwards ? s_.steps - 1 - i : i;
      const ValueId x = c_.reshape(c_.slice(all, 0, t, t + 1), {s_.batch, kind_.gates * s_.hidden});
      std::vector<ValueId> next = steps_.step(one, x, states);
      ValueId y = next[0];
      const ValueId lives = alive(t);
      if (lives != ir::kNoId) {
        y = c_.op("where", {lives, y, c_.scalar_like(y, 0.0)});
        for (size_t k = 0; k < next.size(); ++k)
          next[k] = c_.op("where", {lives, next[k], states[k]});
      }
      states = std::move(next);
      rows[static_cast<size_t>(t)] = c_.reshape(y, {1, 1, s_.batch, s_.hidden});
    }
    std::vector<ValueId> results{rows.empty() ? zeros({0, 1, s_.batch, s_.hidden})
                                              : c_.concat(rows, 0)};
    for (ValueId state : states) results.push_back(c_.reshape(state, {1, s_.batch, s_.hidden}));
    return results;
  }

  Compose& c_;
  const ir::Node& node_;
  const RecurrentKind& kind_;
  const RecurrentSteps& steps_;
  const std::vector<ActivationSpec>& functions_;
  RecurrentSizes s_;
  DType wide_;
  ValueId x_ = ir::kNoId;
};

}  // namespace

std::vector<ir::AttrDef> recurrent_attrs() {
  return {with_attr(),
          optional("direction", std::string("forward")),
          optional("activations", std::string()),
          optional("alphas", Floats{}),
          optional("betas", Floats{}),
          optional("clip", 0.0),
          optional("layout", int64_t{0})};
}

Types infer_recurrent(const InferArgs& args, const RecurrentKind& kind) {
  PYC_TRY(require_operands(args, kRecurrentRequired, kind.operands));
  PYC_TRY(check_recurrent_attrs(args));
  const auto functions = functions_of(args, kind);
  if (!functions.ok()) return functions.status();
  constexpr std::string_view kNames[] = {"x", "w", "r"};
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kFloats));
  for (size_t i = 0; i < kRecurrentRequired; ++i) {
    PYC_TRY(require_rank(kNames[i], args.inputs[i], 3));
    PYC_TRY(require_same_dtype(x, args.inputs[i]));
  }
  const RecurrentSizes s = recurrent_sizes(args, x, args.inputs[2]);
  const int64_t width = kind.gates * s.hidden;
  PYC_TRY(check_shape("r", args.inputs[2], {s.directions, width, s.hidden}));
  PYC_TRY(check_shape("w", args.inputs[1], {s.directions, width, s.input}));
  PYC_TRY(check_optional(args, kind, s));
  if (s.steps > kMaxRecurrentSteps) {
    return refuse(Code::kUnsupported, "sequences longer than ", kMaxRecurrentSteps,
                  " are not unrolled, found ", x);
  }
  const bool batch_first = args.attr_int("layout") == 1;
  Shape y{s.steps, s.directions, s.batch, s.hidden};
  if (batch_first) y = {s.batch, s.steps, s.directions, s.hidden};
  std::vector<TensorType> types{{x.dtype, y}};
  for (size_t i = 0; i < kind.states; ++i) types.push_back({x.dtype, state_shape(s, batch_first)});
  return types;
}

ValueId Direction::part(Compose& c, ValueId gates, int64_t i) const {
  return c.slice(gates, -1, i * hidden, (i + 1) * hidden);
}

ValueId joined_bias(Compose& c, const Direction& d) {
  return d.w_bias == ir::kNoId ? ir::kNoId : c.add(d.w_bias, d.r_bias);
}

Result<std::vector<ValueId>> unroll(Compose& c, const ir::Node& node, const RecurrentKind& kind,
                                    const RecurrentSteps& steps) {
  PYC_ASSIGN(const auto functions, functions_of(c.attrs(), kind));
  return c.outputs(Unroller(c, node, kind, steps, functions).build());
}

}  // namespace pyc::ops
