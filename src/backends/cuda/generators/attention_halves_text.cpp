#include "backends/cuda/generators/attention_halves_text.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/generators/attention_formulas.h"
#include "backends/cuda/generators/attention_halves_sizes.h"
#include "backends/cuda/generators/attention_indices.h"
#include "backends/cuda/generators/attention_limits.h"
#include "backends/cuda/generators/wgmma_prelude.h"
#include "base/convert.h"
#include "loop/renamed.h"

namespace pyc::cuda {
namespace {

using lower::Attention;

// x / y, exactly rounded, with high = 1/y rounded and low the rest of it, for |x| from 2^-60 to
// below 2^68 and y from 2^-30 to below 2^30: q is one of the two floats around the quotient, x −
// q·y is exact, and Markstein's theorem says that the last line rounds it.
constexpr std::string_view kQuotient =
    R"(PYC_FN float pyc_quotient(float x, float y, float high, float low) {
  const float q = pyc_fma_f32(x, high, pyc_mul_f32(x, low));
  return pyc_fma_f32(pyc_fma_f32(-q, y, x), high, q);
}
)";

class HalvesWriter {
 public:
  HalvesWriter(const lower::Group& group, const AttentionCut& cut, const std::string& symbol)
      : a_(*group.attention),
        resident_(attention_halves_resident(group, cut)),
        z_(a_, cut),
        formulas_(group, symbol),
        limits_(key_limits(formulas_.kernel().pool, a_, formulas_.written(a_.score))) {
    whole_ = formulas_.written(a_.score);
    within_ = limits_.within;
    weight_ = formulas_.written(a_.weight);
    scores_are_products_ = factor_of(formulas_.pool(), limits_.live, a_.product) > 0.0;
    leave_scale_to_weights();
    add_with_scale();
    find_quotient();
    find_reads();
    const auto name = [&](const char* key, int64_t value) {
      names_.push_back(fmt::arg(key, value));
    };
    names_.push_back(
        fmt::arg("SCALE", literal(DType::kF32, word_from_double(scale_, DType::kF32))));
    name("R", z_.rows);
    name("COMPUTING", z_.rows / kGroupRows * kGroupThreads);
    name("COPYING", kGroupThreads);
    name("NK", z_.keys);
    name("SCORES", z_.keys / 2);
    name("WEIGHTS", z_.keys / 4);
    name("SUMS", z_.columns / 2);
    name("KEYS", a_.keys);
    name("BLOCK", a_.block);
    name("BLOCKS", blocks());
    name("QUERIES", a_.queries);
    name("COLUMNS", a_.columns);
    name("TILES", tiles());
    name("PARTS", parts());
    name("TURNS", z_.turns);
    name("K_AT", z_.keys_at());
    name("K_BYTES", z_.key_bytes());
    name("V_AT", z_.values_at());
    name("V_BYTES", z_.value_bytes());
    name("STAGES", z_.stages);
    name("K_FULL", z_.gates_at());
    name("K_FREE", z_.gates_at() + z_.stages * 8);
    name("V_FULL", z_.gates_at() + 2 * z_.stages * 8);
    name("V_FREE", z_.gates_at() + 3 * z_.stages * 8);
    name("Q_FREE", z_.gates_at() + 4 * z_.stages * 8);
  }

  KernelText text() {
    const loop::Kernel& kernel = formulas_.kernel();
    KernelText out{.symbol = formulas_.symbol(),
                   .form = in("attention of halves, {R} rows"),
                   .text = "",
                   .buffers = parameters_of(kernel)};
    out.threads = static_cast<uint32_t>(z_.threads);
    out.blocks = static_cast<uint32_t>(a_.batch_size() * parts());
    out.shared_bytes = static_cast<uint32_t>(z_.shared_bytes());
    const Emitter tables(kernel, cuda_dialect(), out.symbol);
    out.text = attention_prelude({a_.factors, z_.keys, z_.columns,
                                  z_.moves_registers() ? z_.registers_to_copy() : 0,
                                  z_.moves_registers() ? z_.registers_to_compute() : 0}) +
               tables.tables() + std::string(kQuotient) +
               kernel_head(out, kernel, true, resident_) + " {\n" + head() + tiles_of_queries() +
               "}\n";
    return out;
  }

 private:
  int64_t tiles() const { return (a_.queries + z_.rows - 1) / z_.rows; }
  int64_t parts() const { return (tiles() + z_.turns - 1) / z_.turns; }
  int64_t blocks() const { return (a_.keys + a_.block - 1) / a_.block; }
  std::string in(std::string_view form) const { return fmt::vformat(form, names_); }

  void leave_scale_to_weights();
  void add_with_scale();
  loop::ExprId unscaled(loop::ExprId score);
  void find_quotient();
  void find_reads();
  std::string head() const;
  std::string reads_of_head() const;
  std::string tile(const char* turn) const;
  std::string past_the_last() const;
  std::string bring_queries() const;
  std::string bring_first() const;
  std::string copied_tiles() const;
  std::string tiles_of_queries() const;
  std::string bring_next() const;
  std::string blocks_of_keys() const;
  std::string products_of_keys(const char* stage) const;
  std::string products_of_values() const;
  std::string scores() const;
  std::string scores_by(loop::ExprId formula) const;
  std::string largest_scores() const;
  std::string weights() const;
  std::string joined_sums(const char* first, int count, int distance) const;
  std::string whole_sums() const;
  std::string result_columns(bool by_reciprocal) const;
  std::string whole_words(uint32_t buffer) const;
  std::string results() const;

  // Copies `rows` rows of `width` columns by so many threads, this one being number `thread`.
  struct Copied {
    const char* name;    // of the operand
    const char* first;   // text: the tile's first row of it
    int64_t last;        // rows it has
    bool inside;         // no tile has rows past them
    int64_t rows;        // of the tile
    int64_t width;       // of the tile, a multiple of kPart
    int64_t columns;     // of the operand
    int64_t row_stride;  // of the operand
    std::string to;
  };
  std::string copied(const Copied& c) const;
  // Block `j` of keys or of values (texts) into a stage of theirs.
  std::string bring_keys(const char* j, const char* stage) const;
  std::string bring_values(const char* j, const char* stage) const;

  const Attention& a_;
  // The compiler is told: left to choose registers itself, it takes as many and interleaves less.
  int64_t resident_;
  AttentionSizes z_;
  AttentionFormulas formulas_;
  KeyLimits limits_;
  loop::ExprId whole_ = loop::kNone;   // the score
  loop::ExprId within_ = loop::kNone;  // where all limits hold
  loop::ExprId weight_ = loop::kNone;
  bool scores_are_products_ = false;     // times a positive constant, or −inf
  double scale_ = 1.0;                   // of these scores, to those of the group
  bool weights_scale_ = true;            // that scale is a multiplication of their own
  loop::ExprId quotient_ = loop::kNone;  // something over the row's sum, in its result
  std::vector<loop::ExprId> of_head_;    // that scores read, the same for all queries and keys
  bool reads_by_query_ = false;          // something else that scores read
  fmt::dynamic_format_arg_store<fmt::format_context> names_;
};

// A score with the product in place of product·scale.
loop::ExprId HalvesWriter::unscaled(loop::ExprId score) {
  loop::Pool& pool = formulas_.pool();
  if (score == limits_.live) return pool.var(a_.product);
  const loop::ExprNode n = pool.node(score);
  return pool.select(n.a, unscaled(n.b), n.c);
}

// The largest product, times the scale, is the largest score: rounding keeps the order. So scores
// are scaled where they become weights.
//
// Weights begin with fma(s, c, b). Where s is the product times a power of two, fma(product,
// c·scale, b) is the same number. (A score below 2^−126 may be rounded; neither b nor a weight can
// tell.)
void HalvesWriter::leave_scale_to_weights() {
  loop::Pool& pool = formulas_.pool();
  const double scale = factor_of(pool, limits_.live, a_.product);
  int exponent = 0;
  if (scale <= 0x1p-60 || scale >= 1.0) return;
  scale_ = scale;
  within_ = unscaled(within_);
  whole_ = unscaled(whole_);
  if (std::frexp(scale, &exponent) != 0.5) return;
  int uses = 0;
  loop::ExprId found = loop::kNone;
  const loop::ExprId s = pool.var(a_.s);
  const auto count = static_cast<loop::ExprId>(pool.size());
  for (loop::ExprId e = 0; e < count; ++e) {
    const loop::ExprNode& n = pool.node(e);
    const auto reads = (n.a == s ? 1 : 0) + (n.b == s ? 1 : 0) + (n.c == s ? 1 : 0);
    uses += reads;
    if (reads == 1 && n.a == s && n.op == loop::Op::kFma && pool.node(n.b).op == loop::Op::kConst) {
      found = e;
    }
  }
  if (uses != 1 || found == loop::kNone) return;
  const loop::ExprNode n = pool.node(found);
  const double c = word_to_double(pool.node(n.b).word, DType::kF32) * scale;
  const loop::ExprId factor = pool.constant(DType::kF32, word_from_double(c, DType::kF32));
  loop::Renamed rescaled(pool);
  rescaled.set_value(found, pool.fma(s, factor, n.c));
  weight_ = rescaled(weight_);
  weights_scale_ = false;
}

void HalvesWriter::add_with_scale() {
  loop::Pool& pool = formulas_.pool();
  const ScaledSum sum = scaled_sum(pool, a_, limits_.live);
  if (sum.beside == loop::kNone) return;
  const loop::ExprId scale = pool.constant(DType::kF32, word_from_double(sum.scale, DType::kF32));
  loop::Renamed fused(pool);
  fused.set_value(limits_.live, pool.fma(pool.var(a_.product), scale, sum.beside));
  within_ = fused(within_);
  whole_ = fused(whole_);
}

void HalvesWriter::find_quotient() {
  loop::Pool& pool = formulas_.pool();
  const loop::ExprId l = pool.var(a_.l);
  for (loop::ExprId e = 0; e < static_cast<loop::ExprId>(pool.size()); ++e) {
    const loop::ExprNode& n = pool.node(e);
    if (n.op == loop::Op::kDiv && n.dtype == DType::kF32 && n.b == l) quotient_ = e;
  }
}

// What a score reads, by what it depends on.
void HalvesWriter::find_reads() {
  const loop::Kernel& kernel = formulas_.kernel();
  for (const loop::ExprId e : loads_of(kernel.pool, {whole_, within_})) {
    const loop::ExprNode& n = kernel.pool.node(e);
    const auto by = [&](loop::VarId v) { return is_read_by(kernel.pool, e, v); };
    reads_by_query_ = reads_by_query_ || by(a_.query_var);
    const loop::ExprNode& at = kernel.pool.node(n.a);
    const bool is_there = at.lo >= 0 && at.hi < kernel.buffers[static_cast<size_t>(n.imm)].elements;
    const bool is_of_head = !by(a_.query_var) && !by(a_.block_var) && !by(a_.key_var);
    if (is_of_head && is_there && n.b == loop::kNone && n.dtype == DType::kF32) {
      of_head_.push_back(e);
    }
  }
}

std::string HalvesWriter::reads_of_head() const {
  std::string text;
  for (size_t i = 0; i < of_head_.size(); ++i) {
    const std::string name = fmt::format("of_head{}", i);
    text += fmt::format("float {};\n{{\n{}}}\n", name, formulas_.assigned(name, of_head_[i], {}));
  }
  return text;
}

// Where the block and the thread are. The compiler is told that a warp's threads are of one group.
std::string HalvesWriter::head() const {
  std::string text = in(R"(const i32 thread = pyc_thread();
  const i32 group = (i32)pyc_shuffle_first_u32((u32)thread / 128u);
  const i32 in_group = thread & 127;
  const i32 lane = thread & 31;
  const i32 quad = thread & 3;
  const i32 part = pyc_block() % {PARTS};
  const i32 head = pyc_block() / {PARTS};
)");
  text += formulas_.place_of("head");
  for (const auto& [name, x] : {std::pair("q", &a_.q), {"k", &a_.k}, {"v", &a_.v}}) {
    text += formulas_.operand(name, **x);
  }
  return text;
}

// The tile of a turn and its blocks of keys. Those with the most keys come first, and a block of
// threads with many in one turn has few in the next.
std::string HalvesWriter::tile(const char* turn) const {
  std::string text =
      fmt::format("const i32 in_turn = {};\n", turn) + in(R"(const i32 tile = in_turn * {PARTS} +
      (in_turn % 2 == 0 ? part : {PARTS} - 1 - part);
  i32 begin = 0, end = {BLOCKS};
)");
  if (limits_.all.empty()) return text + in("const i32 first = tile * {R};\n") + past_the_last();
  return text + in("const i32 first = (tile < {TILES} ? {TILES} - 1 - tile : {TILES}) * {R};\n") +
         in("{{\nconst i32 low = first, high = first + {R} < {QUERIES} ? first + {R} - 1 : "
            "{QUERIES} - 1;\n") +
         live_blocks(limits_, a_, "low", "high") + "}\n" + past_the_last();
}

std::string HalvesWriter::past_the_last() const {
  return tiles() % z_.turns == 0 ? "" : in("if (tile >= {TILES}) end = begin;\n");
}

// A group copies. A thread keeps its place in a row: from round to round it goes on by a multiple
// of eight rows, so that the swizzle stays and both addresses move by constants.
std::string HalvesWriter::copied(const Copied& c) const {
  const int64_t chunks = c.width / 8;
  const int64_t step = kGroupThreads / chunks;
  PYC_CHECK(step % 8 == 0, "rounds go on by whole groups of eight rows");
  std::string text = fmt::format(
      "{{\nconst i32 r = in_group / {0}, c = in_group % {0};\n"
      "PYC_GLOBAL const u16* from = {2} + ((i64)r * {3}ll + c * 8) + (i64){1} * {3}ll;\n"
      "const u32 to = {4} + (u32)(c / 8 * {5} + r * {6} + ((c % 8 ^ r % 8) << 4));\n",
      chunks, c.first, c.name, c.row_stride, c.to, c.rows * kPartBytes, kPartBytes);
  text += fmt::format("PYC_UNROLL for (i32 i = 0; i < {}; ++i) {{\n", (c.rows + step - 1) / step);
  if (c.rows % step != 0) {
    text += fmt::format("if (i < {} || r + i * {} < {}) {{\n", c.rows / step, step, c.rows);
  }
  std::string there = c.inside ? "" : fmt::format("{} + r + i * {} < {}", c.first, step, c.last);
  if (c.columns < c.width) {
    there += fmt::format("{}c < {}", there.empty() ? "" : " && ", c.columns / 8);
  }
  const std::string to = fmt::format("to + (u32)(i * {})", step * kPartBytes);
  const std::string from = fmt::format("from + i * {}ll", step * c.row_stride);
  if (there.empty()) {
    text += fmt::format("pyc_copy16({}, {}, 16u);\n", to, from);
  } else {
    // What is not there is read nowhere, and its address is one of the buffer's.
    text += fmt::format("const bool there = {};\n", there);
    text += fmt::format("pyc_copy16({}, there ? {} : {}, there ? 16u : 0u);\n", to, from, c.name);
  }
  return text + (c.rows % step != 0 ? "}\n}\n}\n" : "}\n}\n");
}

std::string HalvesWriter::bring_keys(const char* j, const char* stage) const {
  return fmt::format("{{\nconst i32 row0 = ({}) * {};\n", j, a_.block) +
         copied({.name = "k",
                 .first = "row0",
                 .last = a_.keys,
                 .inside = a_.keys % z_.keys == 0,
                 .rows = z_.keys,
                 .width = z_.depth,
                 .columns = a_.depth,
                 .row_stride = a_.k->row_stride,
                 .to = in("{K_AT}u + ") + stage + in(" * {K_BYTES}u")}) +
         in("pyc_gate_arrive_copied({K_FULL}u + ") + stage + " * 8u);\n}\n";
}

std::string HalvesWriter::bring_values(const char* j, const char* stage) const {
  return fmt::format("{{\nconst i32 row0 = ({}) * {};\n", j, a_.block) +
         copied({.name = "v",
                 .first = "row0",
                 .last = a_.keys,
                 .inside = a_.keys % z_.keys == 0,
                 .rows = z_.keys,
                 .width = z_.columns,
                 .columns = a_.columns,
                 .row_stride = a_.v->row_stride,
                 .to = in("{V_AT}u + ") + stage + in(" * {V_BYTES}u")}) +
         in("pyc_gate_arrive_copied({V_FULL}u + ") + stage + " * 8u);\n}\n";
}

// The queries of group g.
std::string HalvesWriter::bring_queries() const {
  return "{\nconst i32 row0 = first + g * 64;\n" +
         copied({.name = "q",
                 .first = "row0",
                 .last = a_.queries,
                 .inside = a_.queries % z_.rows == 0,
                 .rows = kGroupRows,
                 .width = z_.depth,
                 .columns = a_.depth,
                 .row_stride = a_.q->row_stride,
                 .to = fmt::format("(u32)(g * {})", kGroupRows * z_.depth * 2)}) +
         "}\n";
}

// Where a group copies for itself: the queries with the first keys, the first values and the
// second keys.
std::string HalvesWriter::bring_first() const {
  return "if (begin < end) {\nconst i32 g = 0;\n" + bring_queries() + bring_keys("begin", "0u") +
         bring_values("begin", "0u") + "if (begin + 1 < end) {\n" + bring_keys("begin + 1", "1u") +
         "}\n}\n";
}

// All that a group brings for the others, tile after tile. The next tile's first keys are on their
// way while the last of this one's values are added and its results stored. It is there until all
// of it has arrived.
std::string HalvesWriter::copied_tiles() const {
  return in(R"(if (group == {COMPUTING} / 128) {{
  pyc_fewer_registers();
  i32 done = 0;
  u32 stage = 0u, parity = 0u, q_parity = 1u;
  for (i32 turn = 0; turn < {TURNS}; ++turn) {{
)") + tile("turn") +
         in(R"(if (begin < end) {{
  for (i32 g = 0; g < {COMPUTING} / 128; ++g) {{
  if (done > 0) pyc_gate_wait({Q_FREE}u + (u32)g * 8u, q_parity);
)") + bring_queries() +
         R"(}
  q_parity ^= 1u;
  }
  for (i32 j = begin; j < end; ++j) {
)" + in("if (done >= {STAGES}) pyc_gate_wait({K_FREE}u + stage * 8u, parity ^ 1u);\n") +
         bring_keys("j", "stage") +
         in("if (done >= {STAGES}) pyc_gate_wait({V_FREE}u + stage * 8u, parity ^ 1u);\n") +
         bring_values("j", "stage") + in(R"(done += 1;
  stage = stage + 1u == {STAGES}u ? 0u : stage + 1u;
  parity ^= stage == 0u ? 1u : 0u;
  }}
  }}
  if (done > 0) {{
  parity ^= stage == 0u ? 1u : 0u;
  stage = stage == 0u ? {STAGES}u - 1u : stage - 1u;
  pyc_gate_wait({K_FULL}u + stage * 8u, parity);
  pyc_gate_wait({V_FULL}u + stage * 8u, parity);
  }}
  }} else {{
  pyc_more_registers();
)");
}

std::string HalvesWriter::tiles_of_queries() const {
  return in(R"(if (thread == 0) {{
  PYC_UNROLL for (i32 i = 0; i < {STAGES}; ++i) {{
  pyc_gate_init((u32)({K_FULL} + i * 8), {COPYING}u);
  pyc_gate_init((u32)({K_FREE} + i * 8), {COMPUTING}u / 32u);
  pyc_gate_init((u32)({V_FULL} + i * 8), {COPYING}u);
  pyc_gate_init((u32)({V_FREE} + i * 8), {COMPUTING}u / 32u);
  }}
  PYC_UNROLL for (i32 i = 0; i < {COMPUTING} / 128; ++i) pyc_gate_init((u32)({Q_FREE} + i * 8), 4u);
  }}
  pyc_barrier();
)") + (z_.copies_apart ? copied_tiles() : "{\n") +
         reads_of_head() + in(R"(u32 stage = 0u, parity = 0u, before = 0u;
  for (i32 turn = 0; turn < {TURNS}; ++turn) {{
  float s[{SCORES}];
  float o[{SUMS}];
  u32 w[{WEIGHTS}];
  float m[2], l[2], kept[2], sum[4];
  PYC_UNROLL for (i32 i = 0; i < {SUMS}; ++i) o[i] = 0x0p+0f;
  PYC_UNROLL for (i32 h = 0; h < 2; ++h) {{
  m[h] = pyc_bits_f32(0xff800000u);
  l[h] = 0x0p+0f;
  }}
)") + tile("turn") +
         (z_.copies_apart ? "" : bring_first()) +
         in("const i32 own = first + group * 64 + in_group / 32 * 16 + lane / 4;\n") +
         in(limits_.all.empty() ? "" : R"(const i32 group_low = first + group * 64;
  const i32 group_high = group_low + 64 < {QUERIES} ? group_low + 63 : {QUERIES} - 1;
)") + blocks_of_keys() +
         in(R"(pyc_wgmma_values_done(o);
  if (lane == 0 && begin < end) pyc_gate_arrive({V_FREE}u + before * 8u);
)") + results() +
         "}\n}\n";
}

// The unit's views count in 16 bytes.
std::string HalvesWriter::products_of_keys(const char* stage) const {
  std::string text = fmt::format(
      "const u64 k_view = pyc_wgmma_place({}u, 16u, 1024u) + {} * {}u;\npyc_wgmma_fence();\n",
      z_.keys_at(), stage, z_.key_bytes() / 16);
  for (int64_t d = 0; d < z_.depth; d += kUnitTerms) {
    const int64_t part = d / kPart * kPartBytes;
    const int64_t within = d % kPart * 2;
    text += fmt::format("pyc_wgmma_scores(s, q_view + {}u, k_view + {}u, {});\n",
                        (part * kGroupRows + within) / 16, (part * z_.keys + within) / 16,
                        d == 0 ? 0 : 1);
  }
  return text + "pyc_wgmma_commit();\n";
}

std::string HalvesWriter::products_of_values() const {
  std::string text = fmt::format(
      "const u64 v_view = pyc_wgmma_place({}u, {}u, 1024u) + stage * {}u;\npyc_wgmma_fence();\n",
      z_.values_at(), z_.keys * kPartBytes, z_.value_bytes() / 16);
  for (int64_t u = 0; u < z_.keys; u += kUnitTerms) {
    text += fmt::format("pyc_wgmma_values(o, w + {}, v_view + {}u);\n", u / 4, u * kPartBytes / 16);
  }
  return text + "pyc_wgmma_commit();\n";
}

// Element i·4 + h·2 + e of the thread is that of its row h and of key i·8 + quad·2 + e.
std::string HalvesWriter::scores_by(loop::ExprId formula) const {
  const std::vector<LinearNumber> linear = linear_numbers(formulas_.kernel().pool, a_, formula);
  std::string firsts;
  for (const LinearNumber& l : linear) firsts += l.first;
  const std::string score = formulas_.text([&](Emitter& emitter) {
    for (const LinearNumber& l : linear) emitter.loaded_[l.of] = l.text;
    const auto place = [&](loop::VarId v, const char* name, const std::string& value) {
      if (v == loop::kNone) return;
      emitter.line(fmt::format("const {} {} = {};", emitter.var_type(v), name, value));
      emitter.declare(v, name);
    };
    emitter.any_nan_ = true;  // a row with a NaN is NaN, whichever it is
    for (size_t i = 0; i < of_head_.size(); ++i) {
      emitter.loaded_[of_head_[i]] = fmt::format("of_head{}", i);
    }
    // Rows past the last one read what it reads; nothing of them is stored.
    const bool past = reads_by_query_ && a_.queries % z_.rows != 0;
    place(a_.query_var, "row_query", past ? in("row < {QUERIES} ? row : {QUERIES} - 1") : "row");
    place(a_.block_var, "key_block", "j");
    place(a_.key_var, "key_of_block", "u");
    emitter.declare(a_.product, "product");
    emitter.line("s[n] = " + emitter.value(formula) + ";");
  });
  return firsts + in(R"(PYC_UNROLL for (i32 n = 0; n < {SCORES}; ++n) {{
  const i32 row = own + n / 2 % 2 * 8;
  const i32 u = n / 4 * 8 + quad * 2 + n % 2;
  const float product = s[n];
)") + (a_.block < z_.keys ? in("s[n] = pyc_bits_f32(0xff800000u);\nif (u < {BLOCK}) {{\n") : "") +
         score + (a_.block < z_.keys ? "}\n}\n" : "}\n");
}

std::string HalvesWriter::scores() const {
  if (limits_.all.empty() || within_ == whole_) return scores_by(whole_);
  return fmt::format("if ({}) {{\n{}}} else {{\n{}}}\n",
                     holds_in_block(limits_, a_, "group_low", "group_high", "j"),
                     scores_by(within_), scores_by(whole_));
}

// The thread's largest score of each row, most[h]. Floats that are not negative are in the order of
// their bits, as are NaN behind infinity, and integers have a maximum of three in one instruction.
// Where all of a thread's are negative their order is the other way around. Products and −inf have
// no negative NaN; other scores are compared as floats.
std::string HalvesWriter::largest_scores() const {
  if (!scores_are_products_) {
    return in(R"(float most[2];
  PYC_UNROLL for (i32 h = 0; h < 2; ++h) {{
  float tops[4];
  PYC_UNROLL for (i32 i = 0; i < 4; ++i) tops[i] = s[i / 2 * 4 + h * 2 + i % 2];
  PYC_UNROLL for (i32 n = 8; n < {SCORES}; n += 8) {{
  PYC_UNROLL for (i32 i = 0; i < 4; ++i) tops[i] = pyc_max_f32(tops[i], s[n + i / 2 * 4 + h * 2 + i % 2]);
  }}
  most[h] = pyc_max_f32(pyc_max_f32(tops[0], tops[1]), pyc_max_f32(tops[2], tops[3]));
  }}
)");
  }
  return in(R"(i32 largest[2];
  PYC_UNROLL for (i32 h = 0; h < 2; ++h) {{
  i32 tops[2] = {{(i32)pyc_f32_bits(s[h * 2]), (i32)pyc_f32_bits(s[h * 2 + 1])}};
  PYC_UNROLL for (i32 n = 4; n < {SCORES}; n += 4) {{
  i32& x = tops[n / 4 % 2];
  x = pyc_max_i32(x, (i32)pyc_f32_bits(s[n + h * 2]));
  x = pyc_max_i32(x, (i32)pyc_f32_bits(s[n + h * 2 + 1]));
  }}
  largest[h] = pyc_max_i32(tops[0], tops[1]);
  }}
  if ((largest[0] | largest[1]) < 0) {{
  PYC_UNROLL for (i32 h = 0; h < 2; ++h) {{
  u32 least = 0xffffffffu;
  PYC_UNROLL for (i32 n = 0; n < {SCORES}; n += 4) {{
  least = pyc_min_u32(least, pyc_f32_bits(s[n + h * 2]));
  least = pyc_min_u32(least, pyc_f32_bits(s[n + h * 2 + 1]));
  }}
  if (largest[h] < 0) largest[h] = (i32)least;
  }}
  }}
  const float most[2] = {{pyc_bits_f32((u32)largest[0]), pyc_bits_f32((u32)largest[1])}};
)");
}

// Largest scores, weights and their sums. A lane of the sum is key mod 64: a thread's keys are
// 8·i + 2·quad + e, so lanes join by 64, 32, 16 and 8 in it, by 4 and 2 with its neighbours and by
// 1 in it again. Weights are not negative: what is missing need not be added.
std::string HalvesWriter::weights() const {
  std::string text =
      "{\n" + largest_scores() + in(R"(PYC_UNROLL for (i32 h = 0; h < 2; ++h) {{
  float top = pyc_max_f32(most[h], pyc_bits_f32(pyc_shuffle_xor_u32(pyc_f32_bits(most[h]), 1u)));
  top = pyc_max_f32(top, pyc_bits_f32(pyc_shuffle_xor_u32(pyc_f32_bits(top), 2u)));
  const float m_before = m[h];
  const float m_now = pyc_max_f32(m_before, pyc_mul_f32(top, {SCALE}));
  {{
)") +
      formulas_.assigned("kept[h]", formulas_.written(a_.factor),
                         {{a_.m_before, "m_before"}, {a_.m, "m_now"}}) +
      in(R"(}}
  m[h] = m_now;
  PYC_UNROLL for (i32 i = 0; i < {SCORES}; i += 4) {{
  PYC_UNROLL for (i32 e = 0; e < 2; ++e) {{
  const i32 n = i + h * 2 + e;
)") +
      in(weights_scale_ && scale_ != 1.0 ? "const float s_now = pyc_mul_f32(s[n], {SCALE});\n"
                                         : "const float s_now = s[n];\n") +
      formulas_.assigned("s[n]", weight_, {{a_.s, "s_now"}, {a_.m, "m_now"}}) +
      "}\n}\nPYC_UNROLL for (i32 e = 0; e < 2; ++e) {\n";
  const auto count = static_cast<size_t>(z_.keys / 8);
  std::vector<std::string> lanes;
  for (size_t i = 0; i < count; ++i) lanes.push_back(fmt::format("s[{} + h * 2 + e]", i * 4));
  for (size_t distance = 8; distance > 0; distance /= 2) {
    for (size_t i = 0; i < distance && i + distance < lanes.size(); ++i) {
      lanes[i] = fmt::format("pyc_add_f32({}, {})", lanes[i], lanes[i + distance]);
    }
    lanes.resize(std::min(lanes.size(), distance));
  }
  return text + fmt::format("sum[h * 2 + e] = {};\n}}\n", lanes[0]) + joined_sums("h * 2", 2, 2) +
         "}\n}\n";
}

// So many sums of this thread and those of its neighbour at a distance.
std::string HalvesWriter::joined_sums(const char* first, int count, int distance) const {
  return fmt::format(
      "PYC_UNROLL for (i32 i = {0}; i < {0} + {1}; ++i) sum[i] = pyc_add_f32(sum[i], "
      "pyc_bits_f32(pyc_shuffle_xor_u32(pyc_f32_bits(sum[i]), {2}u)));\n",
      first, count, distance);
}

std::string HalvesWriter::whole_sums() const {
  return joined_sums("0", 4, 1) + R"(PYC_UNROLL for (i32 h = 0; h < 2; ++h) {
  l[h] = pyc_add_f32(pyc_mul_f32(l[h], kept[h]), pyc_add_f32(sum[h * 2], sum[h * 2 + 1]));
  }
)";
}

// The next values, and the keys after the next.
std::string HalvesWriter::bring_next() const {
  return in(R"(if (j + 2 < end) {{
  const u32 after = next + 1u == {STAGES}u ? 0u : next + 1u;
  const u32 before_parity = after == 0u ? next_parity : next_parity ^ 1u;
  if (j + 2 - begin >= {STAGES}) pyc_gate_wait({K_FREE}u + after * 8u, before_parity);
)") + bring_keys("j + 2", "after") +
         in(R"(}}
  if (j + 1 < end) {{
  if (j + 1 - begin >= {STAGES}) pyc_gate_wait({V_FREE}u + next * 8u, next_parity ^ 1u);
)") + bring_values("j + 1", "next") +
         "}\n";
}

// A block of keys begins with its scores. The products with its values and with the
// keys of the next block are on the unit together; the latter come first, so that the next weights
// are computed while the former are still summed. Behind the last block they are those of whatever
// keys lie there, and nobody looks at them: under a condition, the compiler would wait for every
// single product. So the queries may be overwritten by the next tile's from the last scores on.
//
// Waiting for a gate is a branch. The one behind the weights is what keeps the compiler from
// waiting for the sums before them: the instruction that waits names no register.
//
// What a group copies for itself, it copies while it waits for the next scores.
std::string HalvesWriter::blocks_of_keys() const {
  return fmt::format("const u64 q_view = pyc_wgmma_place((u32)(group * {}), 16u, 1024u);\n",
                     kGroupRows * z_.depth * 2) +
         in(R"(if (begin < end) {{
  pyc_gate_wait({K_FULL}u + stage * 8u, parity);
  pyc_shared_fence();
)") + products_of_keys("stage") +
         in(R"(pyc_wgmma_wait_0();
  }}
  for (i32 j = begin; j < end; ++j) {{
  const u32 next = stage + 1u == {STAGES}u ? 0u : stage + 1u;
  const u32 next_parity = next == 0u ? parity ^ 1u : parity;
  if (lane == 0) pyc_gate_arrive({K_FREE}u + stage * 8u);
)") + in(z_.turns == 1 ? "" : R"(if (lane == 0 && j + 1 == end && turn + 1 < {TURNS}) {{
  pyc_gate_arrive({Q_FREE}u + (u32)group * 8u);
  }}
)") + scores() +
         weights() + in(R"(if (j + 1 < end) pyc_gate_wait({K_FULL}u + next * 8u, next_parity);
  pyc_gate_wait({V_FULL}u + stage * 8u, parity);
  pyc_wgmma_values_done(o);
  if (lane == 0 && j > begin) pyc_gate_arrive({V_FREE}u + before * 8u);
  PYC_UNROLL for (i32 i = 0; i < {WEIGHTS}; ++i) w[i] = pyc_halves(s[i * 2], s[i * 2 + 1]);
  pyc_shared_fence();
)") + products_of_keys("next") +
         in(R"(if (kept[0] != 0x1p+0f || kept[1] != 0x1p+0f) {{
  PYC_UNROLL for (i32 i = 0; i < {SUMS}; ++i) o[i] = pyc_mul_f32(o[i], kept[i / 2 % 2]);
  }}
)") + products_of_values() +
         (z_.copies_apart ? "" : bring_next()) + whole_sums() +
         R"(pyc_wgmma_scores_done(s);
  before = stage;
  stage = next;
  parity = next_parity;
  }
)";
}

// Columns of row h. They are a multiple of eight, so a pair of floats lies at a multiple of eight
// bytes.
std::string HalvesWriter::result_columns(bool by_reciprocal) const {
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

}  // namespace

KernelText attention_halves_text(const lower::Group& group, const AttentionCut& cut,
                                 const std::string& symbol) {
  return HalvesWriter(group, cut, symbol).text();
}

}  // namespace pyc::cuda
