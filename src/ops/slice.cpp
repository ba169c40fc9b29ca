#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <numeric>

#include "ops/draw.h"
#include "ops/support/backward.h"
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

// Dim d with each element followed by stride - 1 zeros.
ValueId with_gaps(Backward& b, ValueId v, size_t d, int64_t stride) {
  if (stride == 1) return v;
  Shape shape = b.type(v).shape;
  const int64_t outer =
      TensorType{DType::kU8, {shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(d) + 1}}
          .elements();
  const int64_t inner = TensorType{
      DType::kU8,
      {shape.begin() + static_cast<std::ptrdiff_t>(d) + 1,
       shape.end()}}.elements();
  const ValueId apart = b.reshape(v, {outer, 1, inner});
  const ValueId padded = b.op("pad", {apart}, {{"pads", Ints{0, 0, 0, 0, stride - 1, 0}}});
  shape[d] *= stride;
  return b.reshape(padded, shape);
}

ValueId gradient_slice(Backward& b) {
  // Zeros between the elements of each dim and around them.
  const ir::InferArgs attrs = b.attrs();
  const Shape shape = b.input_type(0).shape;
  const std::vector<Range> all = ranges(shape, attrs.attr_ints("starts"), attrs.attr_ints("ends"),
                                        attrs.attr_ints("axes"), attrs.attr_ints("steps"));
  ValueId g = b.g();
  Ints pads(2 * shape.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto [start, step, length] = all[d];
    if (step < 0) g = b.op("reverse", {g}, {{"axes", Ints{static_cast<int64_t>(d)}}});
    const int64_t stride = length > 1 ? std::abs(step) : 1;
    g = with_gaps(b, g, d, stride);
    pads[d] = step < 0 ? start + (length - 1) * step : start;
    if (length == 0) pads[d] = 0;
    pads[d + shape.size()] = shape[d] - pads[d] - length * stride;
  }
  return b.op("pad", {g}, {{"pads", pads}});
}

Result<ValueId> draw_slice(Draw& d, DType t) {
  const Shape shape = d.shape();
  const Ints axes = d.axes(std::ssize(shape));
  Ints starts;
  Ints ends;
  Ints steps;
  for (size_t i = 0; i < axes.size(); ++i) {
    starts.push_back(d.pick(-4, 4));
    ends.push_back(d.choose<int64_t>({-3, -1, 2, 5, INT64_MAX, INT64_MIN}));
    steps.push_back(d.choose<int64_t>({1, 1, 2, 3, -1, -2}));
  }
  if (axes.empty()) return d.op({d.tensor(t, shape)}, {{"starts", Ints{}}, {"ends", Ints{}}});
  return d.op({d.tensor(t, shape)},
              {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
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
      .gradient = gradient_of_one<gradient_slice>,
      .draw = {.node = draw_slice},
  };
  return def;
}

}  // namespace pyc::ops
