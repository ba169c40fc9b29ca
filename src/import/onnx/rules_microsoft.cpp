// Ops of com.microsoft that quantized and fused exports contain.

#include <fmt/format.h>

#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

// Input i with the scale and zero point that follow it, as f32.
ValueId real(CloseContext& c, size_t i) {
  std::vector<ValueId> in{c.input(i), c.reshape(c.input(i + 1), {})};
  if (c.has(i + 2)) in.push_back(c.reshape(c.input(i + 2), {}));
  return c.op("dequantize", in, {{"to", DType::kF32}});
}

// `x` quantized by scale and zero point at inputs i and i+1, as the dtype of input 0.
Status quantized(CloseContext& c, ValueId x, size_t i) {
  std::vector<ValueId> in{x, c.reshape(c.input(i), {})};
  if (c.has(i + 1)) in.push_back(c.reshape(c.input(i + 1), {}));
  return c.give(c.op("quantize", in, {{"to", c.dtype(c.input(0))}}));
}

template <Name Op>
Status qlinear_binary(CloseContext& c) {
  return quantized(c, c.op(Op.text, {real(c, 0), real(c, 3)}), 6);
}

template <Name Op>
Status qlinear_unary(CloseContext& c) {
  return quantized(c, c.op(Op.text, {real(c, 0)}), 3);
}

Status qlinear_leaky_relu(CloseContext& c) {
  const ValueId y = c.op("leaky_relu", {real(c, 0)}, {{"alpha", c.attr_float("alpha", 0.01)}});
  return quantized(c, y, 3);
}

Status qlinear_global_avg_pool(CloseContext& c) {
  if (c.attr_int("channels_last", 0) != 0) {
    return c.refused(Code::kUnsupported, "channels_last is not supported");
  }
  return quantized(c, c.op("global_avg_pool", {real(c, 0)}), 3);
}

// Inputs: scale and zero point of the result, then each part with its own.
Status qlinear_concat(CloseContext& c) {
  std::vector<ValueId> parts;
  for (size_t i = 2; i + 1 < c.inputs(); i += 3) parts.push_back(real(c, i));
  if (parts.empty()) return c.refused(Code::kInvalidArgument, "there is nothing to join");
  const int64_t axis = axis_of(c, c.attr_int("axis", 0), c.rank(parts[0]));
  const ValueId joined = parts.size() == 1 ? parts[0] : c.op("concat", parts, {{"axis", axis}});
  std::vector<ValueId> in{joined, c.reshape(c.input(0), {}), c.reshape(c.input(1), {})};
  return c.give(c.op("quantize", in, {{"to", c.dtype(c.input(2))}}));
}

Status fused_matmul(CloseContext& c) {
  const auto flipped = [&](ValueId v, bool flip) {
    const int64_t rank = c.rank(v);
    if (!c.ok() || !flip || rank < 2) return v;
    Ints perm;
    for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return c.transpose(v, perm);
  };
  const ValueId y = c.op("matmul", {flipped(c.input(0), c.attr_int("transA", 0) != 0),
                                    flipped(c.input(1), c.attr_int("transB", 0) != 0)});
  const double alpha = c.attr_float("alpha", 1.0);
  return c.give(alpha == 1.0 ? y : c.op("mul", {y, c.scalar_like(y, alpha)}));
}

Status bias_gelu(CloseContext& c) {
  const ValueId x = c.has(1) ? c.op("add", {c.input(0), c.input(1)}) : c.input(0);
  return c.give(c.op("gelu", {x}));
}

Status fast_gelu(CloseContext& c) {
  const ValueId x = c.has(1) ? c.op("add", {c.input(0), c.input(1)}) : c.input(0);
  return c.give(c.op("gelu", {x}, {{"approximate", std::string("tanh")}}));
}

// y = layer_norm(x + skip + bias); the sum is output 3.
Status skip_layer_norm(CloseContext& c) {
  ValueId sum = c.op("add", {c.input(0), c.input(1)});
  if (c.has(4)) sum = c.op("add", {sum, c.input(4)});
  std::vector<ValueId> in{sum, c.input(2)};
  if (c.has(3)) in.push_back(c.input(3));
  c.set(0, c.op("layer_norm", in, {{"epsilon", c.attr_float("epsilon", 1e-12)}}));
  if (c.wants(3)) c.set(3, sum);
  if (c.wants(1) || c.wants(2)) c.refuse(Code::kUnsupported, "mean and deviation as outputs");
  return c.status();
}

Status gelu(CloseContext& c) { return c.give(c.op("gelu", c.all_inputs())); }

constexpr Rule kMicrosoftRules[] = {
    {"BiasGelu", bias_gelu, nullptr, 1, kDomain},
    {"FastGelu", fast_gelu, nullptr, 1, kDomain},
    {"FusedMatMul", fused_matmul, nullptr, 1, kDomain},
    {"Gelu", gelu, nullptr, 1, kDomain},
    {"QLinearAdd", qlinear_binary<"add">, nullptr, 1, kDomain},
    {"QLinearConcat", qlinear_concat, nullptr, 1, kDomain},
    {"QLinearGlobalAveragePool", qlinear_global_avg_pool, nullptr, 1, kDomain},
    {"QLinearLeakyRelu", qlinear_leaky_relu, nullptr, 1, kDomain},
    {"QLinearMul", qlinear_binary<"mul">, nullptr, 1, kDomain},
    {"QLinearSigmoid", qlinear_unary<"sigmoid">, nullptr, 1, kDomain},
    {"SkipLayerNormalization", skip_layer_norm, nullptr, 1, kDomain},
};

}  // namespace

Rules microsoft_rules() { return kMicrosoftRules; }

}  // namespace pyc::onnx
