// Softmax along rows of halves that a cluster of 16 blocks has: a block is alone on its
// multiprocessor and has parts of three rows at a time, each with a team of warps of its own, so
// that one computes while others wait for the rest of their rows. A warp has two blocks of 1024,
// each half of it one, and a thread four neighbours of every 64. Half of the exponentials wait in
// shared memory, the others in registers. Bits are those of the group's kernel.

#include <fmt/args.h>
#include <fmt/format.h>

#include <map>
#include <optional>
#include <type_traits>

#include "backends/cuda/emitter.h"
#include "backends/cuda/forms.h"
#include "backends/cuda/kernel_generator.h"
#include "loop/builder.h"
#include "loop/function.h"
#include "loop/functions.h"
#include "loop/walk.h"

namespace pyc::cuda {
namespace {

using loop::Expr;
using loop::ExprId;
using loop::StmtKind;

constexpr int64_t kTogether = 16;  // blocks of a cluster
// Clusters that run at a time: the multiprocessors are in groups of which seven have room for one.
constexpr int64_t kClusters = 7;
constexpr int64_t kTeams = 3;
constexpr int64_t kKeptRounds = 8;  // of 16, in shared memory
constexpr int64_t kColumnsOfWarp = 2 * loop::kTreeBlock;
constexpr int64_t kColumnsOfTeamWarp = kTogether * kColumnsOfWarp;
// Warps of a team. Shorter rows have as good a form, longer ones do not fit.
constexpr int64_t kLeastWarps = 6;
constexpr int64_t kMostWarps = 8;
constexpr int64_t kBytesOfHalf = 2;
constexpr int64_t kBytesOfFloat = 4;
constexpr double kSoftmaxBytesPerNs = 3500.0;

struct SoftmaxRows {
  uint32_t read = 0;  // buffers
  uint32_t written = 0;
  DType dtype = DType::kBF16;
  int64_t rows = 1;
  int64_t columns = 0;
  loop::VarId largest = loop::kNone;
  loop::VarId sum = loop::kNone;

  int64_t warps() const { return columns / kColumnsOfTeamWarp; }
};

// The loop of a statement that has one reduction or none, and stores as many values as `stores`.
const loop::Loop* pass_of(const loop::Kernel& kernel, size_t i, size_t reductions, size_t stores) {
  if (kernel.body[i].kind != StmtKind::kLoop) return nullptr;
  const loop::Loop& l = kernel.loops[kernel.body[i].index];
  const bool plain = l.carries.empty() && l.chunk_var == loop::kNone && !l.ordered &&
                     l.reductions.size() == reductions && l.body.size() == stores &&
                     (stores == 0 || l.body[0].kind == StmtKind::kStore) &&
                     (reductions == 0 || l.reductions[0].guard == loop::kNone);
  return plain ? &l : nullptr;
}

// The one load below an expression; kNone where there are several or none.
ExprId only_load(const loop::Pool& pool, ExprId value) {
  ExprId found = loop::kNone;
  int count = 0;
  loop::Walk{pool}(value, [&](ExprId id, const loop::ExprNode& n) {
    if (n.op != loop::Op::kLoad) return;
    found = id;
    ++count;
  });
  return count == 1 ? found : loop::kNone;
}

// What the kernel would be if it were a softmax is built and compared: equal expressions are one.
std::optional<SoftmaxRows> softmax_rows(const loop::Kernel& given) {
  if (given.body.size() != 3 || given.stores.size() != 2 || !given.checks.empty()) {
    return std::nullopt;
  }
  const loop::Loop* first = pass_of(given, 0, 1, 0);
  const loop::Loop* second = pass_of(given, 1, 1, 1);
  const loop::Loop* third = pass_of(given, 2, 0, 1);
  if (first == nullptr || second == nullptr || third == nullptr) return std::nullopt;
  if (first->extent != second->extent || first->extent != third->extent) return std::nullopt;
  const loop::Reduction& most = first->reductions[0];
  const loop::Reduction& sum = second->reductions[0];
  if (most.op != loop::ReduceOp::kMax || most.kind != loop::ReduceKind::kExact ||
      sum.op != loop::ReduceOp::kSum || sum.kind != loop::ReduceKind::kTree) {
    return std::nullopt;
  }
  loop::Kernel kernel = given;
  loop::Pool& pool = kernel.pool;
  const loop::Store& kept = given.stores[second->body[0].index];
  const loop::Store& last = given.stores[third->body[0].index];
  const ExprId load = only_load(pool, most.value);
  const ExprId again = only_load(pool, sum.value);
  if (load == loop::kNone || again == loop::kNone) return std::nullopt;
  const loop::ExprNode n = pool.node(load);
  const loop::ExprNode m = pool.node(again);
  if (!is_half(n.dtype) || n.imm != m.imm || n.b != loop::kNone || m.b != loop::kNone) {
    return std::nullopt;
  }
  if (!counts_rows(kernel, *first, n.a) || !counts_rows(kernel, *second, m.a) ||
      !counts_rows(kernel, *third, last.offset) || kept.offset != pool.var(second->var)) {
    return std::nullopt;
  }
  const auto number = [&](ExprId half) { return Expr{&pool, pool.convert(half, DType::kF32)}; };
  const Expr largest{&pool, pool.var(most.result)};
  const Expr total{&pool, pool.var(sum.result)};
  const Expr e = loop::exp_nonpositive(number(again) - largest);
  const Expr own{&pool, pool.load(kept.buffer, DType::kF32, pool.var(third->var))};
  const Expr y{&pool, pool.convert((own * (like(total, 1.0) / total)).id, n.dtype)};
  if (most.value != number(load).id || sum.value != e.id || kept.value != e.id ||
      last.value != loop::canonical_nan(y).id) {
    return std::nullopt;
  }
  SoftmaxRows out{.read = static_cast<uint32_t>(n.imm),
                  .written = last.buffer,
                  .dtype = n.dtype,
                  .rows = kernel.parallel_size(),
                  .columns = first->extent,
                  .largest = most.result,
                  .sum = sum.result};
  const bool scratch = kernel.buffers[kept.buffer].access == loop::Access::kScratch;
  if (!scratch || kernel.buffers[out.read].access != loop::Access::kRead) return std::nullopt;
  return out;
}

constexpr std::string_view kHead =
    R"(const u32 own = pyc_shuffle_first_u32((u32)pyc_thread() / 32);
const u32 lane = (u32)pyc_thread() % 32;
const u32 half = lane / 16;
const u32 t = lane % 16;
const i32 team = (i32)(own / {WARPS});
const i32 warp = (i32)((u32)pyc_block() % 16 * {WARPS} + own % {WARPS});
PYC_SHARED_MORE
PYC_NEAR u16* const arriving = (PYC_NEAR u16*)pyc_shared + own * {ARRIVING};
PYC_NEAR pyc_v16* const kept = (PYC_NEAR pyc_v16*)(pyc_shared + {KEPT_AT}) + own * {KEPT} + lane;
PYC_SHARED_EACH(u64, arrived, {GATES});
PYC_SHARED_TEAMS(u64, most_gate, 2, {TEAMS}, team);
PYC_SHARED_TEAMS(u64, sum_gate, 2, {TEAMS}, team);
PYC_SHARED_TEAMS(u32, most_parts, {MOST_PARTS}, {TEAMS}, team);
PYC_SHARED_TEAMS(u32, sum_parts, {SUM_PLACES}, {TEAMS}, team);
PYC_SHARED_TEAMS(u32, factor, 4, {TEAMS}, team);
u64* const here = arrived + own;
if (lane == 0) {{
pyc_gate_make(here);
if (own % {WARPS} == 0) {{
pyc_gate_make(most_gate);
pyc_gate_make(sum_gate);
}}
}}
pyc_gates_made();
pyc_together_arrive();
pyc_barrier();
const i32 ahead = {AT_ONCE};
i32 point = team * {CLUSTERS} + (i32)((u32)pyc_block() / 16);
if (lane == 0) {{
pyc_gate_expect(here, {BROUGHT}u);
pyc_bring(arriving, {X} + (i64)point * {COLUMNS} + warp * {OF_WARP}, {BROUGHT}u, here);
}}
for (u32 turn = 0; point < {ROWS}; point += ahead, ++turn) {{
)";

// The least is looked for once the largest has been told, while others' answers are waited for.
// Keys are integers with a sign whose order is that of floats; a NaN, of whatever sign, comes out
// of pyc_max_pair as the canonical one, which is the largest.
constexpr std::string_view kMost =
    R"(const i32 next = point + ahead;
pyc_v8 x[16];
pyc_gate_pass(here, {BROUGHT}u, turn);
PYC_UNROLL for (i32 k = 0; k < 16; ++k) {{
x[k] = *(PYC_NEAR const pyc_v8*)(arriving + half * 1024 + t * 4 + k * 64);
}}
u32 most[2] = {{pyc_max_pair_{T}(x[0].x, x[0].y), pyc_max_pair_{T}(x[1].x, x[1].y)}};
PYC_UNROLL for (i32 k = 2; k < 16; ++k) {{
most[k % 2] = pyc_max_pair_{T}(most[k % 2], x[k].x);
most[k % 2] = pyc_max_pair_{T}(most[k % 2], x[k].y);
}}
most[0] = pyc_max_pair_{T}(most[0], most[1]);
pyc_warp_barrier();
if (lane == 0 && next < {ROWS}) {{
pyc_gate_expect(here, {BROUGHT}u);
pyc_bring(arriving, {X} + (i64)next * {COLUMNS} + warp * {OF_WARP}, {BROUGHT}u, here);
}}
float largest = pyc_max_f32(pyc_{T}_of_pair(most[0], 0), pyc_{T}_of_pair(most[0], 1));
i32 key = (i32)pyc_f32_bits(largest);
key = pyc_warp_max_i32(key ^ (key >> 31 & 0x7fffffff));
if (turn == 0) pyc_together_wait();
if (own % {WARPS} == 0 && lane == 0) pyc_gate_expect(most_gate, {MOST_BYTES}u);
if (lane < 16) pyc_tell_u32(most_parts, warp, {MOST_PARTS}, most_gate, (i32)lane, (u32)key);
u32 least[2] = {{pyc_min_pair_{T}(x[0].x, x[0].y), pyc_min_pair_{T}(x[1].x, x[1].y)}};
PYC_UNROLL for (i32 k = 2; k < 16; ++k) {{
least[k % 2] = pyc_min_pair_{T}(least[k % 2], x[k].x);
least[k % 2] = pyc_min_pair_{T}(least[k % 2], x[k].y);
}}
least[0] = pyc_min_pair_{T}(least[0], least[1]);
const float smallest = pyc_min_f32(pyc_{T}_of_pair(least[0], 0), pyc_{T}_of_pair(least[0], 1));
pyc_gate_pass(most_gate, {MOST_BYTES}u, turn);
{{
const u32 place = lane < {MOST_LANES} ? lane : 0;
const pyc_v16 parts = pyc_near_words(most_parts + place * 4);
key = (i32)parts.x > (i32)parts.y ? (i32)parts.x : (i32)parts.y;
key = key > (i32)parts.z ? key : (i32)parts.z;
key = pyc_warp_max_i32(key > (i32)parts.w ? key : (i32)parts.w);
}}
largest = pyc_bits_f32((u32)(key ^ (key >> 31 & 0x7fffffff)));
float e[{ROUNDS}][4];
float part[4];
)";

// The same with an exp for all numbers, or for those whose exp is normal.
constexpr std::string_view kExp =
    R"(PYC_UNROLL for (i32 k = 0; k < 16; ++k) {{
float y[4];
PYC_UNROLL for (i32 i = 0; i < 4; ++i) {{
const float x0 = pyc_{T}_of_pair(i < 2 ? x[k].x : x[k].y, i % 2);
{EXP}part[i] = k == 0 ? y[i] : pyc_add_f32(part[i], y[i]);
}}
if (k < {KEPT_ROUNDS}) {{
kept[k * 32] = pyc_v16{{pyc_f32_bits(y[0]), pyc_f32_bits(y[1]), pyc_f32_bits(y[2]), pyc_f32_bits(y[3])}};
}} else {{
PYC_UNROLL for (i32 i = 0; i < 4; ++i) e[k % {ROUNDS}][i] = y[i];
}}
}}
)";

// A thread has two pairs of lanes of the tree, its warp's other half another block: in each step
// threads that a distance is between give one number and keep one, until each has its last.
constexpr std::string_view kSum =
    R"({{
const bool upper = t >= 8;
float a = upper ? part[1] : part[0];
float b = upper ? part[3] : part[2];
a = pyc_add_f32(a, pyc_bits_f32(pyc_shuffle_xor_u32(pyc_f32_bits(upper ? part[0] : part[1]), 8u)));
b = pyc_add_f32(b, pyc_bits_f32(pyc_shuffle_xor_u32(pyc_f32_bits(upper ? part[2] : part[3]), 8u)));
const bool odd = t / 4 % 2 != 0;
float r = odd ? b : a;
r = pyc_add_f32(r, pyc_bits_f32(pyc_shuffle_xor_u32(pyc_f32_bits(odd ? a : b), 4u)));
r = pyc_add_f32(r, pyc_bits_f32(pyc_shuffle_xor_u32(pyc_f32_bits(r), 2u)));
r = pyc_add_f32(r, pyc_bits_f32(pyc_shuffle_xor_u32(pyc_f32_bits(r), 1u)));
r = pyc_add_f32(r, pyc_bits_f32(pyc_shuffle_xor_u32(pyc_f32_bits(r), 4u)));
r = pyc_add_f32(r, pyc_bits_f32(pyc_shuffle_xor_u32(pyc_f32_bits(r), 8u)));
if (own % {WARPS} == 0 && lane == 0) pyc_gate_expect(sum_gate, {SUM_BYTES}u);
pyc_tell_u32(sum_parts, warp * 2 + (i32)half, {SUM_PLACES}, sum_gate, (i32)t, pyc_f32_bits(r));
}}
if (own % {WARPS} == 0) {{
pyc_gate_pass(sum_gate, {SUM_BYTES}u, turn);
float sum = 0x0p+0f;
pyc_v16 a[4];
PYC_UNROLL for (i32 i = 0; i < 4; ++i) a[i] = pyc_near_words(sum_parts + i * 4);
PYC_ROLLED for (i32 w = 16; w <= {SUM_PARTS}; w += 16) {{
PYC_UNROLL for (i32 i = 0; i < 4; ++i) {{
sum = pyc_add_f32(sum, pyc_bits_f32(a[i].x));
sum = pyc_add_f32(sum, pyc_bits_f32(a[i].y));
sum = pyc_add_f32(sum, pyc_bits_f32(a[i].z));
sum = pyc_add_f32(sum, pyc_bits_f32(a[i].w));
a[i] = pyc_near_words(sum_parts + w + i * 4);
}}
}}
sum = pyc_add_f32(0x0p+0f, sum);
{FACTOR}if (lane == 0) factor[0] = pyc_f32_bits({FACTOR_NAME});
}}
pyc_team_barrier(team, {WARPS} * 32);
const float by = pyc_bits_f32(pyc_near_words(factor).x);
PYC_GLOBAL u16* const to = {Y} + (i64)point * {COLUMNS} + warp * {OF_WARP} + half * 1024 + t * 4;
)";

constexpr std::string_view kLast =
    R"(PYC_UNROLL for (i32 k = 0; k < 16; ++k) {{
pyc_v16 y = {{}};
if (k < {KEPT_ROUNDS}) y = kept[k * 32];
float z[4] = {{pyc_bits_f32(y.x), pyc_bits_f32(y.y), pyc_bits_f32(y.z), pyc_bits_f32(y.w)}};
if (k >= {KEPT_ROUNDS}) {{
PYC_UNROLL for (i32 i = 0; i < 4; ++i) z[i] = e[k % {ROUNDS}][i];
}}
PYC_UNROLL for (i32 i = 0; i < 4; ++i) z[i] = pyc_mul_f32(z[i], by);
*(PYC_GLOBAL pyc_v8*)(to + k * 64) = pyc_v8{{{PAIR}(z[0], z[1]), {PAIR}(z[2], z[3])}};
}}
)";

class SoftmaxWriter {
 public:
  SoftmaxWriter(const loop::Kernel& kernel, const SoftmaxRows& rows)
      : kernel_(kernel), rows_(rows) {
    const int64_t warps = rows.warps();
    const int64_t gates = kTeams * warps;
    const int64_t brought = kColumnsOfWarp * kBytesOfHalf;
    const int64_t sum_parts = 2 * kTogether * warps;
    shared_ = gates * (brought + kept_bytes());
    add("T", std::string(dtype_name(rows.dtype)));
    add("X", buffer_name(rows.read));
    add("Y", buffer_name(rows.written));
    add("WARPS", warps);
    add("TEAMS", kTeams);
    add("CLUSTERS", kClusters);
    add("AT_ONCE", kTeams * kClusters);
    add("GATES", gates);
    add("ROWS", rows.rows);
    add("COLUMNS", rows.columns);
    add("OF_WARP", kColumnsOfWarp);
    add("ARRIVING", kColumnsOfWarp);
    add("BROUGHT", brought);
    add("KEPT", kKeptRounds * cuda_dialect().warp);
    add("KEPT_AT", gates * brought);
    add("KEPT_ROUNDS", kKeptRounds);
    add("ROUNDS", kRounds - kKeptRounds);
    add("MOST_PARTS", kTogether * warps);
    add("MOST_BYTES", kTogether * warps * kBytesOfFloat);
    add("MOST_LANES", kTogether * warps / 4);
    add("SUM_PARTS", sum_parts);
    add("SUM_PLACES", sum_parts + 16);  // as many are read ahead
    add("SUM_BYTES", sum_parts * kBytesOfFloat);
  }

  KernelText text() {
    KernelText out{.symbol = kUnitSymbol,
                   .form = fmt::format("softmax of {} by {}", rows_.columns, kTeams),
                   .text = "",
                   .buffers = parameters_of(kernel_),
                   .blocks = static_cast<uint32_t>(kClusters * kTogether),
                   .threads = static_cast<uint32_t>(kTeams * rows_.warps() * cuda_dialect().warp),
                   .shared_bytes = static_cast<uint32_t>(shared_)};
    loop::Kernel kernel = kernel_;
    loop::Pool& pool = kernel.pool;
    const loop::VarId x = pool.new_var("x", DType::kF32, 0);
    const Expr below = Expr{&pool, pool.var(x)} - Expr{&pool, pool.var(rows_.largest)};
    const Expr total{&pool, pool.var(rows_.sum)};
    const ExprId any = loop::exp_nonpositive(below).id;
    const ExprId normal = loop::exp_normal(below).id;
    const ExprId factor = (like(total, 1.0) / total).id;
    const std::vector<ExprId> whole = loop::inline_calls(pool);

    Emitter e(kernel, cuda_dialect(), kUnitSymbol);
    e.declare(rows_.largest, "largest");
    const auto exp_text = [&](ExprId value) {
      e.open_scope();
      e.declare(x, "x0");
      e.line(fmt::format("y[i] = {};", e.value(whole[value])));
      e.end_statement();
      add("EXP", e.close_scope());
      return in(kExp);
    };
    const std::string of_any = exp_text(any);
    const std::string of_normal = exp_text(normal);
    e.open_scope();
    e.declare(rows_.sum, "sum");
    const std::string name = e.value(whole[factor]);
    e.end_statement();
    add("FACTOR", e.close_scope());
    add("FACTOR_NAME", name);
    const auto last = [&](const char* how) {
      add("PAIR", fmt::format("pyc_pair_to_{}{}", dtype_name(rows_.dtype), how));
      return in(kLast);
    };
    // No difference of numbers has a NaN but where the largest is infinite or a NaN, and then all
    // of the row are NaN.
    out.text = e.tables() + kernel_head(out, kernel_, true, 1, kTogether) + " {\n" + in(kHead) +
               in(kMost) +
               fmt::format("if (pyc_warp_all(pyc_sub_f32(smallest, largest) >= {:.1f}f)) {{\n",
                           loop::kLeastNormalExp) +
               of_normal + "} else {\n" + of_any + "}\n" + in(kSum) + "if (by == by) {\n" +
               last("_raw") + "} else {\n" + last("_one_nan") + "}\n}\n}\n";
    return out;
  }

 private:
  static constexpr int64_t kRounds = 16;

  static int64_t kept_bytes() { return kKeptRounds * 4 * kBytesOfFloat * cuda_dialect().warp; }
  template <class T>
  void add(const char* name, const T& value) {
    if constexpr (std::is_integral_v<T>) {
      names_.insert_or_assign(name, std::to_string(value));
    } else {
      names_.insert_or_assign(name, value);
    }
  }
  std::string in(std::string_view form) const {
    fmt::dynamic_format_arg_store<fmt::format_context> store;
    for (const auto& [name, value] : names_) store.push_back(fmt::arg(name.c_str(), value));
    return fmt::vformat(form, store);
  }

  const loop::Kernel& kernel_;
  SoftmaxRows rows_;
  int64_t shared_ = 0;
  std::map<std::string, std::string> names_;
};

class LongSoftmax final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const ir::Graph&,
                                              const lower::Group& group) const override {
    if (group.kernel.body.size() != 3) return {};
    const std::optional<SoftmaxRows> rows = softmax_rows(group.kernel);
    if (!rows) return {};
    backends::Candidate c;
    c.name = fmt::format("{}_long_softmax", dtype_name(rows->dtype));
    c.order = group.order;
    const std::vector<bool> unaligned = unaligned_buffers(group);
    const bool whole = rows->columns % kColumnsOfTeamWarp == 0;
    if (!whole || rows->warps() < kLeastWarps || rows->warps() > kMostWarps) {
      c.rejected = "other_rows";
    } else if (rows->rows <= kTeams * kClusters || rows->rows > kMostRows) {
      c.rejected = "too_few_or_many_rows";
    } else if (unaligned[rows->read] || unaligned[rows->written]) {
      c.rejected = "not_aligned";
    }
    if (!c.rejected.empty()) return {c};
    c.cost_ns = kLaunchNs + static_cast<double>(group.bytes) / kSoftmaxBytesPerNs;
    auto plan = std::make_shared<CudaPlan>();
    plan->parts.push_back(
        make_part(SoftmaxWriter(group.kernel, *rows).text(), group.kernel, group));
    c.plan = std::move(plan);
    return {c};
  }

 private:
  static constexpr int64_t kMostRows = int64_t{1} << 24;  // counted in i32
};

}  // namespace

const KernelGenerator& generator_long_softmax() {
  static const LongSoftmax generator;
  return generator;
}

}  // namespace pyc::cuda
