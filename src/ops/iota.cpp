#include <cmath>

#include "ops/draw.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

// Larger integers are no longer all exact in an attribute, which is an f64.
constexpr double kMaxInteger = 9007199254740992.0;

Status require_integer(std::string_view attr, double value) {
  if (std::trunc(value) == value && std::fabs(value) <= kMaxInteger) return {};
  return refuse(Code::kInvalidArgument, attr,
                " must be an integer of at most 2^53 for an integer dtype");
}

Types infer_iota(const InferArgs& args) {
  const TensorType y{args.attr_dtype("dtype"), args.attr_ints("shape")};
  PYC_TRY(ir::check_type(y));
  PYC_TRY(require_dtype("the result", y, kNumbers));
  PYC_TRY(require_axis(args.attr_int("axis"), y));
  if (is_int(y.dtype)) {
    PYC_TRY(require_integer("start", args.attr_float("start")));
    PYC_TRY(require_integer("step", args.attr_float("step")));
  }
  return one(y.dtype, y.shape);
}

Expr lower_iota(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& y = context.output_type(0);
  const Expr i = index[static_cast<size_t>(from_front(context.attr_int("axis"), y.rank()))];
  // Integers are computed in i64, whose low bits are those of every narrower type.
  const Expr count = is_int(y.dtype) ? i : convert(i, compute_dtype(y.dtype));
  return rounded(context, count * context.attr_float("step") + context.attr_float("start"));
}

Result<ValueId> draw_iota(Draw& d, DType t) {
  const Shape shape = d.shape(1);
  return d.op({}, {{"axis", d.axis(std::ssize(shape))},
                   {"shape", shape},
                   {"dtype", t},
                   {"start", static_cast<double>(d.pick(-3, 9))},
                   {"step", static_cast<double>(d.pick(-2, 2))}});
}

}  // namespace

const ir::OpDef& op_iota() {
  static const ir::OpDef def{
      .name = "iota",
      .summary = "i * step + start along an axis of the shape; integers wrap.",
      .min_inputs = 0,
      .max_inputs = 0,
      .attrs = {optional("axis", int64_t{0}), optional("dtype", DType::kI64),
                required("shape", ir::AttrKind::kInts), optional("start", 0.0),
                optional("step", 1.0)},
      .infer = infer_iota,
      .lower = lower_iota,
      .no_gradient = "it has no input",
      .draw = {.node = draw_iota},
  };
  return def;
}

}  // namespace pyc::ops
