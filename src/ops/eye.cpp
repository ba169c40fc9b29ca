#include "ops/draw.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_eye(const InferArgs& args) {
  return one(args.attr_dtype("dtype"), {args.attr_int("rows"), args.attr_int("cols")});
}

Expr lower_eye(LowerContext& context, int, std::span<const Expr> index) {
  const Expr on_diagonal = eq(index[1] - index[0], context.index(context.attr_int("k")));
  return convert(on_diagonal, context.output_type(0).dtype);
}

Result<ValueId> draw_eye(Draw& d, DType t) {
  return d.op({}, {{"rows", d.dim(0)}, {"cols", d.dim(0)}, {"k", d.pick(-3, 3)}, {"dtype", t}});
}

}  // namespace

const ir::OpDef& op_eye() {
  static const ir::OpDef def{
      .name = "eye",
      .summary = "A matrix with 1 on diagonal k (positive: above the main one), 0 elsewhere.",
      .min_inputs = 0,
      .max_inputs = 0,
      .attrs = {required("cols", ir::AttrKind::kInt), optional("dtype", DType::kF32),
                optional("k", int64_t{0}), required("rows", ir::AttrKind::kInt)},
      .infer = infer_eye,
      .lower = lower_eye,
      .no_gradient = "it has no input",
      .draw = {.node = draw_eye},
  };
  return def;
}

}  // namespace pyc::ops
