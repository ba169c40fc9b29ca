#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

int64_t product(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

Status shape(CloseContext& c) {
  const Shape s = c.shape(c.input(0));
  const auto rank = static_cast<int64_t>(s.size());
  const auto clamp = [&](int64_t i) { return std::clamp(i < 0 ? i + rank : i, int64_t{0}, rank); };
  const int64_t start = clamp(c.attr_int("start", 0));
  const int64_t end = std::max(start, clamp(c.attr_int("end", rank)));
  return c.give(c.int_vector({s.begin() + start, s.begin() + end}));
}

Status size(CloseContext& c) {
  return c.give(c.constant(DynValue::of_int(product(c.shape(c.input(0))))));
}

Status reshape(CloseContext& c) {
  const ValueId x = c.input(0);
  const Shape from = c.shape(x);
  Ints to = c.version() < 5 ? c.attr_ints("shape") : c.ints(c.input(1));
  const bool allow_zero = c.attr_int("allowzero", 0) != 0;
  int64_t known = 1;
  int64_t free = -1;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && !allow_zero && i < from.size()) to[i] = from[i];
    if (to[i] == -1) {
      if (free >= 0) return c.refused(Code::kInvalidArgument, "two dims of the shape are -1");
      free = static_cast<int64_t>(i);
    } else if (to[i] < 0 || __builtin_mul_overflow(known, to[i], &known)) {
      return c.refused(Code::kInvalidArgument,
                       fmt::format("{} is no shape", ir::shape_to_string(to)));
    }
  }
  if (free >= 0) {
    const int64_t all = product(from);
    if (known == 0 ? all != 0 : all % known != 0) {
      return c.refused(Code::kShapeMismatch,
                       fmt::format("{} does not divide into {}", c.type(x).to_string(),
                                   ir::shape_to_string(to)));
    }
    to[static_cast<size_t>(free)] = known == 0 ? 0 : all / known;
  }
  return c.give(c.reshape(x, to));
}

Status squeeze(CloseContext& c) {
  const ValueId x = c.input(0);
  const Shape from = c.shape(x);
  Ints axes = axes_of(c, 13, 1);
  for (int64_t& a : axes) a = axis_of(c, a, c.rank(x));
  Shape to;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (named && from[i] != 1) {
      return c.refused(Code::kShapeMismatch,
                       fmt::format("dim {} of {} is not 1", i, c.type(x).to_string()));
    }
    if (axes.empty() ? from[i] != 1 : !named) to.push_back(from[i]);
  }
  return c.give(c.reshape(x, to));
}

Status unsqueeze(CloseContext& c) {
  const ValueId x = c.input(0);
  Ints axes = axes_of(c, 13, 1);
  const int64_t rank = c.rank(x) + static_cast<int64_t>(axes.size());
  if (rank > ir::kMaxRank) {
    return c.refused(Code::kInvalidArgument, fmt::format("rank {} is too high", rank));
  }
  for (int64_t& a : axes) a = axis_of(c, a, rank);
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
    return c.refused(Code::kInvalidArgument, "an axis is named twice");
  }
  Shape to = c.shape(x);
  for (const int64_t a : axes)
    to.insert(to.begin() + std::min<int64_t>(a, static_cast<int64_t>(to.size())), 1);
  return c.give(c.reshape(x, to));
}

// Before opset 4 the axis could be left out.
Status concat(CloseContext& c) {
  return c.give(c.op("concat", c.all_inputs(), {{"axis", c.attr_int("axis", 1)}}));
}

constexpr int64_t kMaxSplitParts = 1 << 16;

Status split(CloseContext& c) {
  const ValueId x = c.input(0);
  const int64_t axis = axis_of(c, c.attr_int("axis", 0), c.rank(x));
  Ints sizes = c.version() < 13 ? c.attr_ints("split") : c.has(1) ? c.ints(c.input(1)) : Ints{};
  if (!c.ok()) return c.status();
  const int64_t whole = c.shape(x)[static_cast<size_t>(axis)];
  if (sizes.empty()) {
    // Equal parts, the last one smaller when they do not come out even.
    const int64_t parts = c.attr_int("num_outputs", static_cast<int64_t>(c.outputs()));
    if (parts < 1 || parts > kMaxSplitParts) {
      return c.refused(Code::kInvalidArgument, fmt::format("num_outputs is {}", parts));
    }
    const int64_t part = (whole + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::clamp(whole - i * part, int64_t{0}, part));
    }
  }
  if (c.outputs() > sizes.size()) {
    return c.refused(Code::kInvalidArgument,
                     fmt::format("{} parts cannot become {} outputs", sizes.size(), c.outputs()));
  }
  const ValueId first = c.op("split", {x}, {{"axis", axis}, {"sizes", sizes}});
  for (size_t i = 0; i < c.outputs() && c.ok(); ++i) c.set(i, c.result(first, i));
  return c.status();
}

Status slice(CloseContext& c) {
  const ValueId x = c.input(0);
  const bool attrs = c.version() < 10;
  const Ints starts = attrs ? c.attr_ints("starts") : c.ints(c.input(1));
  const Ints ends = attrs ? c.attr_ints("ends") : c.ints(c.input(2));
  Ints axes = attrs ? c.attr_ints("axes") : c.has(3) ? c.ints(c.input(3)) : Ints{};
  const Ints steps = !attrs && c.has(4) ? c.ints(c.input(4)) : Ints(starts.size(), 1);
  for (int64_t& a : axes) a = axis_of(c, a, c.rank(x));
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  return c.give(
      c.op("slice", {x}, {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}}));
}

// The name ScatterElements had before opset 11.
Status old_scatter(CloseContext& c) {
  return c.give(c.op("scatter_elements", c.all_inputs(),
                     {{"axis", axis_of(c, c.attr_int("axis", 0), c.rank(c.input(0)))},
                      {"reduction", c.attr_string("reduction", "none")}}));
}

Status expand(CloseContext& c) {
  const ValueId x = c.input(0);
  const Ints wanted = c.ints(c.input(1));
  auto to = ir::broadcast_shapes(c.shape(x), wanted);
  if (!to.ok()) return c.refused(to.status().code(), to.status().message());
  if (c.ok() && *to == c.shape(x)) return c.give(x);
  return c.give(c.op("expand", {x}, {{"shape", *to}}));
}

Status tile(CloseContext& c) {
  const ValueId x = c.input(0);
  if (c.version() < 6) {  // inputs tiles and axis
    Ints repeats(static_cast<size_t>(c.rank(x)), 1);
    const int64_t axis = axis_of(c, c.int_value(c.input(2)), c.rank(x));
    if (c.ok()) repeats[static_cast<size_t>(axis)] = c.int_value(c.input(1));
    return c.give(c.op("tile", {x}, {{"repeats", repeats}}));
  }
  return c.give(c.op("tile", {x}, {{"repeats", c.ints(c.input(1))}}));
}

Status pad(CloseContext& c) {
  const ValueId x = c.input(0);
  const auto rank = static_cast<size_t>(c.rank(x));
  Ints pads = c.version() < 2    ? c.attr_ints("paddings")
              : c.version() < 11 ? c.attr_ints("pads")
                                 : c.ints(c.input(1));
  double value = c.attr_float("value", 0.0);
  if (c.version() >= 11 && c.has(2)) value = c.float_value(c.input(2));
  if (c.version() >= 18 && c.has(3)) {
    const Ints axes = c.ints(c.input(3));
    if (c.ok() && pads.size() != 2 * axes.size()) {
      return c.refused(Code::kSizeMismatch, "pads needs two numbers for each of axes");
    }
    Ints full(2 * rank, 0);
    for (size_t i = 0; i < axes.size() && c.ok(); ++i) {
      const auto a = static_cast<size_t>(axis_of(c, axes[i], c.rank(x)));
      if (!c.ok()) return c.status();
      full[a] = pads[i];
      full[rank + a] = pads[axes.size() + i];
    }
    pads = full;
  }
  return c.give(c.op(
      "pad", {x}, {{"pads", pads}, {"mode", c.attr_string("mode", "constant")}, {"value", value}}));
}

Status constant_of_shape(CloseContext& c) {
  const Shape to = c.ints(c.input(0));
  const DynValue* value = c.attr_tensor("value");
  if (value == nullptr) return c.give(c.splat({DType::kF32, to}, 0.0));
  const ValueId one = c.reshape(c.constant(*value), {});
  return c.give(to.empty() ? one : c.op("expand", {one}, {{"shape", to}}));
}

Status range(CloseContext& c) {
  const DType t = c.dtype(c.input(0));
  const double start = c.float_value(c.input(0));
  const double limit = c.float_value(c.input(1));
  const double step = c.float_value(c.input(2));
  if (!c.ok()) return c.status();
  if (step == 0) return c.refused(Code::kInvalidArgument, "the step of a range is not 0");
  const int64_t count = int_of(c, std::ceil((limit - start) / step));
  return c.give(c.op("iota", {},
                     {{"dtype", t},
                      {"shape", Ints{std::max<int64_t>(count, 0)}},
                      {"start", start},
                      {"step", step}}));
}

Status eye_like(CloseContext& c) {
  const TensorType x = c.type(c.input(0));
  if (c.ok() && x.rank() != 2) {
    return c.refused(Code::kRankMismatch, "expected a matrix, found " + x.to_string());
  }
  if (!c.ok()) return c.status();
  return c.give(c.op("eye", {},
                     {{"rows", x.shape[0]},
                      {"cols", x.shape[1]},
                      {"k", c.attr_int("k", 0)},
                      {"dtype", dtype_attr(c, "dtype", x.dtype)}}));
}

Status one_hot(CloseContext& c) {
  const int64_t depth = c.int_value(c.input(1));
  return c.give(c.op("one_hot", {c.cast(c.input(0), DType::kI64), c.input(2)},
                     {{"depth", depth}, {"axis", c.attr_int("axis", -1)}}));
}

Status trilu(CloseContext& c) {
  const int64_t k = c.has(1) ? c.int_value(c.input(1)) : 0;
  return c.give(c.op("tri", {c.input(0)}, {{"upper", c.attr_int("upper", 1) != 0}, {"k", k}}));
}

Status center_crop_pad(CloseContext& c) {
  ValueId x = c.input(0);
  const Ints to = c.ints(c.input(1));
  Ints axes = c.attr_ints("axes");
  const int64_t rank = c.rank(x);
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (c.ok() && axes.size() != to.size()) {
    return c.refused(Code::kSizeMismatch, "the shape needs one number for each of axes");
  }
  Ints pads(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < axes.size() && c.ok(); ++i) {
    const auto a = static_cast<size_t>(axis_of(c, axes[i], rank));
    if (c.ok() && (to[i] < 0 || to[i] > ir::kMaxElements)) {
      c.refuse(Code::kInvalidArgument, fmt::format("a dim of {} is asked for", to[i]));
    }
    if (!c.ok()) return c.status();
    const int64_t more = to[i] - c.shape(x)[a];
    // Both halves round down at the front, for cropping and for padding alike.
    const int64_t front = more >= 0 ? more / 2 : -((-more) / 2);
    pads[a] = front;
    pads[a + static_cast<size_t>(rank)] = more - front;
  }
  return c.give(c.op("pad", {x}, {{"pads", pads}}));
}

constexpr Rule kShapeRules[] = {
    {"CenterCropPad", center_crop_pad},
    {"Concat", concat},
    {"ConstantOfShape", constant_of_shape},
    {"Expand", expand},
    {"EyeLike", eye_like},
    {"OneHot", one_hot},
    {"Pad", pad},
    {"Range", range},
    {"Reshape", reshape},
    {"Scatter", old_scatter},
    {"Shape", shape},
    {"Size", size},
    {"Slice", slice},
    {"Split", split},
    {"Squeeze", squeeze},
    {"Tile", tile},
    {"Trilu", trilu},
    {"Unsqueeze", unsqueeze},
};

}  // namespace

Rules shape_rules() { return kShapeRules; }

}  // namespace pyc::onnx
