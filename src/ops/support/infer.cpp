#include "ops/support/infer.h"

namespace pyc::ops {

ir::AttrDef required(std::string_view name, ir::AttrKind kind) { return {name, kind}; }

template <class T>
ir::AttrDef optional(std::string_view name, T fallback) {
  return {name, ir::Attr(std::move(fallback))};
}
template ir::AttrDef optional(std::string_view, int64_t);
template ir::AttrDef optional(std::string_view, double);
template ir::AttrDef optional(std::string_view, bool);
template ir::AttrDef optional(std::string_view, std::string);
template ir::AttrDef optional(std::string_view, DType);
template ir::AttrDef optional(std::string_view, std::vector<int64_t>);
template ir::AttrDef optional(std::string_view, std::vector<double>);

Status require_dtype(std::string_view what, const TensorType& type, const DTypeClass& accepted) {
  if (accepted.has(type.dtype)) return {};
  return refuse(Code::kDtypeMismatch, what, " must have ", accepted.words, ", found ", type);
}

Status require_same_dtype(const TensorType& a, const TensorType& b) {
  if (a.dtype == b.dtype) return {};
  return refuse(Code::kDtypeMismatch, "inputs must have one dtype, found ", a, " and ", b);
}

Status require_rank(std::string_view what, const TensorType& type, int64_t rank) {
  if (type.rank() == rank) return {};
  return refuse(Code::kRankMismatch, what, " must have rank ", rank, ", found ", type);
}

Status require_ints(std::string_view attr, const Ints& values, size_t count, int64_t lo,
                    int64_t hi) {
  if (values.size() != count) {
    return refuse(Code::kInvalidArgument, attr, " must have ", static_cast<int64_t>(count),
                  " entries, found ", values);
  }
  for (int64_t v : values) {
    if (v >= lo && v <= hi) continue;
    return refuse(Code::kInvalidArgument, "each of ", attr, " must lie in [", lo, ",", hi,
                  "], found ", values);
  }
  return {};
}

Status require_axis(int64_t axis, const TensorType& type) {
  if (axis >= -type.rank() && axis < type.rank()) return {};
  return refuse(Code::kInvalidArgument, "axis ", axis, " is outside of ", type);
}

Status require_axes(const Ints& axes, const TensorType& type) {
  std::vector<bool> seen(type.shape.size(), false);
  for (int64_t axis : axes) {
    PYC_TRY(require_axis(axis, type));
    const auto at = static_cast<size_t>(from_front(axis, type.rank()));
    if (seen[at]) {
      return refuse(Code::kInvalidArgument, "axis ", axis, " appears twice in axes ", axes);
    }
    seen[at] = true;
  }
  return {};
}

Result<Shape> scaled_shape(const TensorType& x, const Ints& factors) {
  Shape shape = x.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (factors[i] != 0 && shape[i] > ir::kMaxElements / factors[i]) {
      return refuse(Code::kInvalidArgument, "", x, " times ", factors, " is too large");
    }
    shape[i] *= factors[i];
  }
  return shape;
}

Types infer_along_axis(const InferArgs& args, const DTypeClass& accepted) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("input", x, accepted));
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  return one(x.dtype, x.shape);
}

Types infer_elementwise(const InferArgs& args, const DTypeClass& accepted) {
  const TensorType& first = args.inputs[0];
  PYC_TRY(require_dtype(args.inputs.size() == 1 ? "input" : "lhs", first, accepted));
  Shape shape = first.shape;
  for (const TensorType& other : args.inputs.subspan(1)) {
    PYC_TRY(require_same_dtype(first, other));
    auto joined = ir::broadcast_shapes(shape, other.shape);
    if (!joined.ok()) {
      return refuse(Code::kShapeMismatch, "shapes do not broadcast: ", first, " and ", other);
    }
    shape = std::move(*joined);
  }
  return one(first.dtype, std::move(shape));
}

Types infer_comparison(const InferArgs& args, const DTypeClass& accepted) {
  PYC_ASSIGN(auto types, infer_elementwise(args, accepted));
  types[0].dtype = DType::kBool;
  return types;
}

}  // namespace pyc::ops
