#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
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

// The element of input i at `at` less the zero point that is input `zero_at`, or none. `rows`: a
// vector of as many is one per row, which is the index before the last.
Expr centred_at(LowerContext& context, int i, const Index& at, int zero_at, int64_t rows) {
  const Expr x = convert(context.input(i, at), DType::kI32);
  if (zero_at < 0) return x;
  const TensorType& type = context.input_type(zero_at);
  Index zero;
  if (type.elements() == 1) {
    zero.assign(type.shape.size(), context.index(0));
  } else if (type.shape == Shape{rows}) {
    zero = {at[at.size() - 2]};
  } else {
    zero = broadcast_index(context, at, type.shape);
  }
  return x - convert(context.input(zero_at, zero), DType::kI32);
}

Expr lower_matmul_integer(LowerContext& context, int, std::span<const Expr> index) {
  const Shape& a = context.input_type(0).shape;
  const Shape& b = context.input_type(1).shape;
  const ir::Attrs& attrs = context.node().attrs;
  const int za = operand_at(attrs, 2, "a_zero_point");
  const int zb = operand_at(attrs, 2, "b_zero_point");
  const size_t matrix_dims = (a.size() > 1 ? 1 : 0) + (b.size() > 1 ? 1 : 0);
  const auto batch = index.first(index.size() - matrix_dims);
  constexpr int64_t kNoRows = -1;
  const int64_t rows = a.size() > 1 ? rows_of(context.input_type(0)) : kNoRows;
  const auto term = [&](std::span<const Expr> k) {
    Index at_a = broadcast_index(context, batch, batch_dims(a));
    if (a.size() > 1) at_a.push_back(index[batch.size()]);
    at_a.push_back(k[0]);
    Index at_b = broadcast_index(context, batch, batch_dims(b));
    at_b.push_back(k[0]);
    if (b.size() > 1) at_b.push_back(index.back());
    return ReduceTerm{.value = centred_at(context, 0, at_a, za, rows),
                      .value2 = centred_at(context, 1, at_b, zb, kNoRows)};
  };
  const int64_t extent = a.back();
  return context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, {&extent, 1}, term,
                        kChainSegment);
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
      .lower = lower_matmul_integer,
      .no_gradient = "it works on integers",
      .onnx = {.name = "MatMulInteger", .optional = "a_zero_point b_zero_point"},
      .draw = {.node = draw_matmul_integer},
  };
  return def;
}

}  // namespace pyc::ops
