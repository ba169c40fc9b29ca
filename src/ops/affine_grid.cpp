#include "ops/draw.h"
#include "ops/support/compose.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

Types infer_affine_grid(const InferArgs& args) {
  const TensorType& theta = args.inputs[0];
  const Ints& size = args.attr_ints("size");
  PYC_TRY(require_dtype("theta", theta, kFloats));
  PYC_TRY(require_ints("size", size, size.size(), 0, ir::kMaxElements));
  if (size.size() < 3) {
    return refuse(Code::kInvalidArgument, "size must have 3 entries or more, found ", size);
  }
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  const Shape expected{size[0], dims, dims + 1};
  if (theta.shape != expected) {
    return refuse(Code::kShapeMismatch, "theta must have shape ", expected, ", found ", theta);
  }
  Shape shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(dims);
  return one(theta.dtype, std::move(shape));
}

// The normalised coordinate of element i of `size`.
Expr coordinate(LowerContext& context, Expr i, int64_t size, DType t) {
  const auto n = static_cast<double>(size);
  if (context.attr_bool("align_corners")) {
    if (size == 1) return loop::constant(context.pool(), t, 0.0);
    return convert(i * context.index(2), t) / (n - 1) - 1.0;
  }
  return convert(i * context.index(2) + context.index(1), t) / n - 1.0;
}

Expr lower_affine_grid(LowerContext& context, int, std::span<const Expr> index) {
  const Ints& size = context.attr_ints("size");
  const size_t dims = size.size() - 2;
  const DType wide = compute_dtype(context.input_type(0).dtype);
  const auto theta = [&](size_t k) {
    return context.input_compute(
        0, Index{index[0], index.back(), context.index(static_cast<int64_t>(k))});
  };
  Expr sum = loop::constant(context.pool(), wide, 0.0);
  for (size_t k = 0; k < dims; ++k) {
    const size_t d = dims - 1 - k;  // the last dim comes first
    sum = fma(theta(k), coordinate(context, index[d + 1], size[d + 2], wide), sum);
  }
  sum = fma(theta(dims), like(sum, 1.0), sum);
  return rounded(context, sum + 0.0);
}

// The normalised coordinates of all elements of a dim.
std::vector<double> coordinates(int64_t size, bool align_corners) {
  const auto n = static_cast<double>(size);
  std::vector<double> result;
  for (int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<double>(i);
    if (align_corners) {
      result.push_back(size == 1 ? 0.0 : 2.0 * at / (n - 1) - 1.0);
    } else {
      result.push_back((2.0 * at + 1.0) / n - 1.0);
    }
  }
  return result;
}

Result<std::vector<ValueId>> gradient_form_affine_grid(ir::GraphBuilder& builder,
                                                       const ir::Node& node) {
  Compose c(builder, node);
  const Ints& size = c.attrs().attr_ints("size");
  const size_t dims = size.size() - 2;
  const ValueId theta = c.wide_input(0);
  const Shape planes(size.begin() + 2, size.end());
  Shape column = planes;
  column.push_back(1);
  std::vector<ValueId> columns;  // the coordinates of each place, the last dim first, then 1
  for (size_t k = 0; k <= dims; ++k) {
    Shape along(dims + 1, 1);
    std::vector<double> at{1.0};
    if (k < dims) {
      const size_t d = dims - 1 - k;
      along[d] = planes[d];
      at = coordinates(planes[d], c.attrs().attr_bool("align_corners"));
    }
    columns.push_back(c.expand(c.constant(c.type(theta).dtype, along, at), column));
  }
  const int64_t places = TensorType{DType::kU8, planes}.elements();
  const auto count = static_cast<int64_t>(dims);
  const ValueId matrix = c.reshape(c.concat(columns, count), {places, count + 1});
  Shape shape = planes;
  shape.insert(shape.begin(), size[0]);
  shape.push_back(count);
  const ValueId y = c.op("matmul", {matrix, c.transpose(theta, {0, 2, 1})});
  return c.outputs({c.cast(c.reshape(y, shape), c.input_type(0).dtype)});
}

Result<ValueId> draw_affine_grid(Draw& d, DType t) {
  const int64_t dims = d.pick(1, 3);
  Shape size{d.pick(1, 3), d.pick(1, 3)};
  for (int64_t i = 0; i < dims; ++i) size.push_back(d.pick(1, 5));
  return d.op({d.tensor(t, {size[0], dims, dims + 1})},
              {{"size", size}, {"align_corners", d.flip()}});
}

}  // namespace

const ir::OpDef& op_affine_grid() {
  static const ir::OpDef def{
      .name = "affine_grid",
      .summary =
          "For grid_sample: theta (N, d, d+1) times the normalised coordinates (last dim "
          "first, then 1) of each place of an image of `size` (N, C, planes).",
      .attrs = {required("size", ir::AttrKind::kInts), optional("align_corners", false)},
      .infer = infer_affine_grid,
      .lower = lower_affine_grid,
      .gradient_form = gradient_form_affine_grid,
      .draw = {.node = draw_affine_grid},
  };
  return def;
}

}  // namespace pyc::ops
