#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/operands.h"
#include "ops/support/products.h"

namespace pyc::ops {
namespace {

constexpr DTypeClass kFactorTypes{[](DType t) { return t == DType::kI8 || t == DType::kU8; },
                                  "i8 or u8"};

// One zero point for all of the operand, a vector (one per row of a or column of b), or what
// broadcasts against the operand.
Status check_zero_point(std::string_view name, const TensorType& zero, const TensorType& operand,
                        int64_t vector) {
  PYC_TRY(require_same_dtype(operand, zero));
  if (zero.elements() == 1 && zero.rank() <= 1) return {};
  if (zero.shape == Shape{vector}) return {};
  const auto joined = ir::broadcast_shapes(operand.shape, zero.shape);
  if (joined.ok() && *joined == operand.shape) return {};
  return refuse(Code::kShapeMismatch, "", name, " ", zero, " does not fit ", operand);
}

// One per row of a: the dim before the last.
int64_t rows_of(const TensorType& a) { return a.rank() < 2 ? 1 : a.shape[a.shape.size() - 2]; }

Types infer_matmul_integer(const InferArgs& args) {
  PYC_TRY(require_operands(args, 2, {"a_zero_point", "b_zero_point"}));
  const TensorType& a = args.inputs[0];
  const TensorType& b = args.inputs[1];
  PYC_TRY(require_dtype("a", a, kFactorTypes));
  PYC_TRY(require_dtype("b", b, kFactorTypes));
  PYC_ASSIGN(Shape shape, matmul_shape(a, b));
  const int za = operand_at(args.attrs, 2, "a_zero_point");
  const int zb = operand_at(args.attrs, 2, "b_zero_point");
  if (za >= 0) {
    PYC_TRY(check_zero_point("a_zero_point", args.inputs[static_cast<size_t>(za)], a, rows_of(a)));
  }
  if (zb >= 0) {
    PYC_TRY(check_zero_point("b_zero_point", args.inputs[static_cast<size_t>(zb)], b,
                             b.rank() < 2 ? 1 : b.shape.back()));
  }
  return one(DType::kI32, std::move(shape));
}

ValueId centred_operand(Compose& c, size_t i, int zero_at, bool per_row) {
  const ValueId x = c.cast(c.input(i), DType::kI32);
  if (zero_at < 0) return x;
  const auto at = static_cast<size_t>(zero_at);
  const TensorType type = c.input_type(at);
  ValueId zero = c.cast(c.input(at), DType::kI32);
  if (type.elements() == 1) {
    zero = c.reshape(zero, {});
  } else if (per_row && type.rank() == 1) {
    zero = c.reshape(zero, {type.shape[0], 1});
  }
  return c.sub(x, zero);
}

Result<std::vector<ValueId>> decompose_matmul_integer(ir::GraphBuilder& builder,
                                                      const ir::Node& node) {
  Compose c(builder, node);
  const ValueId a = centred_operand(c, 0, operand_at(node.attrs, 2, "a_zero_point"), true);
  const ValueId b = centred_operand(c, 1, operand_at(node.attrs, 2, "b_zero_point"), false);
  return c.outputs({c.op("matmul", {a, b})});
}

Result<ValueId> draw_matmul_integer(Draw& d, DType t) {
  const DrawnProduct p = drawn_product(d);
  const DType u = d.choose({DType::kI8, DType::kU8});
  DrawnOperands o{{d.tensor(t, p.a), d.tensor(u, p.b)}, ""};
  if (d.flip()) o.add("a_zero_point", d.tensor(t, {}));
  if (d.flip()) o.add("b_zero_point", d.tensor(u, {}));
  return d.op(std::move(o.inputs), {{"with", o.with}});
}

}  // namespace

const ir::OpDef& op_matmul_integer() {
  static const ir::OpDef def{
      .name = "matmul_integer",
      .summary =
          "The exact i32 product of (a - a_zero_point) and (b - b_zero_point), 8-bit integers.",
      .min_inputs = 2,
      .max_inputs = 4,
      .attrs = {with_attr()},
      .infer = infer_matmul_integer,
      .decompose = decompose_matmul_integer,
      .no_gradient = "it works on integers",
      .onnx = {.name = "MatMulInteger", .optional = "a_zero_point b_zero_point"},
      .draw = {.node = draw_matmul_integer},
  };
  return def;
}

}  // namespace pyc::ops
