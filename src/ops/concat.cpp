#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Types infer_concat(const InferArgs& args) {
  const TensorType& first = args.inputs[0];
  PYC_TRY(require_axis(args.attr_int("axis"), first));
  const auto axis = static_cast<size_t>(from_front(args.attr_int("axis"), first.rank()));
  Shape shape = first.shape;
  for (const TensorType& other : args.inputs.subspan(1)) {
    PYC_TRY(require_same_dtype(first, other));
    PYC_TRY(require_rank("each input", other, first.rank()));
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i == axis || other.shape[i] == first.shape[i]) continue;
      return refuse(Code::kShapeMismatch, "inputs may differ only in dim ",
                    static_cast<int64_t>(axis), ", found ", first, " and ", other);
    }
    shape[axis] += other.shape[axis];
    if (shape[axis] > ir::kMaxElements) {
      return refuse(Code::kInvalidArgument, "dim ", static_cast<int64_t>(axis),
                    " of the result is too large");
    }
  }
  return one(first.dtype, std::move(shape));
}

Expr lower_concat(LowerContext& context, int, std::span<const Expr> index) {
  const auto axis =
      static_cast<size_t>(from_front(context.attr_int("axis"), context.output_type(0).rank()));
  int64_t end = context.output_type(0).shape[axis];
  Expr result = zero(context, context.output_type(0).dtype);
  for (int i = context.inputs(); i-- > 0;) {
    const int64_t begin = end - context.input_type(i).shape[axis];
    if (begin == end) continue;
    Index at = to_index(index);
    // Of one element there is only the first, whatever the index.
    at[axis] = end - begin == 1 ? context.index(0) : at[axis] - context.index(begin);
    result = context.input_if(i, at, between(context, index[axis], begin, end), result);
    end = begin;
  }
  return result;
}

ValueId simplify_concat(Patch& patch, const NodeView& node) {
  return node.inputs() == 1 ? patch.by("concat_one", node.input(0)) : kNoId;
}

Grads gradient_concat(ir::GraphBuilder& builder, const ir::Node& node,
                      std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const int64_t axis = from_front(b.attrs().attr_int("axis"), b.input_type(0).rank());
  std::vector<ValueId> parts;
  int64_t begin = 0;
  for (size_t i = 0; i < b.inputs(); ++i) {
    const int64_t end = begin + b.input_type(i).shape[static_cast<size_t>(axis)];
    parts.push_back(b.stored(b.slice(b.g(), axis, begin, end), i));
    begin = end;
  }
  return b.outputs(parts);
}

Result<ValueId> draw_concat(Draw& d, DType t) {
  Shape shape = d.shape(1);
  const int64_t axis = d.axis(std::ssize(shape));
  const size_t at = static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis);
  std::vector<ValueId> inputs;
  for (int64_t i = d.pick(1, 4); i > 0; --i) {
    shape[at] = d.pick(0, 5);
    inputs.push_back(d.tensor(t, shape));
  }
  return d.op(std::move(inputs), {{"axis", axis}});
}

}  // namespace

const ir::OpDef& op_concat() {
  static const ir::OpDef def{
      .name = "concat",
      .summary = "The inputs one after the other along an axis.",
      .min_inputs = 1,
      .max_inputs = ir::kVariadic,
      .attrs = {required("axis", ir::AttrKind::kInt)},
      .infer = infer_concat,
      .lower = lower_concat,
      .traits = {.moves_data = true},
      .canonical_attrs = canonical_axis,
      .simplify = simplify_concat,
      .gradient = gradient_concat,
      .onnx = {.name = "Concat", .attrs = "axis", .since = 4},
      .draw = {.node = draw_concat},
  };
  return def;
}

}  // namespace pyc::ops
