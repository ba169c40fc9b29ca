#include <cmath>

#include "ops/draw.h"
#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/onnx.h"
#include "ops/support/products.h"

namespace pyc::ops {
namespace {

Shape matrix(const TensorType& t, bool transposed) {
  return transposed ? Shape{t.shape[1], t.shape[0]} : t.shape;
}

Types infer_gemm(const InferArgs& args) {
  const TensorType& a = args.inputs[0];
  const TensorType& b = args.inputs[1];
  PYC_TRY(require_dtype("a", a, kNumbers));
  PYC_TRY(require_rank("a", a, 2));
  PYC_TRY(require_rank("b", b, 2));
  PYC_TRY(require_same_dtype(a, b));
  for (std::string_view factor : {"alpha", "beta"}) {
    const double value = args.attr_float(factor);
    if (is_float(a.dtype) || value == std::trunc(value)) continue;
    return refuse(Code::kInvalidArgument, "", factor, " must be whole for integers, found ",
                  ir::attr_to_string(value));
  }
  const Shape left = matrix(a, args.attr_bool("trans_a"));
  const Shape right = matrix(b, args.attr_bool("trans_b"));
  if (left[1] != right[0]) {
    return refuse(Code::kShapeMismatch, "inner dims differ: ", left[1], " of a ", a, " and ",
                  right[0], " of b ", b);
  }
  Shape shape{left[0], right[1]};
  if (args.inputs.size() > 2) {
    const TensorType& c = args.inputs[2];
    PYC_TRY(require_same_dtype(a, c));
    const auto joined = ir::broadcast_shapes(shape, c.shape);
    if (!joined.ok() || *joined != shape) {
      return refuse(Code::kShapeMismatch, "c ", c, " does not broadcast to ", shape);
    }
  }
  PYC_ASSIGN(const DType to, product_dtype(args));
  return one(to, std::move(shape));
}

ValueId scaled(Compose& c, ValueId x, double factor) {
  return factor == 1.0 ? x : c.scale(x, factor);
}

Result<std::vector<ValueId>> decompose_gemm(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const auto operand = [&](size_t i, std::string_view transposed) {
    return c.attrs().attr_bool(transposed) ? c.transpose(c.input(i), {1, 0}) : c.input(i);
  };
  const DType stored = c.input_type(0).dtype;
  ir::Attrs attrs;
  if (is_half(stored)) attrs["to"] = DType::kF32;
  const ValueId product =
      c.op("matmul", {operand(0, "trans_a"), operand(1, "trans_b")}, std::move(attrs));
  ValueId y = scaled(c, product, c.attrs().attr_float("alpha"));
  if (c.inputs() > 2) {
    const ValueId added = is_half(stored) ? c.wide_input(2) : c.input(2);
    y = c.add(y, scaled(c, added, c.attrs().attr_float("beta")));
  }
  // One value of the graph, one rounding.
  return c.outputs({c.attrs().has("to") ? y : c.cast(y, stored)});
}

Result<ValueId> draw_gemm(Draw& d, DType t) {
  const int64_t m = d.pick(0, 5);
  const int64_t n = d.choose<int64_t>({1, 3, 8, 17});
  const int64_t k = d.dim(least_inner(d));
  const bool ta = d.flip();
  const bool tb = d.flip();
  std::vector<ValueId> inputs{d.tensor(t, ta ? Shape{k, m} : Shape{m, k}),
                              d.tensor(t, tb ? Shape{n, k} : Shape{k, n})};
  if (d.flip()) inputs.push_back(d.tensor(t, d.broadcastable({m, n})));
  return d.op(std::move(inputs), {{"trans_a", ta},
                                  {"trans_b", tb},
                                  {"alpha", d.choose({1.0, 2.0})},
                                  {"beta", d.choose({1.0, 3.0})}});
}

}  // namespace

const ir::OpDef& op_gemm() {
  static const ir::OpDef def{
      .name = "gemm",
      .summary = "alpha*(a·b) (+ beta*c), a and b transposed on demand; c broadcasts.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = {optional("alpha", 1.0), optional("beta", 1.0), optional("trans_a", false),
                optional("trans_b", false), wide_result_attr()},
      .infer = infer_gemm,
      .decompose = decompose_gemm,
      .traits = {.product = true, .factors = 2, .adds_input = true},
      .onnx = {.name = "Gemm",
               .attrs = "alpha beta transA=trans_a transB=trans_b",
               .dtypes = kOnnxFloatsAndWideInts},
      .draw = {.node = draw_gemm},
  };
  return def;
}

}  // namespace pyc::ops
