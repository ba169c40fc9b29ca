#include "backends/cuda/generators/attention_halves_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/c_types.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/generators/attention_halves_writer.h"
#include "backends/cuda/generators/attention_indices.h"
#include "backends/cuda/generators/wgmma_maps.h"
#include "backends/cuda/generators/wgmma_prelude.h"
#include "base/convert.h"
#include "loop/renamed.h"

namespace pyc::cuda {
namespace {

// x / y, exactly rounded, with high = 1/y rounded and low the rest of it, for |x| from 2^-60 to
// below 2^68 and y from 2^-30 to below 2^30: q is one of the two floats around the quotient, x −
// q·y is exact, and Markstein's theorem says that the last line rounds it.
constexpr std::string_view kQuotient =
    R"(PYC_FN float pyc_quotient(float x, float y, float high, float low) {
  const float q = pyc_fma_f32(x, high, pyc_mul_f32(x, low));
  return pyc_fma_f32(pyc_fma_f32(-q, y, x), high, q);
}
)";

}  // namespace

HalvesWriter::HalvesWriter(const lower::Group& group, const AttentionCut& cut,
                           const std::string& symbol)
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
  find_maps();
  const auto name = [&](const char* key, int64_t value) { names_.push_back(fmt::arg(key, value)); };
  names_.push_back(fmt::arg("SCALE", literal(DType::kF32, word_from_double(scale_, DType::kF32))));
  name("R", z_.rows);
  name("COMPUTING", z_.rows / kGroupRows * kGroupThreads);
  name("COPYING", maps_.empty() ? kGroupThreads : 1);
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
  name("ALL_TILES", all_tiles());
  name("PARTS", parts());
  name("HEADS", std::max<int64_t>(parts() / tiles(), 1));  // of a turn
  name("BATCH", a_.batch_size());
  name("MOVED_ON", z_.mixed ? moved_on() : 0);
  name("TURNS", z_.turns);
  name("K_AT", z_.keys_at());
  name("K_BYTES", z_.key_bytes());
  name("V_AT", z_.values_at());
  name("V_BYTES", z_.value_bytes());
  name("STAGES", z_.stages);
  name("V_STAGES", z_.value_stages());
  name("K_FULL", z_.gates_at());
  name("K_FREE", z_.gates_at() + z_.stages * 8);
  name("V_FULL", z_.gates_at() + 2 * z_.stages * 8);
  name("V_FREE", z_.gates_at() + (2 * z_.stages + z_.value_stages()) * 8);
  name("Q_FREE", z_.gates_at() + 2 * (z_.stages + z_.value_stages()) * 8);
  name("Q_BYTES", z_.rows * z_.depth * 2);
  name("SLOTS", z_.query_slots());
  // What threads copied the unit reads by another way.
  names_.push_back(fmt::arg("FENCE", maps_.empty() ? "pyc_shared_fence();" : ""));
  names_.push_back(fmt::arg("V_STAGE", v_stage()));
  names_.push_back(fmt::arg("V_PARITY", values_apart() ? "v_parity" : "parity"));
}

KernelText HalvesWriter::text() {
  const loop::Kernel& kernel = formulas_.kernel();
  KernelText out{.symbol = formulas_.symbol(),
                 .form = in("attention of halves, {R} rows"),
                 .text = "",
                 .buffers = parameters_of(kernel)};
  out.threads = static_cast<uint32_t>(z_.threads);
  out.blocks = static_cast<uint32_t>(parts());
  out.shared_bytes = static_cast<uint32_t>(z_.shared_bytes());
  for (const Mapped& m : maps_) {
    out.maps.push_back(m.map);
    TensorMap& map = out.maps.back();
    map.buffer =
        static_cast<uint32_t>(std::ranges::find(out.buffers, map.buffer) - out.buffers.begin());
  }
  if (!maps_.empty()) out.map_names = {"q_map", "k_map", "v_map"};
  const Emitter tables(kernel, cuda_dialect(), out.symbol);
  out.text =
      attention_prelude({a_.factors, z_.keys, z_.columns,
                         z_.moves_registers() ? z_.registers_to_copy() : 0,
                         z_.moves_registers() ? z_.registers_to_compute() : 0}) +
      (maps_.empty() ? "" : map_prelude()) + tables.tables() + std::string(kQuotient) +
      (z_.mixed ? mixed_places() : "") +
      (maps_.empty() ? "" : fmt::format("PYC_MAPPED({}, {})\n", out.symbol, out.maps.size())) +
      kernel_head(out, kernel, true, resident_) + " {\n" + head() + tiles_of_queries() + "}\n";
  return out;
}

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
)");
  return z_.turns == 1 ? text + "const i32 work = pyc_block();\n" + place_of_head() : text;
}

// Blocks of threads take tiles side by side: what heads they have in a turn, the second-level cache
// holds.
std::string HalvesWriter::place_of_head() const {
  const std::string text =
      in(are_even() ? "const i32 head = work / {TILES};\n"
                    : "const i32 head = work < {ALL_TILES} ? work / {TILES} : 0;\n");
  return text + place_in_batch();
}

std::string HalvesWriter::place_in_batch() const {
  std::string text = formulas_.place_of("head");
  if (!maps_.empty()) return text;
  for (const auto& [name, x] : {std::pair("q", &a_.q), {"k", &a_.k}, {"v", &a_.v}}) {
    text += formulas_.operand(name, **x);
  }
  return text;
}

// The tile of a turn and its blocks of keys. Those with the most keys come first, and a block of
// threads with many in one turn has few in the next.
std::string HalvesWriter::tile(const char* turn) const {
  if (z_.mixed) return mixed_tile(turn);
  std::string text;
  if (z_.turns > 1) {
    text = fmt::format("const i32 in_turn = {};\n", turn) +
           in("const i32 work = in_turn * {PARTS} + pyc_block();\n") + place_of_head();
  }
  text += in("i32 begin = 0, end = {BLOCKS};\n");
  std::string in_head = in("work % {TILES}");
  if (!limits_.all.empty()) {
    in_head = in(z_.turns == 1 ? "{TILES} - 1 - work % {TILES}"
                               : "(head / {HEADS} % 2 == 0 ? {TILES} - 1 - work % {TILES} : work % "
                                 "{TILES})");
  }
  text += fmt::format(
      "const i32 first = ({}) * {};\n",
      are_even() ? in_head : in("work < {ALL_TILES} ? ") + in_head + in(" : {TILES}"), z_.rows);
  if (!limits_.all.empty()) {
    text += in("{{\nconst i32 low = first, high = first + {R} < {QUERIES} ? first + {R} - 1 : "
               "{QUERIES} - 1;\n") +
            live_blocks(limits_, a_, "low", "high") + "}\n";
  }
  return text + (are_even() ? "" : in("if (work >= {ALL_TILES}) end = begin;\n"));
}

// Mixed tiles: each group has one of 64 queries, three in a row, so that no group is without where
// the number of a head's is no multiple of three. Every other head is taken from its other end:
// where keys have limits, tiles side by side have about as many of them.
std::string HalvesWriter::mixed_places() const {
  return in(R"(PYC_FN void pyc_mixed_tile(i32 number, i32& head, i32& first) {{
  const i32 n = number < {BATCH} * {TILES} ? number : {BATCH} * {TILES} - 1;
  head = n / {TILES};
  first = (head % 2 == 0 ? {TILES} - 1 - n % {TILES} : n % {TILES}) * 64;
  if (number != n) first = {QUERIES};
}}
)");
}

// By how many blocks of threads the tiles of a turn are moved on from those of the turn before, so
// that each has long and short ones, where keys have limits. Those with later queries count as
// longer; a few turns tell.
int64_t HalvesWriter::moved_on() const {
  constexpr int64_t kTurnsSeen = 64;
  if (limits_.all.empty()) return 0;
  const auto length = [&](int64_t work) {
    const int64_t n = work * kMixedGroups;
    const int64_t tile = n / tiles() % 2 == 0 ? tiles() - 1 - n % tiles() : n % tiles();
    return work < all_tiles() ? tile + 1 : 0;
  };
  int64_t best = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> sums(static_cast<size_t>(parts()));
  for (int64_t by = 0; by < parts(); ++by) {
    std::ranges::fill(sums, 0);
    for (int64_t turn = 0; turn < std::min(z_.turns, kTurnsSeen); ++turn) {
      for (int64_t block = 0; block < parts(); ++block) {
        sums[static_cast<size_t>(block)] += length(turn * parts() + (block + turn * by) % parts());
      }
    }
    const int64_t longest = std::ranges::max(sums);
    if (longest < least) best = by;
    least = std::min(least, longest);
  }
  return best;
}

std::string HalvesWriter::mixed_tile(const char* turn) const {
  std::string text =
      fmt::format("const i32 in_turn = {};\n", turn) +
      in(R"(const i32 work = in_turn * {PARTS} + (pyc_block() + in_turn * {MOVED_ON}) % {PARTS};
  i32 heads[3], firsts[3];
  PYC_UNROLL for (i32 g = 0; g < 3; ++g) pyc_mixed_tile(work * 3 + g, heads[g], firsts[g]);
  const i32 sides = heads[0] == heads[2] ? 1 : 2;
  i32 begin = 0, end = {BLOCKS};
)");
  if (!limits_.all.empty()) {
    text += in(R"({{
  i32 low = firsts[0], high = firsts[0];
  PYC_UNROLL for (i32 g = 1; g < 3; ++g) {{
  low = firsts[g] < low ? firsts[g] : low;
  high = firsts[g] > high ? firsts[g] : high;
  }}
  high = high + 64 < {QUERIES} ? high + 63 : {QUERIES} - 1;
)") + live_blocks(limits_, a_, "low", "high") +
            "}\n";
  }
  return text + (are_even() ? "" : in("if (work >= {ALL_TILES}) end = begin;\n"));
}

// Of mixed tiles, this group's. It may leave out the last block of keys, where all three are of one
// head; of further ones it would not be known that their stages come.
std::string HalvesWriter::own_tile() const {
  std::string text = R"(const i32 head = group == 0 ? heads[0] : group == 1 ? heads[1] : heads[2];
  const i32 first = group == 0 ? firsts[0] : group == 1 ? firsts[1] : firsts[2];
  const i32 side = head == heads[0] ? 0 : 1;
  i32 own_end = end;
)";
  if (!limits_.all.empty()) {
    text += in(R"(if (sides == 1) {{
  const i32 least = begin + 1 < end ? end - 1 : end;
  const i32 low = first, high = first + 64 < {QUERIES} ? first + 63 : {QUERIES} - 1;
  i32 begin = 0, end = {BLOCKS};
)") + live_blocks(limits_, a_, "low", "high") +
            "own_end = end > least ? own_end : least;\n}\n";
  }
  return text + place_in_batch();
}

std::string HalvesWriter::tiles_of_queries() const {
  return in(R"(if (thread == 0) {{
  PYC_UNROLL for (i32 i = 0; i < {STAGES}; ++i) {{
  pyc_gate_init((u32)({K_FULL} + i * 8), {COPYING}u);
  pyc_gate_init((u32)({K_FREE} + i * 8), {COMPUTING}u / 32u);
  }}
  PYC_UNROLL for (i32 i = 0; i < {V_STAGES}; ++i) {{
  pyc_gate_init((u32)({V_FULL} + i * 8), {COPYING}u);
  pyc_gate_init((u32)({V_FREE} + i * 8), {COMPUTING}u / 32u);
  }}
  PYC_UNROLL for (i32 i = 0; i < {SLOTS} * {COMPUTING} / 128; ++i) {{
  pyc_gate_init((u32)({Q_FREE} + i * 8), 4u);
  }}
)") + (maps_.empty() ? "" : "pyc_gates_ready();\n") +
         R"(}
  pyc_barrier();
)" + (z_.copies_apart ? copied_tiles() : "{\n") +
         (z_.turns == 1 ? reads_of_head() : "") + in(R"(u32 stage = 0u, parity = 0u, before = 0u;
)") + in(values_apart() ? "u32 v_stage = 0u, v_parity = 0u;\n" : "") +
         in(z_.turns == 1 ? "" : "bool begun = false;\nu32 slot = 0u;\n") + in(R"(float s[{SCORES}];
  for (i32 turn = 0; turn < {TURNS}; ++turn) {{
  float o[{SUMS}];
  u32 w[{WEIGHTS}];
  float m[2], l[2], kept[2], sum[4];
  PYC_UNROLL for (i32 i = 0; i < {SUMS}; ++i) o[i] = 0x0p+0f;
  PYC_UNROLL for (i32 h = 0; h < 2; ++h) {{
  m[h] = pyc_bits_f32(0xff800000u);
  l[h] = 0x0p+0f;
  }}
)") + tile("turn") +
         (z_.mixed ? own_tile() : "") + (z_.turns == 1 ? "" : reads_of_head()) +
         (z_.copies_apart ? "" : bring_first()) +
         in(z_.mixed ? "const i32 group_low = first;\n"
                     : "const i32 group_low = first + group * 64;\n") +
         in("const i32 own = group_low + in_group / 32 * 16 + lane / 4;\n") +
         in(limits_.all.empty()
                ? ""
                : R"(  const i32 group_high = group_low + 64 < {QUERIES} ? group_low + 63 : {QUERIES} - 1;
)") + blocks_of_keys() +
         in(R"(pyc_wgmma_values_done(o);
  if (lane == 0 && begin < end) pyc_gate_arrive({V_FREE}u + before * 8u);
)") + in(z_.turns == 1 ? "" : R"(begun = begin < end && follows;
  if (begin < end) slot ^= 1u;
)") + results() +
         "}\n}\n";
}

// The unit's views count in 16 bytes.
std::string HalvesWriter::products_of_keys(const char* view, const char* stage) const {
  std::string text = fmt::format(
      "const u64 k_view = pyc_wgmma_place({}u, 16u, 1024u) + {} * {}u;\npyc_wgmma_fence();\n",
      z_.keys_at(), stage, z_.key_bytes() / 16);
  for (int64_t d = 0; d < z_.depth; d += kUnitTerms) {
    const int64_t part = d / kPart * kPartBytes;
    const int64_t within = d % kPart * 2;
    text += fmt::format("pyc_wgmma_scores(s, {} + {}u, k_view + {}u, {});\n", view,
                        (part * kGroupRows + within) / 16, (part * z_.keys + within) / 16,
                        d == 0 ? 0 : 1);
  }
  return text + "pyc_wgmma_commit();\n";
}

std::string HalvesWriter::products_of_values() const {
  std::string text = fmt::format(
      "const u64 v_view = pyc_wgmma_place({}u, {}u, 1024u) + {} * {}u;\npyc_wgmma_fence();\n",
      z_.values_at(), z_.keys * kPartBytes, v_stage(), z_.value_bytes() / 16);
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
//
// In turns only the last block is unlike: what that changes is in variables, not asked in each.
std::string HalvesWriter::blocks_of_keys() const {
  const bool turns = z_.turns > 1;
  const char* const end = z_.mixed ? "own_end" : "end";
  return next_tile() + in(turns ? "if (begin < end && !begun) {{\n" : "if (begin < end) {{\n") +
         (z_.mixed ? "if (side != 0) {\n" + pass_over("stage", "parity") + next_stages() + "}\n"
                   : "") +
         in(R"(pyc_gate_wait({K_FULL}u + stage * 8u, parity);
  {FENCE}
)") + products_of_keys("q_view", "stage") +
         fmt::format("pyc_wgmma_wait_0();\n}}\nfor (i32 j = begin; j < {}; ++j) {{\n", end) +
         in("if (lane == 0) pyc_gate_arrive({K_FREE}u + stage * 8u);\n") +
         (turns ? fmt::format("if (j + 1 == {}) {{\n", end) + behind_last() + "}\n" : "") +
         scores() + weights() + in(R"(u32 next = stage + 1u == {STAGES}u ? 0u : stage + 1u;
  u32 next_parity = next == 0u ? parity ^ 1u : parity;
)") + (z_.mixed ? passed_over() : "") +
         in(turns ? "if (waits) " : "if (j + 1 < end) ") +
         in(R"(pyc_gate_wait({K_FULL}u + next * 8u, next_parity);
  pyc_gate_wait({V_FULL}u + {V_STAGE} * 8u, {V_PARITY});
  pyc_wgmma_values_done(o);
  if (lane == 0 && j > begin) pyc_gate_arrive({V_FREE}u + before * 8u);
  PYC_UNROLL for (i32 i = 0; i < {WEIGHTS}; ++i) w[i] = pyc_halves(s[i * 2], s[i * 2 + 1]);
  {FENCE}
)") + products_of_keys("q_view", "next") +
         in(R"(if (kept[0] != 0x1p+0f || kept[1] != 0x1p+0f) {{
  PYC_UNROLL for (i32 i = 0; i < {SUMS}; ++i) o[i] = pyc_mul_f32(o[i], kept[i / 2 % 2]);
  }}
)") + products_of_values() +
         (z_.copies_apart ? "" : bring_next()) + whole_sums() +
         in("pyc_wgmma_scores_done(s);\nbefore = {V_STAGE};\n") +
         (z_.mixed ? "stage = next;\nparity = next_parity;\n" : next_stages()) + "}\n";
}

// The product behind the last block is the next tile's first, if one follows.
std::string HalvesWriter::behind_last() const {
  return in(R"(if (lane == 0) {{
  pyc_gate_arrive({Q_FREE}u + (slot * {COMPUTING}u / 128u + (u32)group) * 8u);
  }}
  waits = follows;
  if (follows) q_view = )") +
         place_of_queries("(slot ^ 1u)") + ";\n" + (z_.mixed ? "passed = passed_last;\n" : "");
}

std::string HalvesWriter::place_of_queries(const char* slot) const {
  const std::string of_group = fmt::format("group * {}", kGroupRows * z_.depth * 2);
  if (z_.turns == 1) return "pyc_wgmma_place((u32)(" + of_group + "), 16u, 1024u)";
  return fmt::format("pyc_wgmma_place((u32)({}) + {} * {}u, 16u, 1024u)", of_group, slot,
                     z_.rows * z_.depth * 2);
}

// A stage of the other head's keys and values: it is free once it was full. (Of a gate that nobody
// looks at, the state could be taken for the one after the next.)
std::string HalvesWriter::pass_over(const char* stage, const char* parity) const {
  std::string text;
  for (const char* full : {"{K_FULL}", "{V_FULL}"}) {
    text += fmt::format("pyc_gate_wait({}u + {} * 8u, {});\n", in(full), stage, parity);
  }
  text += "if (lane == 0) {\n";
  for (const char* free : {"{K_FREE}", "{V_FREE}"}) {
    text += fmt::format("pyc_gate_arrive({}u + {} * 8u);\n", in(free), stage);
  }
  return text + "}\n";
}

// What lies between this stage and the next of this group. There are five, since a group that waits
// for the keys three further on has not yet left the values of two before.
std::string HalvesWriter::passed_over() const {
  return "for (i32 i = 0; i < passed; ++i) {\n" + pass_over("next", "next_parity") +
         in(R"(next = next + 1u == {STAGES}u ? 0u : next + 1u;
  next_parity ^= next == 0u ? 1u : 0u;
}}
)");
}

// Where this tile's queries are and, in turns, what lies behind its last block of keys.
std::string HalvesWriter::next_tile() const {
  if (z_.turns == 1) return "const u64 q_view = " + place_of_queries("") + ";\n";
  return in(z_.mixed ? "i32 passed = sides - 1, passed_last = sides == 1 ? end - own_end : 1 - "
                       "side;\n"
                     : "") +
         in("bool follows = false;\nif (turn + 1 < {TURNS}) {{\n") + tile("turn + 1") +
         (z_.mixed ? own_tile() + "if (begin < end) passed_last += side;\n" : "") +
         "follows = begin < end;\n}\nbool waits = true;\nu64 q_view = " + place_of_queries("slot") +
         ";\n";
}

KernelText attention_halves_text(const lower::Group& group, const AttentionCut& cut,
                                 const std::string& symbol) {
  return HalvesWriter(group, cut, symbol).text();
}

}  // namespace pyc::cuda
