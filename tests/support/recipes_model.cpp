// Products, transforms, attention, recurrent cells, quantization and steps of
// optimizers.

#include "support/draw.h"

namespace pyc::test {
namespace {

// Operands of which some are left out: their names go into attribute `with`.
struct Operands {
  std::vector<ValueId> inputs;
  std::string with;

  void add(std::string_view name, ValueId v) {
    with += (with.empty() ? "" : ",") + std::string(name);
    inputs.push_back(v);
  }
};

// ONNX Runtime does not fill an empty integer product, and leaves out beta of an empty gemm.
int64_t least_inner(const Draw& d) { return d.tame() ? 1 : 0; }

// Shapes of a and b with a common inner dim; ranks from 1.
struct Product {
  Shape a;
  Shape b;
};
Product product(Draw& d) {
  const int64_t k = d.chance(8) ? d.pick(257, 300) : d.dim(least_inner(d));
  const Shape batch = d.chance(3) ? d.shape(1, 2, 1) : Shape{};
  Product p{{d.pick(1, 5), k}, {k, d.choose<int64_t>({1, 2, 3, 5, 8, 17})}};
  if (batch.empty() && d.chance(6)) p.a = {k};
  if (batch.empty() && d.chance(6)) p.b = {k};
  if (!batch.empty() && k <= 67) {
    Shape small = batch;
    for (int64_t& n : small) n = std::min<int64_t>(n, 3);
    p.a.insert(p.a.begin(), small.begin(), small.end());
    if (d.flip()) p.b.insert(p.b.begin(), small.begin(), small.end());
  }
  return p;
}

Result<ValueId> matmul(Draw& d, DType t) {
  const Product p = product(d);
  return d.op("matmul", {d.tensor(t, p.a), d.tensor(t, p.b)});
}

Result<ValueId> matmul_integer(Draw& d, DType t) {
  const Product p = product(d);
  const DType u = d.choose({DType::kI8, DType::kU8});
  Operands o{{d.tensor(t, p.a), d.tensor(u, p.b)}, ""};
  if (d.flip()) o.add("a_zero_point", d.tensor(t, {}));
  if (d.flip()) o.add("b_zero_point", d.tensor(u, {}));
  return d.op("matmul_integer", std::move(o.inputs), {{"with", o.with}});
}

Result<ValueId> gemm(Draw& d, DType t) {
  const int64_t m = d.pick(0, 5);
  const int64_t n = d.choose<int64_t>({1, 3, 8, 17});
  const int64_t k = d.dim(least_inner(d));
  const bool ta = d.flip();
  const bool tb = d.flip();
  std::vector<ValueId> inputs{d.tensor(t, ta ? Shape{k, m} : Shape{m, k}),
                              d.tensor(t, tb ? Shape{n, k} : Shape{k, n})};
  if (d.flip()) inputs.push_back(d.tensor(t, d.broadcastable({m, n})));
  return d.op("gemm", std::move(inputs),
              {{"trans_a", ta},
               {"trans_b", tb},
               {"alpha", d.choose({1.0, 2.0})},
               {"beta", d.choose({1.0, 3.0})}});
}

Result<ValueId> by_equation(Draw& d, DType t, std::string_view op) {
  const int64_t b = d.pick(1, 3);
  const int64_t i = d.pick(1, 5);
  const int64_t j = d.dim(0);
  const int64_t k = d.pick(1, 9);
  switch (d.pick(0, 4)) {
    case 0:
      return d.op(op, {d.tensor(t, {i, j})}, {{"equation", std::string("ij->ji")}});
    case 1:
      return d.op(op, {d.tensor(t, {j, j})}, {{"equation", std::string("ii->i")}});
    case 2:
      return d.op(op, {d.tensor(t, {i, j}), d.tensor(t, {i, j})},
                  {{"equation", std::string("ij,ij->")}});
    case 3:
      return d.op(op, {d.tensor(t, {b, i, j}), d.tensor(t, {j, k})},
                  {{"equation", std::string("bij,jk->bki")}});
    default:
      return d.op(op, {d.tensor(t, {b, i, j}), d.tensor(t, {b, j, k})},
                  {{"equation", std::string("bij,bjk->bik")}});
  }
}
Result<ValueId> contract(Draw& d, DType t) { return by_equation(d, t, "contract"); }
Result<ValueId> einsum(Draw& d, DType t) {
  if (!d.chance(3)) return by_equation(d, t, "einsum");
  const int64_t i = d.pick(1, 4);
  const int64_t j = d.pick(1, 4);
  return d.op("einsum", {d.tensor(t, {2, i, j}), d.tensor(t, {j, 3}), d.tensor(t, {3})},
              {{"equation", std::string("...ij,jk,k->...i")}});
}

Result<ValueId> det(Draw& d, DType t) {
  Shape shape = d.shape(0, 2, 1);
  for (int64_t& n : shape) n = std::min<int64_t>(n, 3);
  const int64_t n = d.pick(0, 3);
  shape.insert(shape.end(), {n, n});
  return d.op("det", {d.tensor(t, shape)});
}

Result<ValueId> dft(Draw& d, DType t) {
  const bool inverse = d.flip();
  const bool onesided = d.chance(3);
  const int64_t parts = onesided ? (inverse ? 2 : 1) : d.pick(1, 2);
  const Shape shape{d.pick(1, 3), d.pick(onesided && inverse ? 2 : 1, 9), parts};
  Attrs attrs{{"axis", d.choose<int64_t>({1, -2})}, {"inverse", inverse}, {"onesided", onesided}};
  if (d.chance(3)) attrs["length"] = d.pick(1, 12);
  return d.op("dft", {d.tensor(t, shape)}, std::move(attrs));
}

Result<ValueId> stft(Draw& d, DType t) {
  const bool onesided = d.flip();
  const int64_t length = d.pick(1, 8);
  const Shape shape{d.pick(1, 2), length + d.pick(0, 9), onesided ? 1 : d.pick(1, 2)};
  std::vector<ValueId> inputs{d.tensor(t, shape)};
  if (d.flip()) inputs.push_back(d.tensor(t, {length}));
  return d.op("stft", std::move(inputs),
              {{"frame_step", d.pick(1, 4)}, {"frame_length", length}, {"onesided", onesided}});
}

Result<ValueId> attention(Draw& d, DType t) {
  const int64_t b = d.pick(1, 2);
  const int64_t groups = d.pick(1, 2);
  const int64_t heads = groups * d.pick(1, 2);
  const int64_t s = d.pick(1, 4);
  const int64_t keys = d.pick(1, 5);
  const int64_t size = d.pick(1, 8);
  const int64_t out = d.pick(1, 8);
  Operands o{{d.tensor(t, {b, heads, s, size}), d.tensor(t, {b, groups, keys, size}),
              d.tensor(t, {b, groups, keys, out})},
             ""};
  const int64_t past = d.chance(3) ? d.pick(1, 3) : 0;
  if (d.flip()) {
    o.add("mask",
          d.tensor(d.flip() ? DType::kBool : t, d.broadcastable({b, heads, s, past + keys})));
  }
  if (past > 0) {
    o.add("past_key", d.tensor(t, {b, groups, past, size}));
    o.add("past_value", d.tensor(t, {b, groups, past, out}));
  } else if (d.chance(4)) {
    o.add("nonpad_kv_seqlen", d.fresh(DType::kI64, {b}, 1.0, static_cast<double>(keys) + 0.5));
  }
  Attrs attrs{{"with", o.with}, {"causal", d.chance(3)}, {"qk_output", d.pick(0, 3)}};
  if (d.chance(3)) attrs["scale"] = 0.5;
  if (d.chance(3)) attrs["softcap"] = 2.0;
  if (d.chance(4)) attrs["left_window"] = d.pick(0, 3);
  return d.op("attention", std::move(o.inputs), std::move(attrs));
}

// Long enough now and then for several blocks of keys and tasks of several rows.
Result<ValueId> attend(Draw& d, DType t) {
  const int64_t b = d.pick(1, 2);
  const int64_t groups = d.pick(1, 2);
  const int64_t heads = groups * d.pick(1, 2);
  const int64_t s = d.chance(3) ? d.pick(8, 20) : d.pick(1, 4);
  const int64_t keys = d.chance(3) ? d.pick(120, 270) : d.pick(1, 9);
  const int64_t size = d.pick(1, 9);
  const int64_t out = d.pick(1, 9);
  Operands o{{d.tensor(t, {b, heads, s, size}), d.tensor(t, {b, groups, keys, size}),
              d.tensor(t, {b, groups, keys, out})},
             ""};
  if (d.flip()) {
    o.add("mask", d.tensor(d.flip() ? DType::kBool : t, d.broadcastable({b, heads, s, keys})));
  }
  if (d.chance(4)) {
    o.add("lengths", d.fresh(DType::kI64, {b}, 1.0, static_cast<double>(keys) + 0.5));
  }
  Attrs attrs{{"with", o.with}, {"causal", d.chance(3)}, {"scale", 0.5}};
  if (d.chance(3)) attrs["softcap"] = 2.0;
  if (d.chance(4)) attrs["left_window"] = d.pick(0, 3);
  if (d.chance(4)) attrs["past"] = d.pick(0, 3);
  return d.op("attend", std::move(o.inputs), std::move(attrs));
}

Result<ValueId> linear_attention(Draw& d, DType t) {
  const int64_t b = d.pick(1, 2);
  const int64_t steps = d.pick(1, 3);
  const int64_t groups = d.pick(1, 2);
  const int64_t heads = groups * d.pick(1, 2);
  const int64_t key = d.pick(1, 4);
  const int64_t value = d.pick(1, 4);
  const std::string rule = d.word({"linear", "gated", "delta", "gated_delta"});
  Operands o{{d.tensor(t, {b, steps, heads * key}), d.tensor(t, {b, steps, groups * key}),
              d.tensor(t, {b, steps, groups * value})},
             ""};
  if (d.flip()) o.add("past_state", d.tensor(t, {b, groups, key, value}));
  if (rule.starts_with("gated")) {
    o.add("decay", d.tensor_in(t, {b, steps, d.flip() ? groups : groups * key}, -1.0, 0.0));
  }
  if (rule.ends_with("delta")) o.add("beta", d.tensor(t, {b, steps, d.flip() ? groups : 1}));
  return d.op(
      "linear_attention", std::move(o.inputs),
      {{"with", o.with}, {"num_heads", heads}, {"kv_num_heads", groups}, {"update_rule", rule}});
}

Result<ValueId> causal_conv(Draw& d, DType t) {
  const int64_t b = d.pick(1, 2);
  const int64_t channels = d.pick(1, 3);
  const int64_t k = d.pick(1, 4);
  Operands o{{d.tensor(t, {b, channels, d.pick(1, 6)}), d.tensor(t, {channels, 1, k})}, ""};
  if (d.flip()) o.add("bias", d.tensor(t, {channels}));
  if (d.flip()) o.add("past_state", d.tensor(t, {b, channels, k - 1}));
  return d.op("causal_conv_with_state", std::move(o.inputs),
              {{"with", o.with}, {"activation", d.word({"none", "silu", "swish"})}});
}

Result<ValueId> rotary_embedding(Draw& d, DType t) {
  const int64_t b = d.pick(1, 2);
  const int64_t s = d.pick(1, 3);
  const int64_t heads = d.pick(1, 3);
  const int64_t half = d.pick(1, 3);
  const int64_t size = 2 * half + (d.chance(3) ? 2 : 0);
  const bool flat = d.flip();
  const bool ids = d.flip();
  const Shape table = ids ? Shape{d.pick(1, 5), half} : Shape{b, s, half};
  std::vector<ValueId> inputs{
      d.tensor(t, flat ? Shape{b, s, heads * size} : Shape{b, heads, s, size}), d.tensor(t, table),
      d.tensor(t, table)};
  if (ids) inputs.push_back(d.indices({b, s}, 0, table[0] - 1));
  Attrs attrs{{"interleaved", d.flip()}, {"rotary_dim", 2 * half}};
  if (flat) attrs["num_heads"] = heads;
  return d.op("rotary_embedding", std::move(inputs), std::move(attrs));
}

struct Cell {
  std::string_view op;
  int64_t gates;
  int functions;  // of one direction
};

Result<ValueId> recurrent(Draw& d, DType t, const Cell& cell, Attrs attrs) {
  const int64_t steps = d.pick(1, 3);
  const int64_t b = d.pick(1, 2);
  const int64_t in = d.pick(1, 4);
  const int64_t hidden = d.pick(1, 4);
  const std::string direction = d.word({"forward", "reverse", "bidirectional"});
  const int64_t dirs = direction == "bidirectional" ? 2 : 1;
  const bool batch_first = d.chance(3);
  const Shape state = batch_first ? Shape{b, dirs, hidden} : Shape{dirs, b, hidden};
  const int64_t width = cell.gates * hidden;
  Operands o{{d.tensor(t, batch_first ? Shape{b, steps, in} : Shape{steps, b, in}),
              d.tensor(t, {dirs, width, in}), d.tensor(t, {dirs, width, hidden})},
             ""};
  if (d.flip()) o.add("b", d.tensor(t, {dirs, 2 * width}));
  if (d.chance(3))
    o.add("sequence_lens", d.fresh(DType::kI32, {b}, 1.0, static_cast<double>(steps) + 0.5));
  if (d.flip()) o.add("initial_h", d.tensor(t, state));
  if (cell.op == "lstm" && d.flip()) o.add("initial_c", d.tensor(t, state));
  if (cell.op == "lstm" && d.chance(3)) o.add("p", d.tensor(t, {dirs, 3 * hidden}));
  attrs["with"] = o.with;
  attrs["direction"] = direction;
  attrs["layout"] = int64_t{batch_first ? 1 : 0};
  if (d.chance(3)) attrs["clip"] = 1.5;
  if (d.chance(3)) {
    std::string names;
    for (int64_t i = 0; i < dirs * cell.functions; ++i) {
      names += (i == 0 ? "" : ",") + d.word({"Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign"});
    }
    attrs["activations"] = names;
  }
  return d.op(cell.op, std::move(o.inputs), std::move(attrs));
}
Result<ValueId> lstm(Draw& d, DType t) {
  return recurrent(d, t, {"lstm", 4, 3}, {{"input_forget", d.chance(4)}});
}
Result<ValueId> gru(Draw& d, DType t) {
  return recurrent(d, t, {"gru", 3, 2}, {{"linear_before_reset", d.flip()}});
}
Result<ValueId> rnn(Draw& d, DType t) { return recurrent(d, t, {"rnn", 1, 1}, {}); }

// The shape of scales for a shape: one, one per index of an axis, or one per
// block.
struct Scales {
  Shape shape;
  Shape scale;
  int64_t axis = 1;
  int64_t block = 0;
};
Scales scales(Draw& d) {
  Scales s{d.shape(2, 4, 1), {}, 1, 0};
  s.axis = d.pick(0, std::ssize(s.shape) - 1);
  const int64_t n = s.shape[static_cast<size_t>(s.axis)];
  if (d.chance(3)) return s;
  s.scale = {n};
  if (d.flip()) return s;
  s.block = d.pick(1, n);
  s.scale = s.shape;
  s.scale[static_cast<size_t>(s.axis)] = (n + s.block - 1) / s.block;
  return s;
}

DType quantized(Draw& d) {
  if (d.tame()) return d.choose({DType::kI8, DType::kU8, DType::kI16, DType::kU16});
  return d.choose({DType::kI8, DType::kU8, DType::kI4, DType::kU4, DType::kI16, DType::kU16,
                   DType::kF8E4M3FN, DType::kF8E5M2, DType::kI2, DType::kF4E2M1});
}

Result<ValueId> quantize(Draw& d, DType t) {
  const Scales s = scales(d);
  const DType to = quantized(d);
  const DType scale = is_float(t) ? t : DType::kF32;
  std::vector<ValueId> inputs{d.tensor(t, s.shape), d.tensor_in(scale, s.scale, 0.1, 1.0)};
  if (d.flip()) inputs.push_back(d.tensor_in(to, s.scale, 0.0, is_float(to) ? 0.0 : 2.0));
  Attrs attrs{{"to", to}, {"axis", s.axis}, {"block_size", s.block}};
  if (is_float(to)) attrs["saturate"] = d.flip();
  return d.op("quantize", std::move(inputs), std::move(attrs));
}

Result<ValueId> dequantize(Draw& d, DType t) {
  const Scales s = scales(d);
  const DType to = d.float_dtype();
  std::vector<ValueId> inputs{d.tensor(t, s.shape), d.tensor_in(to, s.scale, 0.1, 1.0)};
  if (d.flip()) inputs.push_back(d.tensor_in(t, s.scale, 0.0, is_float(t) ? 0.0 : 2.0));
  return d.op("dequantize", std::move(inputs),
              {{"to", to}, {"axis", s.axis}, {"block_size", s.block}});
}

Result<ValueId> dynamic_quantize(Draw& d, DType t) {
  return d.op("dynamic_quantize", {d.tensor(t, d.shape(0, 4, 1))});
}

// Rate, step, x, gradient and states.
Result<ValueId> optimizer(Draw& d, DType t, std::string_view op, int states, Attrs attrs) {
  const Shape shape = d.shape();
  std::vector<ValueId> inputs{d.tensor(d.float_dtype(), {}), d.indices({}, 0, 3)};
  for (int i = 0; i < 2 + states; ++i) inputs.push_back(d.tensor(t, shape));
  if (d.flip()) attrs["norm_coefficient"] = 0.125;
  return d.op(op, std::move(inputs), std::move(attrs));
}
Result<ValueId> adagrad(Draw& d, DType t) {
  return optimizer(d, t, "adagrad", 1, {{"decay_factor", d.choose({0.0, 0.25})}});
}
Result<ValueId> adam(Draw& d, DType t) {
  return optimizer(d, t, "adam", 2, {{"norm_coefficient_post", d.choose({0.0, 0.25})}});
}
Result<ValueId> momentum(Draw& d, DType t) {
  return optimizer(d, t, "momentum", 1,
                   {{"alpha", 0.75}, {"beta", 0.5}, {"mode", d.word({"standard", "nesterov"})}});
}

constexpr Recipe kModelRecipes[] = {
    {"adagrad", adagrad},
    {"adam", adam},
    {"attend", attend},
    {"attention", attention},
    {"causal_conv_with_state", causal_conv},
    {"contract", contract},
    {"dequantize", dequantize},
    {"det", det},
    {"dft", dft},
    {"dynamic_quantize", dynamic_quantize, true},
    {"einsum", einsum},
    {"gemm", gemm},
    {"gru", gru},
    {"linear_attention", linear_attention},
    {"lstm", lstm},
    {"matmul", matmul},
    {"matmul_integer", matmul_integer},
    {"momentum", momentum},
    {"quantize", quantize, true},
    {"rnn", rnn},
    {"rotary_embedding", rotary_embedding},
    {"stft", stft},
};

}  // namespace

Recipes model_recipes() { return kModelRecipes; }

}  // namespace pyc::test
