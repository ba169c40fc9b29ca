#include <algorithm>
#include <numeric>

#include "ops/support/index.h"
#include "ops/support/infer.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

struct Range {
  int64_t start = 0;
  int64_t step = 1;
  int64_t length = 0;
};

// Numpy's start:end:step on a dim: negative ends count from the back, then both are clamped.
Range resolve(int64_t start, int64_t end, int64_t step, int64_t dim) {
  const int64_t lowest = step > 0 ? 0 : -1;
  const int64_t highest = step > 0 ? dim : dim - 1;
  const auto clamped = [&](int64_t i) { return std::clamp(i < 0 ? i + dim : i, lowest, highest); };
  start = clamped(start);
  end = clamped(end);
  // No longer step than the dim makes a difference, and the arithmetic below cannot overflow.
  step = std::clamp(step, -ir::kMaxElements, ir::kMaxElements);
  const int64_t span = step > 0 ? end - start : start - end;
  const int64_t stride = step > 0 ? step : -step;
  return {start, step, std::max<int64_t>(0, (span + stride - 1) / stride)};
}

// One range per dim. Requires checked attributes.
std::vector<Range> ranges(const Shape& shape, const Ints& starts, const Ints& ends, Ints axes,
                          const Ints& steps) {
  std::vector<Range> result;
  for (int64_t dim : shape) result.push_back({0, 1, dim});
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = from_front(axes[i], static_cast<int64_t>(shape.size()));
    const int64_t dim = shape[static_cast<size_t>(axis)];
    result[static_cast<size_t>(axis)] =
        resolve(starts[i], ends[i], steps.empty() ? 1 : steps[i], dim);
  }
  return result;
}

Types infer_slice(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& starts = args.attr_ints("starts");
  const Ints& ends = args.attr_ints("ends");
  const Ints& axes = args.attr_ints("axes");
  const Ints& steps = args.attr_ints("steps");
  const auto differs = [&](const Ints& v) { return !v.empty() && v.size() != starts.size(); };
  if (starts.size() != ends.size() || differs(axes) || differs(steps)) {
    return refuse(Code::kInvalidArgument, "starts ", starts, ", ends ", ends, ", axes ", axes,
                  " and steps ", steps, " differ in length");
  }
  if (std::find(steps.begin(), steps.end(), 0) != steps.end()) {
    return refuse(Code::kInvalidArgument, "steps must not be 0, found ", steps);
  }
  if (axes.empty() && starts.size() > x.shape.size()) {
    return refuse(Code::kInvalidArgument, "starts ", starts, " are more than the dims of ", x);
  }
  PYC_TRY(require_axes(axes, x));
  Shape shape;
  for (const Range& r : ranges(x.shape, starts, ends, axes, steps)) shape.push_back(r.length);
  return one(x.dtype, std::move(shape));
}

Expr lower_slice(LowerContext& context, int, std::span<const Expr> index) {
  const auto all =
      ranges(context.input_type(0).shape, context.attr_ints("starts"), context.attr_ints("ends"),
             context.attr_ints("axes"), context.attr_ints("steps"));
  Index at;
  for (size_t i = 0; i < all.size(); ++i) {
    at.push_back(index[i] * context.index(all[i].step) + context.index(all[i].start));
  }
  return context.input(0, at);
}

ValueId simplify_slice(Patch& patch, const NodeView& node) {
  const Ints& steps = std::get<Ints>(node.attrs().at("steps"));
  const bool forward = std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s > 0; });
  return forward ? patch.by("slice_all", input_if_same(node, 0)) : kNoId;
}

}  // namespace

const ir::OpDef& op_slice() {
  static const ir::OpDef def{
      .name = "slice",
      .summary = "Numpy's start:end:step on each of axes (none given: the first ones).",
      .attrs = {required("starts", ir::AttrKind::kInts), required("ends", ir::AttrKind::kInts),
                optional("axes", Ints{}), optional("steps", Ints{})},
      .infer = infer_slice,
      .lower = lower_slice,
      .traits = {.moves_data = true},
      .simplify = simplify_slice,
  };
  return def;
}

}  // namespace pyc::ops
