// Attention of halves on Hopper's matrix unit, in the order sm90: how many queries a block of
// threads takes.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/generators/attention_formulas.h"
#include "backends/cuda/generators/attention_halves_sizes.h"
#include "backends/cuda/generators/attention_halves_text.h"
#include "backends/cuda/generators/attention_limits.h"
#include "backends/cuda/kernel_generator.h"

namespace pyc::cuda {
namespace {

constexpr std::string_view kHalvesOrder = "sm90";

// An H100 or H200, roughly, in clocks of a multiprocessor, for 64 queries and 128 keys.
constexpr double kHalvesClocksPerNs = 1.7;
constexpr double kAloneClocks = 3000.0;      // of a group that has the multiprocessor to itself
constexpr double kIssueClocks = 1100.0;      // of instructions that groups take turns with
constexpr double kApartClocks = 1040.0;      // the same where another group copies
constexpr double kCopiedPerClock = 32.0;     // bytes of keys and values, from the cache of all
constexpr double kQueryTileClocks = 3500.0;  // before the first block of keys and after the last
constexpr double kLoneTileClocks = 95.0;     // the same a column, where nothing else runs meanwhile
constexpr double kNextTileShare = 0.7;       // of that, for a further tile in turn
constexpr double kUnlikeTileShare = 0.5;     // and if tiles are not alike
constexpr double kTurnsShare = 1.02;         // of a block of keys, in a loop within a loop
constexpr int64_t kTurns = 4;

constexpr int64_t kMostKeys = 128;  // of a block, as lower/ cuts them
constexpr int64_t kMostWidth = 128;
constexpr int64_t kMostRows = int64_t{1} << 24;  // indices are i32

bool is_strided_half(const std::optional<lower::Attention::Operand>& x, DType factors) {
  return x && x->dtype == factors;
}

}  // namespace

std::string attention_halves_obstacle(const lower::Group& group) {
  const lower::Attention& a = *group.attention;
  if (a.dtype != DType::kF32 || !is_half(a.factors)) return "factors_not_halves";
  for (const auto* x : {&a.q, &a.k, &a.v}) {
    if (!is_strided_half(*x, a.factors)) return "operands_not_strided";
  }
  if (a.batch_size() <= 0 || a.queries <= 0 || a.keys <= 0 || a.depth <= 0 || a.columns <= 0) {
    return "empty";
  }
  if (a.block > kMostKeys) return "block_of_keys_too_long";
  if (a.depth > kMostWidth) return "depth_too_long";
  if (a.columns > kMostWidth) return "too_many_columns";
  if (!lies_by(8, group, *a.q, a.depth) || !lies_by(8, group, *a.k, a.depth) ||
      !lies_by(8, group, *a.v, a.columns)) {
    return "operands_not_by_16_bytes";
  }
  if (const uint32_t y = a.outputs[0].buffer;
      y != loop::kNone && group.buffer_offset_bytes(y) % 16 != 0) {
    return "result_not_by_16_bytes";
  }
  if (!group.kernel.checks.empty()) return "has_checks";
  if (std::max({a.batch_size(), a.queries, a.keys}) >= kMostRows ||
      static_cast<double>(a.batch_size()) * static_cast<double>(a.queries) / 64.0 >= 1e9) {
    return "too_many_rows";
  }
  return "";
}

namespace {

// Whether something is read that each pair of a query and a key has its own of.
bool reads_pairs(const loop::Pool& pool, const lower::Attention& a) {
  for (loop::ExprId e = 0; e < static_cast<loop::ExprId>(pool.size()); ++e) {
    const loop::ExprNode& n = pool.node(e);
    const auto by = [&](loop::VarId v) {
      return v != loop::kNone && loop::depends_on(pool, n.a, v);
    };
    if (n.op == loop::Op::kLoad && by(a.query_var) && (by(a.key_var) || by(a.block_var))) {
      return true;
    }
  }
  return false;
}

int64_t parts_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Turns even out what limits of keys make unequal, and bring the next tile while one ends.
double halves_cost_ns(const lower::Attention& a, const AttentionCut& cut, int64_t resident,
                      bool limited) {
  const int64_t tiles = a.batch_size() * parts_of(parts_of(a.queries, cut.rows()), cut.turns);
  const int64_t together = std::min(resident, parts_of(tiles, kMultiprocessors));
  const auto waves = static_cast<double>(parts_of(tiles, kMultiprocessors * together));
  const auto blocks = static_cast<double>(parts_of(a.keys, a.block));
  const auto bytes = static_cast<double>(together * a.block * (a.depth + a.columns) * 2);
  const double issue = cut.groups > 1 ? kApartClocks : kIssueClocks;
  const double block = (cut.turns > 1 ? kTurnsShare : 1.0) *
                       std::max({kAloneClocks, static_cast<double>(together * cut.groups) * issue,
                                 bytes / kCopiedPerClock});
  const double first =
      together == 1 ? kLoneTileClocks * static_cast<double>(a.columns) : kQueryTileClocks;
  const double next = first * (limited ? kUnlikeTileShare : kNextTileShare);
  const double all =
      first + blocks * block + static_cast<double>(cut.turns - 1) * (next + blocks * block);
  return kLaunchNs + waves * all / kHalvesClocksPerNs;
}

class AttentionHalves final : public KernelGenerator {
 public:
  bool is_for_unit(std::string_view order) const override { return order == kHalvesOrder; }

  std::vector<backends::Candidate> candidates(const ir::Graph&,
                                              const lower::Group& group) const override {
    if (!group.attention || group.order != kHalvesOrder) return {};
    const std::string name = fmt::format("{}_attention", dtype_name(group.attention->factors));
    if (std::string why_not = attention_halves_obstacle(group); !why_not.empty()) {
      backends::Candidate c;
      c.name = name;
      c.order = group.order;
      c.rejected = std::move(why_not);
      return {c};
    }
    std::vector<backends::Candidate> out;
    const bool limited = attention_halves_limited(group);
    for (const int64_t groups : {1, 2, 3}) {
      for (const int64_t turns : {int64_t{1}, kTurns}) {
        const AttentionCut cut{groups, turns};
        const int64_t resident = attention_halves_resident(group, cut);
        if (turns > 1 && groups == 1) continue;  // a group that copies for others can go on
        if (resident < 1 || (turns - 1) * cut.rows() >= group.attention->queries) continue;
        backends::Candidate& c = out.emplace_back();
        c.name = fmt::format("{}__{}x{}", name, cut.rows(), group.attention->block);
        if (turns > 1) c.name += fmt::format("x{}", turns);
        c.order = group.order;
        c.cost_ns = halves_cost_ns(*group.attention, cut, resident, limited);
        auto plan = std::make_shared<CudaPlan>();
        plan->parts.push_back(
            make_part(attention_halves_text(group, cut, kUnitSymbol), group.kernel, group));
        c.plan = std::move(plan);
      }
    }
    return out;
  }
};

}  // namespace

bool attention_halves_limited(const lower::Group& group) {
  const AttentionFormulas formulas(group, "");
  const lower::Attention& a = *group.attention;
  return !key_limits(formulas.kernel().pool, a, formulas.written(a.score)).all.empty();
}

int64_t attention_halves_resident(const lower::Group& group, const AttentionCut& cut) {
  const lower::Attention& a = *group.attention;
  const AttentionSizes z(a, cut);
  // What scores read, a number for each of the thread's keys, is in registers for a while. In a
  // loop without copies the compiler finds room, if it is no more and the score has little else.
  bool reads = false;
  for (uint32_t b = 0; b < group.kernel.buffers.size(); ++b) {
    const bool is_factor = b == a.q->buffer || b == a.k->buffer || b == a.v->buffer;
    reads |= group.kernel.buffers[b].access == loop::Access::kRead && !is_factor;
  }
  if (reads && z.copies_apart) {
    const AttentionFormulas formulas(group, "");
    const loop::Pool& pool = formulas.kernel().pool;
    const loop::ExprId live = key_limits(pool, a, formulas.written(a.score)).live;
    reads = scaled_sum(pool, a, live).beside == loop::kNone || reads_pairs(pool, a);
  }
  const int64_t registers = z.registers() + (reads ? z.keys / 4 : 0);
  if (z.copies_apart) {
    return registers <= z.registers_to_compute() && z.shared_bytes() + kSharedTaken <= kSharedOfOne
               ? 1
               : 0;
  }
  return std::min(kRegistersOfOne / (z.threads * up_to(registers, 8)),
                  kSharedOfOne / (z.shared_bytes() + kSharedTaken));
}

const KernelGenerator& generator_attention_halves() {
  static const AttentionHalves generator;
  return generator;
}

}  // namespace pyc::cuda
