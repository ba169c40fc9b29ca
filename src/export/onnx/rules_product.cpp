#include "export/onnx/rules.h"

namespace pyc::onnx::exporting {
namespace {

void quantize(Emitter& e) {
  NodeAttrs attrs = e.attrs("axis block_size saturate");
  if (e.in_type(1).dtype != e.in_type(0).dtype) e.need(23);
  if (e.inputs() == 2) attrs.emplace_back("output_dtype", onnx_type(e.dtype("to")));
  e.emit("QuantizeLinear", e.all_inputs(), attrs);
}

void dequantize(Emitter& e) {
  if (e.in_type(1).dtype == DType::kF64) return e.refuse("ONNX has no scales in f64");
  NodeAttrs attrs = e.attrs("axis block_size");
  if (e.dtype("to") != e.in_type(1).dtype) {
    e.need(23);
    attrs.emplace_back("output_dtype", onnx_type(e.dtype("to")));
  }
  e.emit("DequantizeLinear", e.all_inputs(), attrs);
}

bool has_window(Emitter& e) {
  return e.integer("left_window") >= 0 || e.integer("right_window") >= 0;
}

void add_window(Emitter& e, NodeAttrs& attrs) {
  if (!has_window(e)) return;
  e.need(25);
  attrs.emplace_back("left_window_size", e.integer("left_window"));
  attrs.emplace_back("right_window_size", e.integer("right_window"));
}

// A mask of fewer than two dims means the same with dims of 1 in front; ONNX Runtime takes no
// other.
void lift_mask(Emitter& e, Names& in) {
  if (in.size() <= 3 || in[3].empty()) return;
  const ir::Shape& shape = e.in_type(3).shape;
  if (shape.size() >= 2) return;
  in[3] = e.make("Reshape", {in[3], e.int_list({1, shape.empty() ? 1 : shape[0]})});
}

void attention(Emitter& e) {
  NodeAttrs attrs = e.attrs("is_causal=causal softcap qk_matmul_output_mode=qk_output");
  if (e.real("scale") != 0.0) attrs.emplace_back("scale", static_cast<float>(e.real("scale")));
  Names in = e.optional_inputs(3, "mask past_key past_value nonpad_kv_seqlen");
  lift_mask(e, in);
  if (in.size() == 7) e.need(24);
  add_window(e, attrs);
  e.write("Attention", in, e.read_outputs(), attrs);
}

// What attention expands to: ONNX's with the same meaning, where there is one.
void attend(Emitter& e) {
  const bool placed = e.flag("causal") || has_window(e);
  const double scale = e.real("scale");
  if (e.read_outputs().size() > 1) return e.refuse("ONNX has no maxima and sums of rows");
  if (e.node().attrs.contains("stored_as")) return e.refuse("ONNX would round what it sums, too");
  if (placed && e.integer("past") != 0)
    return e.refuse("its queries come after keys that were passed in");
  if (scale == 0.0 || (e.out_type().dtype == DType::kF64 && static_cast<float>(scale) != scale)) {
    return e.refuse("ONNX has no such scale");
  }
  NodeAttrs attrs = e.attrs("is_causal=causal softcap");
  attrs.emplace_back("scale", static_cast<float>(scale));
  Names in = e.optional_inputs(3, "mask past_key past_value lengths");
  for (size_t i = 0; i < 3; ++i) in[i] = e.wide_in(i);
  if (in.size() > 3 && !in[3].empty()) in[3] = e.wide_in(3);
  lift_mask(e, in);
  if (in.size() == 7) e.need(24);
  add_window(e, attrs);
  e.write("Attention", in, e.read_outputs(), attrs);
}

void linear_attention(Emitter& e) {
  NodeAttrs attrs = e.attrs("q_num_heads=num_heads kv_num_heads update_rule");
  if (e.real("scale") != 0.0) attrs.emplace_back("scale", static_cast<float>(e.real("scale")));
  e.emit("LinearAttention", e.onnx_inputs(), attrs);
}

void rotary_embedding(Emitter& e) {
  Names in = e.all_inputs();
  if (in.size() > 3) in[3] = e.cast(in[3], e.in_type(3).dtype, DType::kI64);
  e.emit("RotaryEmbedding", in, e.attrs("interleaved rotary_embedding_dim=rotary_dim num_heads"));
}

void dft(Emitter& e) {
  const std::string length =
      e.integer("length") == 0 ? std::string() : e.int_scalar(e.integer("length"));
  e.emit("DFT", {e.in(0), length, e.int_scalar(e.integer("axis"))}, e.attrs("inverse onesided"));
}

void stft(Emitter& e) {
  Names in{e.in(0), e.int_scalar(e.integer("frame_step")), e.inputs() > 1 ? e.in(1) : ""};
  if (e.integer("frame_length") != 0) in.push_back(e.int_scalar(e.integer("frame_length")));
  while (in.back().empty()) in.pop_back();
  e.emit("STFT", in, e.attrs("onesided"));
}

void einsum(Emitter& e) {
  if (e.node().attrs.contains("to") && e.inputs() > 2) {
    return e.refuse("with `to` ONNX would not round what is joined first");
  }
  e.emit("Einsum", e.all_inputs(), e.attrs("equation"));
}

// Of two operands or one, which is an einsum too; importing gives that.
void contract(Emitter& e) { e.emit("Einsum", e.all_inputs(), e.attrs("equation")); }

constexpr Rule kProductRules[] = {
    {"attend", attend, {.since = 23}},
    {"attention", attention, {.since = 23}},
    {"contract", contract, {.dtypes = kNumbersButBf16}},
    {"dequantize", dequantize, {.small = true}},
    {"dft", dft},
    {"einsum", einsum},
    {"linear_attention", linear_attention},
    {"quantize", quantize, {.dtypes = "f16 bf16 f32 i32", .small = true}},
    {"rotary_embedding", rotary_embedding},
    {"stft", stft},
};

}  // namespace

Rules product_rules() { return kProductRules; }

}  // namespace pyc::onnx::exporting
