// Attention in f32: a block of threads takes some queries of one head through all blocks of keys.
// Scores and the sums over values are register tiles over chunks in shared memory, each a chain in
// the order of its keys; rows then go through the group's own formulas, a warp a row. Bits are
// those of the group's kernel: neither the rows of a block nor the chunks enter.

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/generators/attention_formulas.h"
#include "backends/cuda/kernel_generator.h"
#include "lower/types.h"

namespace pyc::cuda {
namespace {

using lower::Attention;

constexpr int64_t kAttentionThreads = 128;
constexpr int64_t kKeys = 128;       // of a block, as lower/ cuts them
constexpr int64_t kMostDepth = 256;  // one segment of a chain
constexpr int64_t kMostColumns = 256;
constexpr int64_t kDepthChunk = 32;     // of the depth, at a time in shared memory
constexpr int64_t kChunkFloats = 4096;  // keys or values of a chunk
constexpr int64_t kRowGroups = 8;       // threads that share rows, by sixteen
constexpr int64_t kColumnGroups = 16;

constexpr double kAttentionFlopsPerNs = 15000.0;

bool is_f32(const std::optional<Attention::Operand>& x) { return x && x->dtype == DType::kF32; }

std::string rejected(const lower::Group& group) {
  const Attention& a = *group.attention;
  if (group.order != lower::kCanonicalOrder) return "order_not_canonical";
  if (a.dtype != DType::kF32 || !is_f32(a.q) || !is_f32(a.k) || !is_f32(a.v)) {
    return "operands_not_strided_f32";
  }
  if (a.batch_size() <= 0 || a.queries <= 0 || a.keys <= 0 || a.depth <= 0 || a.columns <= 0) {
    return "empty";
  }
  if (a.block > kKeys) return "block_of_keys_too_long";
  if (a.depth > kMostDepth) return "depth_over_a_segment";
  if (a.columns > kMostColumns) return "too_many_columns";
  if (!group.kernel.checks.empty()) return "has_checks";
  if (a.batch_size() > kMostBlocks || a.queries > (int64_t{1} << 24)) return "too_many_rows";
  return "";
}

int64_t rows_of(const Attention& a) {
  if (a.queries <= 8) return 8;
  return a.batch_size() * ((a.queries + 31) / 32) >= 2 * kMultiprocessors ? 32 : 16;
}

class Writer {
 public:
  Writer(const lower::Group& group, std::string symbol)
      : group_(group), a_(*group.attention), formulas_(group, std::move(symbol)) {
    rows_ = rows_of(a_);
    columns_ = (a_.columns + 63) / 64 * 64;
    names_.push_back(fmt::arg("R", rows_));
    names_.push_back(fmt::arg("RPT", rows_ / kRowGroups));
    names_.push_back(fmt::arg("CPT", columns_ / kColumnGroups));
    names_.push_back(fmt::arg("VECTORS", columns_ / 64));
    names_.push_back(fmt::arg("CP", columns_));
    // A power of two, so that chunks of a block end where it ends.
    names_.push_back(
        fmt::arg("VC", columns_ * kDepthChunk <= kChunkFloats ? kDepthChunk : kDepthChunk / 2));
    names_.push_back(fmt::arg("QP", kDepthChunk + 4));
    names_.push_back(fmt::arg("SP", kKeys + 4));
    names_.push_back(fmt::arg("CHUNK", kDepthChunk));
    names_.push_back(fmt::arg("DEPTH", a_.depth));
    names_.push_back(fmt::arg("KEYS", a_.keys));
    names_.push_back(fmt::arg("QUERIES", a_.queries));
    names_.push_back(fmt::arg("COLUMNS", a_.columns));
    names_.push_back(fmt::arg("BLOCK", a_.block));
    names_.push_back(fmt::arg("BLOCKS", (a_.keys + a_.block - 1) / a_.block));
    names_.push_back(fmt::arg("TILES", tiles()));
  }

  KernelText text();

 private:
  int64_t tiles() const { return (a_.queries + rows_ - 1) / rows_; }
  std::string in(std::string_view form) const { return fmt::vformat(form, names_); }

  std::string head();
  std::string load_keys() const;
  std::string load_queries() const;
  std::string load_values() const;
  std::string scores();
  std::string rows();
  std::string values() const;
  std::string results();

  const lower::Group& group_;
  const Attention& a_;
  AttentionFormulas formulas_;
  int64_t rows_ = 0;
  int64_t columns_ = 0;  // a multiple of 64
  fmt::dynamic_format_arg_store<fmt::format_context> names_;
};

// The block's place: its queries begin at `first` of the batch at0, at1, …
std::string Writer::head() {
  std::string text = in(R"(const i32 t = pyc_thread();
const i32 lane = t % 32;
const i32 warp = t / 32;
const i32 group = t / 16;
const i32 column = t % 16;
PYC_SHARED PYC_ALIGN16 float chunk[4096];
PYC_SHARED PYC_ALIGN16 float query[{R} * {QP}];
PYC_SHARED PYC_ALIGN16 float score[{R} * {SP}];
PYC_SHARED PYC_ALIGN16 float kept_of[{R}];
PYC_SHARED PYC_ALIGN16 float m_of[{R}];
PYC_SHARED PYC_ALIGN16 float l_of[{R}];
const i32 first = pyc_block() % {TILES} * {R};
const i32 head = pyc_block() / {TILES};
)");
  text += formulas_.place_of("head");
  for (const auto& [name, x] : {std::pair("q", &a_.q), {"k", &a_.k}, {"v", &a_.v}}) {
    text += formulas_.operand(name, **x);
  }
  return text;
}

// Keys first of a chunk as [depth][key].
std::string Writer::load_keys() const {
  const Attention::Operand& x = *a_.k;
  if (lies_by(4, group_, x, a_.depth)) {
    return in(R"(PYC_UNROLL for (i32 i = 0; i < {CHUNK}; i += 4) {{
PYC_ALIGN16 float x[4] = {{0, 0, 0, 0}};
if (key0 + t < {KEYS} && t < {BLOCK} && d0 + i < {DEPTH}) *(pyc_v16*)x = *(PYC_GLOBAL const pyc_v16*)(k + (key0 + t) * )") +
           fmt::format("{}ll", x.row_stride) + in(R"( + (d0 + i));
PYC_UNROLL for (i32 e = 0; e < 4; ++e) chunk[(i + e) * 128 + t] = x[e];
}}
)");
  }
  return in(R"(for (i32 i = 0; i < {CHUNK}; ++i) {{
chunk[i * 128 + t] = key0 + t < {KEYS} && t < {BLOCK} && d0 + i < {DEPTH} ? k[(key0 + t) * )") +
         fmt::format("{}ll + (d0 + i) * {}ll", x.row_stride, x.column_stride) + "] : 0x0p+0f;\n}\n";
}

std::string Writer::load_queries() const {
  const Attention::Operand& x = *a_.q;
  if (lies_by(4, group_, x, a_.depth)) {
    return in(R"(for (i32 i = t; i < {R} * {CHUNK} / 4; i += 128) {{
const i32 row = i / ({CHUNK} / 4);
const i32 d = i % ({CHUNK} / 4) * 4;
PYC_ALIGN16 float x[4] = {{0, 0, 0, 0}};
if (first + row < {QUERIES} && d0 + d < {DEPTH}) *(pyc_v16*)x = *(PYC_GLOBAL const pyc_v16*)(q + (first + row) * )") +
           fmt::format("{}ll", x.row_stride) + in(R"( + (d0 + d));
*(PYC_NEAR pyc_v16*)(query + row * {QP} + d) = *(pyc_v16*)x;
}}
)");
  }
  return in(R"(for (i32 i = t; i < {R} * {CHUNK}; i += 128) {{
const i32 row = i / {CHUNK};
const i32 d = i % {CHUNK};
query[row * {QP} + d] = first + row < {QUERIES} && d0 + d < {DEPTH} ? q[(first + row) * )") +
         fmt::format("{}ll + (d0 + d) * {}ll", x.row_stride, x.column_stride) + "] : 0x0p+0f;\n}\n";
}

// Values of a chunk as [key][column].
std::string Writer::load_values() const {
  const Attention::Operand& x = *a_.v;
  if (lies_by(4, group_, x, a_.columns)) {
    return in(R"(for (i32 i = t; i < {VC} * {CP} / 4; i += 128) {{
const i32 u = u0 + i / ({CP} / 4);
const i32 c = i % ({CP} / 4) * 4;
PYC_ALIGN16 float x[4] = {{0, 0, 0, 0}};
if (key0 + u < {KEYS} && u < {BLOCK} && c < {COLUMNS}) *(pyc_v16*)x = *(PYC_GLOBAL const pyc_v16*)(v + (key0 + u) * )") +
           fmt::format("{}ll", x.row_stride) + in(R"( + c);
*(PYC_NEAR pyc_v16*)(chunk + i * 4) = *(pyc_v16*)x;
}}
)");
  }
  return in(R"(for (i32 i = t; i < {VC} * {CP}; i += 128) {{
const i32 u = u0 + i / {CP};
const i32 c = i % {CP};
chunk[i] = key0 + u < {KEYS} && u < {BLOCK} && c < {COLUMNS} ? v[(key0 + u) * )") +
         fmt::format("{}ll + c * {}ll", x.row_stride, x.column_stride) + "] : 0x0p+0f;\n}\n";
}

// A thread has the products of its rows with eight keys: two times four side by side.
std::string Writer::scores() {
  const std::string score = formulas_.text([&](Emitter& emitter) {
    const auto place = [&](loop::VarId v, const char* name, const std::string& value) {
      if (v == loop::kNone) return;
      emitter.line(fmt::format("const {} {} = {};", emitter.var_type(v), name, value));
      emitter.declare(v, name);
    };
    // Rows past the last one repeat it; nothing of them is stored.
    place(a_.query_var, "row_query", in("first + row < {QUERIES} ? first + row : {QUERIES} - 1"));
    place(a_.block_var, "key_block", "j");
    place(a_.key_var, "key_of_block", "u");
    emitter.declare(a_.product, "product");
    emitter.line(in("score[row * {SP} + u] = ") + emitter.value(formulas_.written(a_.score)) + ";");
  });
  return in(R"(float p[{RPT}][8];
PYC_UNROLL for (i32 r = 0; r < {RPT}; ++r) {{
PYC_UNROLL for (i32 c = 0; c < 8; ++c) p[r][c] = 0x0p+0f;
}}
for (i32 d0 = 0; d0 < {DEPTH}; d0 += {CHUNK}) {{
pyc_barrier();
)") + load_keys() +
         load_queries() + in(R"(pyc_barrier();
PYC_UNROLL4 for (i32 d = 0; d < {CHUNK}; d += 4) {{
PYC_ALIGN16 float x[{RPT}][4];
PYC_UNROLL for (i32 r = 0; r < {RPT}; ++r) *(pyc_v16*)x[r] = *(PYC_NEAR const pyc_v16*)(query + (group * {RPT} + r) * {QP} + d);
PYC_UNROLL for (i32 e = 0; e < 4; ++e) {{
PYC_ALIGN16 float y[8];
*(pyc_v16*)y = *(PYC_NEAR const pyc_v16*)(chunk + (d + e) * 128 + column * 4);
*(pyc_v16*)(y + 4) = *(PYC_NEAR const pyc_v16*)(chunk + (d + e) * 128 + 64 + column * 4);
PYC_UNROLL for (i32 r = 0; r < {RPT}; ++r) {{
PYC_UNROLL for (i32 c = 0; c < 8; ++c) p[r][c] = pyc_fma_f32(x[r][e], y[c], p[r][c]);
}}
}}
}}
}}
PYC_UNROLL for (i32 r = 0; r < {RPT}; ++r) {{
const i32 row = group * {RPT} + r;
PYC_UNROLL for (i32 c = 0; c < 8; ++c) {{
const i32 u = c / 4 * 64 + column * 4 + c % 4;
if (u < {BLOCK}) {{
const float product = pyc_add_f32(0x0p+0f, p[r][c]);
)") + score +
         "}\n}\n}\n";
}

// A warp has every fourth row: its largest score, weights and their sum, by 64 lanes in order.
std::string Writer::rows() {
  std::string join;
  std::string top;
  for (int h = 16; h > 0; h /= 2) {
    const auto moved = [&](const char* x) {
      return fmt::format("pyc_bits_f32(pyc_shuffle_down_u32(pyc_f32_bits({}), {}u))", x, h);
    };
    top += fmt::format("top = pyc_max_f32(top, {});\n", moved("top"));
    join += fmt::format("sum = pyc_add_f32(sum, {});\n", moved("sum"));
  }
  return in(R"(PYC_UNROLL for (i32 i = 0; i < {R} / 4; ++i) {{
const i32 row = i * 4 + warp;
float s[4];
float top = pyc_bits_f32(0xff800000u);
PYC_UNROLL for (i32 n = 0; n < 4; ++n) {{
s[n] = n * 32 + lane < {BLOCK} ? score[row * {SP} + n * 32 + lane] : pyc_bits_f32(0xff800000u);
top = pyc_max_f32(top, s[n]);
}}
)") + top +
         in(R"(top = pyc_bits_f32(pyc_shuffle_first_u32(pyc_f32_bits(top)));
const float m_before = m[i];
const float m_now = pyc_max_f32(m_before, top);
float kept;
{{
)") +
         formulas_.assigned("kept", formulas_.written(a_.factor),
                            {{a_.m_before, "m_before"}, {a_.m, "m_now"}}) +
         in(R"(}}
float lanes[2] = {{0x0p+0f, 0x0p+0f}};
PYC_UNROLL for (i32 n = 0; n < 4; ++n) {{
float w = 0x0p+0f;
if (n * 32 + lane < {BLOCK}) {{
const float s_now = s[n];
)") + formulas_.assigned("w", formulas_.written(a_.weight), {{a_.s, "s_now"}, {a_.m, "m_now"}}) +
         in(R"(lanes[n % 2] = pyc_add_f32(lanes[n % 2], w);
}}
score[row * {SP} + n * 32 + lane] = w;
}}
float sum = pyc_add_f32(lanes[0], lanes[1]);
)") + join +
         in(R"(sum = pyc_bits_f32(pyc_shuffle_first_u32(pyc_f32_bits(sum)));
sum = pyc_add_f32(0x0p+0f, pyc_add_f32(0x0p+0f, sum));
l[i] = pyc_add_f32(pyc_mul_f32(l[i], kept), sum);
m[i] = m_now;
if (lane == 0) kept_of[row] = kept;
}}
)");
}

// A thread has, of its rows, four columns side by side of every 64.
std::string Writer::values() const {
  return in(R"(float y[{RPT}][{CPT}];
PYC_UNROLL for (i32 r = 0; r < {RPT}; ++r) {{
PYC_UNROLL for (i32 c = 0; c < {CPT}; ++c) y[r][c] = 0x0p+0f;
}}
for (i32 u0 = 0; u0 < {BLOCK}; u0 += {VC}) {{
pyc_barrier();
)") + load_values() +
         in(R"(pyc_barrier();
PYC_UNROLL4 for (i32 u = 0; u < {VC}; u += 4) {{
PYC_ALIGN16 float w[{RPT}][4];
PYC_UNROLL for (i32 r = 0; r < {RPT}; ++r) *(pyc_v16*)w[r] = *(PYC_NEAR const pyc_v16*)(score + (group * {RPT} + r) * {SP} + u0 + u);
PYC_UNROLL for (i32 e = 0; e < 4; ++e) {{
PYC_ALIGN16 float x[{CPT}];
PYC_UNROLL for (i32 n = 0; n < {VECTORS}; ++n) *(pyc_v16*)(x + n * 4) = *(PYC_NEAR const pyc_v16*)(chunk + (u + e) * {CP} + n * 64 + column * 4);
PYC_UNROLL for (i32 r = 0; r < {RPT}; ++r) {{
PYC_UNROLL for (i32 c = 0; c < {CPT}; ++c) y[r][c] = pyc_fma_f32(w[r][e], x[c], y[r][c]);
}}
}}
}}
}}
PYC_UNROLL for (i32 r = 0; r < {RPT}; ++r) {{
const float kept = kept_of[group * {RPT} + r];
PYC_UNROLL for (i32 c = 0; c < {CPT}; ++c) o[r][c] = pyc_add_f32(pyc_mul_f32(o[r][c], kept), pyc_add_f32(0x0p+0f, y[r][c]));
}}
)");
}

std::string Writer::results() {
  std::string text = in(R"(PYC_UNROLL for (i32 i = 0; i < {R} / 4; ++i) {{
if (lane == 0) {{
m_of[i * 4 + warp] = m[i];
l_of[i * 4 + warp] = l[i];
}}
}}
pyc_barrier();
PYC_UNROLL for (i32 r = 0; r < {RPT}; ++r) {{
const i32 row = group * {RPT} + r;
if (first + row < {QUERIES}) {{
const i64 place = (i64)head * {QUERIES} + first + row;
const float m_end = m_of[row];
const float l_end = l_of[row];
)");
  const auto stored = [&](size_t i, const std::string& at) {
    const Attention::Output& out = a_.outputs[i];
    if (out.buffer == loop::kNone) return std::string();
    return formulas_.assigned(fmt::format("{}[{}]", buffer_name(out.buffer), at),
                              formulas_.written(out.value),
                              {{a_.o, "o_end"}, {a_.m, "m_end"}, {a_.l, "l_end"}},
                              memory_type(formulas_.kernel().buffers[out.buffer].dtype));
  };
  if (const std::string whole = stored(0, in("place * {COLUMNS} + e")); !whole.empty()) {
    text += in(R"(PYC_UNROLL for (i32 c = 0; c < {CPT}; ++c) {{
const i32 e = c / 4 * 64 + column * 4 + c % 4;
if (e < {COLUMNS}) {{
const float o_end = o[r][c];
)") + whole +
            "}\n}\n";
  }
  for (const size_t i : {size_t{1}, size_t{2}}) {
    if (const std::string one = stored(i, "place"); !one.empty()) {
      text += "if (column == 0) {\n" + one + "}\n";
    }
  }
  return text + "}\n}\n";
}

KernelText Writer::text() {
  const loop::Kernel& kernel = formulas_.kernel();
  KernelText out{.symbol = formulas_.symbol(),
                 .form = in("attention of {R} rows"),
                 .text = "",
                 .buffers = parameters_of(kernel)};
  out.threads = kAttentionThreads;
  out.blocks = static_cast<uint32_t>(a_.batch_size() * tiles());
  const std::string body = head() + in(R"(float m[{R} / 4];
float l[{R} / 4];
PYC_UNROLL for (i32 i = 0; i < {R} / 4; ++i) {{
m[i] = pyc_bits_f32(0xff800000u);
l[i] = 0x0p+0f;
}}
float o[{RPT}][{CPT}];
PYC_UNROLL for (i32 r = 0; r < {RPT}; ++r) {{
PYC_UNROLL for (i32 c = 0; c < {CPT}; ++c) o[r][c] = 0x0p+0f;
}}
for (i32 j = 0; j < {BLOCKS}; ++j) {{
const i32 key0 = j * {BLOCK};
)") + scores() + "pyc_barrier();\n" +
                           rows() + "pyc_barrier();\n" + values() + "}\n" + results();
  const Emitter tables(kernel, cuda_dialect(), out.symbol);
  out.text = tables.tables() + kernel_head(out, kernel, true) + " {\n" + body + "}\n";
  return out;
}

class AttentionGenerator final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const ir::Graph&,
                                              const lower::Group& group) const override {
    if (!group.attention) return {};
    backends::Candidate c;
    c.name = "f32_attention";
    c.order = group.order;
    c.rejected = rejected(group);
    if (!c.rejected.empty()) return {c};
    const int64_t rows = rows_of(*group.attention);
    c.name = fmt::format("f32_attention__{}x{}", rows, kKeys);
    c.cost_ns = kLaunchNs + std::max(group.flops / kAttentionFlopsPerNs,
                                     static_cast<double>(group.bytes) / kDeviceBytesPerNs);
    auto plan = std::make_shared<CudaPlan>();
    plan->parts.push_back(make_part(Writer(group, kUnitSymbol).text(), group.kernel, group));
    c.plan = std::move(plan);
    return {c};
  }
};

}  // namespace

const KernelGenerator& generator_attention() {
  static const AttentionGenerator generator;
  return generator;
}

}  // namespace pyc::cuda
