#include <algorithm>
#include <numeric>

#include "ops/draw.h"
#include "ops/support/compose.h"
#include "ops/support/fourier.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

// The largest matrix that is made for a transform, in elements.
constexpr int64_t kMaxMatrix = int64_t{1} << 27;

Transform transform_of(const InferArgs& args, const TensorType& x) {
  const auto axis = static_cast<size_t>(from_front(args.attr_int("axis"), x.rank()));
  Transform t;
  t.inverse = args.attr_bool("inverse");
  const bool onesided = args.attr_bool("onesided");
  t.mirrored = t.inverse && onesided;
  const int64_t dim = x.shape[axis];
  t.length = args.attr_int("length");
  if (t.length == 0) t.length = t.mirrored ? 2 * (dim - 1) : dim;
  t.points = std::min(dim, t.mirrored ? t.length / 2 + 1 : t.length);
  t.in_parts = x.shape.back();
  t.out_parts = t.mirrored ? 1 : 2;
  t.out_points = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  return t;
}

Types infer_dft(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kFloats));
  if (x.rank() < 2 || x.shape.back() < 1 || x.shape.back() > 2) {
    return refuse(Code::kShapeMismatch,
                  "x must have rank 2 or more and a last dim of 1 or 2, found ", x);
  }
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  const int64_t axis = from_front(args.attr_int("axis"), x.rank());
  if (axis + 1 == x.rank()) {
    return refuse(Code::kInvalidArgument, "axis ", args.attr_int("axis"),
                  " is that of the real and imaginary parts");
  }
  const Transform t = transform_of(args, x);
  if (args.attr_bool("onesided") && (t.in_parts == 2) != t.inverse) {
    return refuse(Code::kShapeMismatch,
                  "a onesided transform takes real and its inverse complex "
                  "numbers, found ",
                  x);
  }
  if (t.length < 1)
    return refuse(Code::kInvalidArgument, "length must be positive, found ", t.length);
  if (t.length > ir::kMaxElements ||
      t.points * t.in_parts > kMaxMatrix / (t.out_points * t.out_parts)) {
    return refuse(Code::kUnsupported, "a transform of length ", t.length, " of ", x,
                  " needs too large a matrix");
  }
  Shape shape = x.shape;
  shape[static_cast<size_t>(axis)] = t.out_points;
  shape.back() = t.out_parts;
  return one(x.dtype, std::move(shape));
}

// Exchanges the axis with that in front of the parts.
Ints swap_axes(int64_t rank, int64_t axis) {
  Ints perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<size_t>(axis)], perm[static_cast<size_t>(rank - 2)]);
  return perm;
}

Result<std::vector<ValueId>> decompose_dft(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const TensorType type = c.input_type(0);
  const int64_t axis = from_front(c.attrs().attr_int("axis"), type.rank());
  const Transform t = transform_of(c.attrs(), type);
  const Ints perm = swap_axes(type.rank(), axis);
  const ValueId used = c.slice(c.wide_input(0), axis, 0, t.points);
  const ValueId signal = c.transpose(used, perm);
  Shape rows = c.type(signal).shape;
  rows.resize(type.shape.size() - 1);
  rows.back() = t.points * t.in_parts;
  const Shape matrix_shape{t.points * t.in_parts, t.out_points * t.out_parts};
  const ValueId matrix = c.constant(compute_dtype(type.dtype), matrix_shape, transform_matrix(t));
  ValueId y = c.op("matmul", {c.reshape(signal, rows), matrix});
  if (t.inverse) y = c.div(y, c.scalar_like(y, static_cast<double>(t.length)));
  rows.back() = t.out_points;
  rows.push_back(t.out_parts);
  return c.outputs({c.cast(c.transpose(c.reshape(y, rows), perm), type.dtype)});
}

Result<ValueId> draw_dft(Draw& d, DType t) {
  const bool inverse = d.flip();
  const bool onesided = d.chance(3);
  const int64_t parts = onesided ? (inverse ? 2 : 1) : d.pick(1, 2);
  const Shape shape{d.pick(1, 3), d.pick(onesided && inverse ? 2 : 1, 9), parts};
  Attrs attrs{{"axis", d.choose<int64_t>({1, -2})}, {"inverse", inverse}, {"onesided", onesided}};
  if (d.chance(3)) attrs["length"] = d.pick(1, 12);
  return d.op({d.tensor(t, shape)}, std::move(attrs));
}

}  // namespace

const ir::OpDef& op_dft() {
  static const ir::OpDef def{
      .name = "dft",
      .summary =
          "Discrete Fourier transform along an axis as one contraction; the last dim is re, or re "
          "and im.",
      .attrs = {optional("axis", int64_t{-2}), optional("length", int64_t{0}),
                optional("inverse", false), optional("onesided", false)},
      .infer = infer_dft,
      .decompose = decompose_dft,
      .draw = {.node = draw_dft},
  };
  return def;
}

}  // namespace pyc::ops
