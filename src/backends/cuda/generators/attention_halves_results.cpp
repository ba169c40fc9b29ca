#include <fmt/format.h>

#include <limits>

#include "backends/cuda/c_types.h"
#include "backends/cuda/generators/attention_halves_writer.h"
#include "base/convert.h"

namespace pyc::cuda {

using lower::Attention;

void HalvesWriter::find_quotient() {
  loop::Pool& pool = formulas_.pool();
  const loop::ExprId l = pool.var(a_.l);
  for (loop::ExprId e = 0; e < static_cast<loop::ExprId>(pool.size()); ++e) {
    const loop::ExprNode& n = pool.node(e);
    if (n.op == loop::Op::kDiv && n.dtype == DType::kF32 && n.b == l) quotient_ = e;
  }
  if (quotient_ != loop::kNone && a_.outputs[0].buffer != loop::kNone) {
    stored_quotient_ = is_rounded_quotient(formulas_.written(a_.outputs[0].value));
  }
}

// Whether a result is o / l rounded to a half, but for what cannot be where both are moderate: a
// row without a key, a NaN, and −0 in o.
bool HalvesWriter::is_rounded_quotient(loop::ExprId e) {
  loop::Pool& pool = formulas_.pool();
  const loop::ExprId m = pool.var(a_.m);
  const loop::ExprId o = pool.var(a_.o);
  const auto is_number = [&](loop::ExprId x, double y) {
    const loop::ExprNode& n = pool.node(x);
    return n.op == loop::Op::kConst && n.dtype == DType::kF32 &&
           word_to_double(n.word, DType::kF32) == y;
  };
  bool rounded = false;
  while (e != quotient_) {
    const loop::ExprNode& n = pool.node(e);
    if (n.op == loop::Op::kConvert && n.dtype == a_.factors && !rounded) {
      rounded = true;
      e = n.a;
      continue;
    }
    if (n.op != loop::Op::kSelect) return false;
    const loop::ExprNode& c = pool.node(n.a);
    const bool is_nan = c.op == loop::Op::kNe && c.a == c.b;
    const bool has_no_key = c.op == loop::Op::kEq && c.a == m &&
                            is_number(c.b, -std::numeric_limits<double>::infinity());
    if (!is_nan && !has_no_key) return false;
    e = n.c;
  }
  const loop::ExprId over = pool.node(quotient_).a;
  const loop::ExprNode& sum = pool.node(over);
  return rounded &&
         (over == o || (sum.op == loop::Op::kAdd && sum.a == o && is_number(sum.b, 0.0)));
}

// Columns of row h. They are a multiple of eight, so a pair of floats lies at a multiple of eight
// bytes.
std::string HalvesWriter::result_columns(bool by_reciprocal) const {
  if (by_reciprocal && stored_quotient_) {
    return in(R"(PYC_UNROLL for (i32 i = 0; i < {SUMS}; i += 4) {{
  words[i / 4] = pyc_halves(pyc_quotient(o[i + h * 2], l_end, high, low),
                            pyc_quotient(o[i + h * 2 + 1], l_end, high, low));
  }}
)");
  }
  const Attention::Output& out = a_.outputs[0];
  const DType type = formulas_.kernel().buffers[out.buffer].dtype;
  std::string text =
      in("PYC_UNROLL for (i32 i = 0; i < {SUMS}; i += 4) {{\nconst i32 c = i * 2 + quad * 2;\n");
  text += fmt::format("PYC_ALIGN16 {} y[2];\n", memory_type(type));
  text += "PYC_UNROLL for (i32 e = 0; e < 2; ++e) {\nconst float o_end = o[i + h * 2 + e];\n";
  text += formulas_.text([&](Emitter& emitter) {
    emitter.declare(a_.o, "o_end");
    emitter.declare(a_.m, "m_end");
    emitter.declare(a_.l, "l_end");
    if (by_reciprocal) {
      const std::string x = emitter.value(formulas_.kernel().pool.node(quotient_).a);
      emitter.line(fmt::format("const float quotient = pyc_quotient({}, l_end, high, low);", x));
      emitter.loaded_[quotient_] = "quotient";
    }
    emitter.line(fmt::format("y[e] = ({}){};", memory_type(type),
                             emitter.value(formulas_.written(out.value))));
  });
  if (dtype_size(type) == 2) return text + "}\nwords[i / 4] = *(pyc_v4*)y;\n}\n";
  text += a_.columns < z_.columns ? in("}}\nif (c < {COLUMNS}) ") : "}\n";
  return text +
         fmt::format("*(PYC_GLOBAL pyc_v{0}*)({1} + (place * {2} + c)) = *(pyc_v{0}*)y;\n}}\n",
                     2 * dtype_size(type), buffer_name(out.buffer), a_.columns);
}

// Four neighbours have two columns each of eight that lie side by side. They exchange those of four
// such places, so that each has all of one and stores 16 bytes.
std::string HalvesWriter::whole_words(uint32_t buffer) const {
  std::string text = in("PYC_UNROLL for (i32 b = 0; b < {SUMS} / 4; b += 4) {{\n");
  for (const int distance : {1, 2}) {
    text += fmt::format(R"(PYC_UNROLL for (i32 i = 0; i < 4; ++i) {{
  if ((i & {0}) != 0) continue;
  u32& low = words[b + i];
  u32& high = words[b + i + {0}];
  const bool upper = (quad & {0}) != 0;
  const u32 other = pyc_shuffle_xor_u32(upper ? low : high, {0}u);
  low = upper ? other : low;
  high = upper ? high : other;
  }}
)",
                        distance);
  }
  return text +
         in("const pyc_v16 all = {{words[b], words[b + 1], words[b + 2], words[b + 3]}};\n"
            "const i32 c = (b + quad) * 8;\n"
            "if (row < {QUERIES} && c < {COLUMNS}) ") +
         fmt::format("*(PYC_GLOBAL pyc_v16*)({} + (place * {} + c)) = all;\n}}\n",
                     buffer_name(buffer), a_.columns);
}

// A row is divided by its sum through the sum's reciprocal, where all of it is moderate.
std::string HalvesWriter::results() const {
  std::string text = in(R"(PYC_UNROLL for (i32 h = 0; h < 2; ++h) {{
  const i32 row = own + h * 8;
  const i64 place = (i64)head * {QUERIES} + row;
  const float m_end = m[h];
  const float l_end = l[h];
)");
  const uint32_t y = a_.outputs[0].buffer;
  const bool halves = y != loop::kNone && dtype_size(formulas_.kernel().buffers[y].dtype) == 2;
  text += halves ? in("u32 words[{SUMS} / 4];\n{{\n") : in("if (row < {QUERIES}) {{\n");
  if (a_.outputs[0].buffer != loop::kNone && quotient_ == loop::kNone) {
    text += result_columns(false);
  } else if (a_.outputs[0].buffer != loop::kNone) {
    text += in(R"(u32 outside = pyc_f32_bits(l_end) - (97u << 23) < 60u << 23 ? 0u : 1u << 30;
  PYC_UNROLL for (i32 i = 0; i < {SUMS}; i += 4) {{
  PYC_UNROLL for (i32 e = 0; e < 2; ++e) outside |= pyc_f32_bits(o[i + h * 2 + e]) - (67u << 23);
  }}
  if ((outside & 1u << 30) == 0u) {{
  const float high = pyc_div_f32(0x1p+0f, l_end);
  const float low = pyc_mul_f32(pyc_fma_f32(-l_end, high, 0x1p+0f), high);
)") + result_columns(true) +
            "} else {\n" + result_columns(false) + "}\n";
  }
  if (halves) text += "}\n" + whole_words(y) + in("if (row < {QUERIES}) {{\n");
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const Attention::Output& out = a_.outputs[i];
    if (out.buffer == loop::kNone) continue;
    text += "if (quad == 0) {\n" +
            formulas_.assigned(fmt::format("{}[place]", buffer_name(out.buffer)),
                               formulas_.written(out.value), {{a_.m, "m_end"}, {a_.l, "l_end"}},
                               memory_type(formulas_.kernel().buffers[out.buffer].dtype)) +
            "}\n";
  }
  return text + "}\n}\n";
}

}  // namespace pyc::cuda
