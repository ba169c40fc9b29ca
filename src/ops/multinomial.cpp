#include "ops/draw.h"
#include "ops/support/compose.h"
#include "ops/support/random.h"

namespace pyc::ops {
namespace {

Types infer_multinomial(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(check_drawn_before(args, 1));
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_rank("x", x, 2));
  if (x.shape[1] < 1) return refuse(Code::kShapeMismatch, "x ", x, " has no classes");
  PYC_TRY(require_dtype("the result", {args.attr_dtype("dtype"), {}}, kIndices));
  const int64_t samples = args.attr_int("sample_size");
  if (samples < 0) {
    return refuse(Code::kInvalidArgument, "sample_size must not be negative, found ", samples);
  }
  return one(args.attr_dtype("dtype"), {x.shape[0], samples});
}

Result<std::vector<ValueId>> decompose_multinomial(ir::GraphBuilder& builder,
                                                   const ir::Node& node) {
  Compose c(builder, node);
  const Shape x = c.input_type(0).shape;
  const int64_t samples = c.attrs().attr_int("sample_size");
  // u = (word + 0.5)·2^-32, inside (0, 1).
  std::vector<ValueId> before;
  if (c.inputs() > 1) before.push_back(c.input(1));
  const ValueId u = c.op("random_uniform", std::move(before),
                         {{"shape", Ints{x[0], samples, x[1]}},
                          {"dtype", DType::kF64},
                          {"lo", 0x1p-33},
                          {"hi", 1.0 + 0x1p-33},
                          {"seed", c.attrs().attr_int("seed")},
                          {"stream", c.attrs().attr_int("stream")}});
  const ValueId inner = c.op("neg", {c.op("log", {u})});
  const ValueId logits = c.reshape(c.cast(c.input(0), DType::kF64), {x[0], 1, x[1]});
  const ValueId score = c.sub(logits, c.op("log", {inner}));
  const ir::Attrs last{{"axes", Ints{2}}};
  const ValueId best = c.op("equal", {score, c.op("reduce_max", {score}, last)});
  const ValueId at = c.positions(3, 2, x[1]);
  const ValueId place = c.op("where", {best, at, c.scalar_like(at, static_cast<double>(x[1] - 1))});
  const ValueId y = c.reshape(c.op("reduce_min", {place}, last), {x[0], samples});
  return c.outputs({c.cast(y, c.attrs().attr_dtype("dtype"))});
}

Result<ValueId> draw_multinomial(Draw& d, DType t) {
  return d.op({d.tensor(t, {d.pick(1, 3), d.pick(1, 9)})},
              {{"sample_size", d.pick(0, 4)},
               {"dtype", d.choose({DType::kI32, DType::kI64})},
               {"seed", d.pick(0, 99)}});
}

}  // namespace

const ir::OpDef& op_multinomial() {
  static const ir::OpDef def{
      .name = "multinomial",
      .summary =
          "Class indices drawn by log-probabilities x [B,C]: the largest of x - log(-log(u)), u "
          "from Philox.",
      .max_inputs = 2,
      .attrs = random_attrs({optional("sample_size", int64_t{1}), optional("dtype", DType::kI32)}),
      .infer = infer_multinomial,
      .decompose = decompose_multinomial,
      .traits = {.random = true},
      .no_gradient = "its result is an index",
      .draw = {.node = draw_multinomial, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
