#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/onnx/rules.h"
#include "import/onnx/tensor.h"

namespace pyc::onnx {

namespace {

// Scales and zero points of rows stand along the last dim but one.
ValueId per_row(CloseContext& c, ValueId v) {
  Shape s = c.shape(v);
  if (s.size() != 1 || s[0] == 1) return c.type(v).elements() == 1 ? c.reshape(v, {}) : v;
  s.push_back(1);
  return c.reshape(v, s);
}

Status qlinear_matmul(CloseContext& c) {
  const ValueId a = c.input(0);
  const ValueId b = c.input(3);
  const DType y = c.dtype(c.input(7));
  const ValueId a_scale = c.cast(per_row(c, c.input(1)), DType::kF32);
  const ValueId b_scale = c.cast(c.input(4), DType::kF32);
  const ValueId y_scale = c.cast(c.input(6), DType::kF32);
  ValueId real = a;
  if (c.ok() && is_int(c.dtype(a))) {
    const ValueId sum = c.op("matmul_integer", {a, b, c.input(2), c.input(5)},
                             {{"with", std::string("a_zero_point,b_zero_point")}});
    real = c.op("mul", {c.cast(sum, DType::kF32), c.op("mul", {a_scale, b_scale})});
  } else {
    real = c.op("matmul", {c.op("mul", {c.cast(a, DType::kF32), a_scale}),
                           c.op("mul", {c.cast(b, DType::kF32), b_scale})});
  }
  const bool rows = c.ok() && c.type(y_scale).elements() > 1;
  const auto shaped = [&](ValueId v) { return rows ? v : c.reshape(v, {}); };
  Attrs attrs{{"to", y}};
  if (rows) attrs["axis"] = c.rank(real) - 2;
  return c.give(c.op("quantize", {real, shaped(y_scale), shaped(c.input(7))}, std::move(attrs)));
}

// x, its scale and, if given, its zero point; those of one element as scalars.
std::vector<ValueId> quantized_inputs(CloseContext& c) {
  std::vector<ValueId> in{c.input(0)};
  for (size_t i = 1; i < 3; ++i) {
    if (i == 2 && !c.has(i)) break;
    const ValueId v = c.input(i);
    in.push_back(c.type(v).elements() == 1 && c.rank(v) < 2 ? c.reshape(v, {}) : v);
  }
  return in;
}

Status quantize(CloseContext& c) {
  const std::vector<ValueId> in = quantized_inputs(c);
  DType to = dtype_attr(c, "output_dtype", DType::kU8);
  if (c.has(2)) to = c.dtype(c.input(2));
  return c.give(c.op("quantize", in,
                     {{"to", to},
                      {"axis", c.attr_int("axis", 1)},
                      {"block_size", c.attr_int("block_size", 0)},
                      {"saturate", c.attr_int("saturate", 1) != 0}}));
}

Status dequantize(CloseContext& c) {
  const std::vector<ValueId> in = quantized_inputs(c);
  return c.give(c.op("dequantize", in,
                     {{"to", dtype_attr(c, "output_dtype", c.dtype(c.input(1)))},
                      {"axis", c.attr_int("axis", 1)},
                      {"block_size", c.attr_int("block_size", 0)}}));
}

// [B,S,H·D] as [B,H,S,D].
ValueId split_heads(CloseContext& c, ValueId v, int64_t heads) {
  const Shape s = c.shape(v);
  if (!c.ok() || s.size() == 4) return v;
  if (s.size() != 3 || heads < 1 || s[2] % heads != 0) {
    c.refuse(Code::kShapeMismatch,
             fmt::format("{} does not divide into {} heads", c.type(v).to_string(), heads));
    return v;
  }
  return c.transpose(c.reshape(v, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

ValueId join_heads(CloseContext& c, ValueId v) {
  const Shape s = c.shape(v);
  if (!c.ok()) return v;
  return c.reshape(c.transpose(v, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

Status attention(CloseContext& c) {
  const bool flat = c.rank(c.input(0)) == 3;
  const int64_t q_heads = c.attr_int("q_num_heads", 0);
  const int64_t kv_heads = c.attr_int("kv_num_heads", 0);
  Operands o = operands_of(c, 3, "mask past_key past_value nonpad_kv_seqlen");
  if (!c.ok()) return c.status();
  for (size_t i = 0; i < 3; ++i)
    o.inputs[i] = split_heads(c, o.inputs[i], i == 0 ? q_heads : kv_heads);
  Attrs attrs{{"with", o.with},
              {"causal", c.attr_int("is_causal", 0) != 0},
              {"softcap", c.attr_float("softcap", 0.0)},
              {"left_window", c.attr_int("left_window_size", -1)},
              {"right_window", c.attr_int("right_window_size", -1)},
              {"qk_output", c.attr_int("qk_matmul_output_mode", 0)}};
  if (c.has_attr("scale")) attrs["scale"] = c.attr_float("scale", 0.0);
  const ValueId y = c.op("attention", o.inputs, std::move(attrs));
  if (!c.ok()) return c.status();
  c.set(0, flat ? join_heads(c, y) : y);
  for (size_t i = 1; i < c.outputs(); ++i) c.set(i, c.result(y, i));
  return c.status();
}

ValueId through_region(CloseContext& c, const open::OpenGraph& region, ValueId v) {
  const std::vector<ValueId> out = c.region(region, std::span(&v, 1));
  if (c.ok() && out.size() != 1) c.refuse(Code::kInvalidArgument, "a region returns one output");
  return c.ok() ? out[0] : v;
}

// Attention with the scores and the probabilities passed through the model's own regions.
Status flex_attention(CloseContext& c) {
  const ValueId q = c.input(0);
  ValueId k = c.input(1);
  ValueId v = c.input(2);
  if (!c.ok()) return c.status();
  const DType t = c.dtype(q);
  const Shape qs = c.shape(q);
  if (qs.size() != 4) return c.refused(Code::kRankMismatch, "expected inputs of rank 4");
  const DType wide = c.has_attr("softmax_precision")
                         ? dtype_attr(c, "softmax_precision", DType::kF32)
                         : (t == DType::kF64 ? DType::kF64 : DType::kF32);
  const auto share = [&](ValueId x) {
    const Shape s = c.shape(x);
    if (c.ok() && s.size() != 4) c.refuse(Code::kRankMismatch, "expected inputs of rank 4");
    if (!c.ok() || s[1] == qs[1] || s[1] == 0) return x;
    const int64_t each = qs[1] / s[1];
    const ValueId five = c.reshape(x, {s[0], s[1], 1, s[2], s[3]});
    return c.reshape(c.op("expand", {five}, {{"shape", Ints{s[0], s[1], each, s[2], s[3]}}}),
                     {s[0], qs[1], s[2], s[3]});
  };
  k = share(k);
  v = share(v);
  const double scale =
      c.attr_float("scale", 1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(qs[3], 1))));
  ValueId scores = c.op("matmul", {c.cast(q, wide), c.transpose(c.cast(k, wide), {0, 1, 3, 2})});
  scores = c.op("mul", {scores, c.scalar_like(scores, scale)});
  if (const open::OpenGraph* mod = c.attr_graph("score_mod")) {
    scores = through_region(c, *mod, scores);
  }
  ValueId probs = c.op("softmax", {scores}, {{"axis", int64_t{-1}}});
  if (const open::OpenGraph* mod = c.attr_graph("prob_mod")) {
    probs = through_region(c, *mod, probs);
  }
  return c.give(c.cast(c.op("matmul", {probs, c.cast(v, wide)}), t));
}

constexpr Rule kProductRules[] = {
    {"Attention", attention},
    {"DequantizeLinear", dequantize},
    {"FlexAttention", flex_attention, nullptr, 1, "ai.onnx.preview"},
    {"QLinearMatMul", qlinear_matmul},
    {"QuantizeLinear", quantize},
};

}  // namespace

Rules product_rules() { return kProductRules; }

}  // namespace pyc::onnx
