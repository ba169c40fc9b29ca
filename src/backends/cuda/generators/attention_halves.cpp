// Attention of halves on Hopper's matrix unit, in the order sm90: how many queries a block of
// threads takes.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/generators/attention_halves_text.h"
#include "backends/cuda/kernel_generator.h"

namespace pyc::cuda {
namespace {

constexpr std::string_view kHalvesOrder = "sm90";

// An H100 or H200, roughly, in clocks of a multiprocessor, for 64 queries and 128 keys.
constexpr double kHalvesClocksPerNs = 1.7;
constexpr double kAloneClocks = 3000.0;      // of a group that has the multiprocessor to itself
constexpr double kIssueClocks = 1100.0;      // of instructions that groups take turns with
constexpr double kCopiedPerClock = 32.0;     // bytes of keys and values, from the cache of all
constexpr double kQueryTileClocks = 3500.0;  // before the first block of keys and after the last
constexpr double kLoneTileClocks = 12000.0;  // the same where nothing else runs meanwhile
constexpr double kNextTileClocks = 6000.0;   // and where its first keys were on their way before
constexpr int64_t kTurns = 4;

int64_t parts_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

double halves_cost_ns(const lower::Attention& a, const AttentionCut& cut, int64_t resident) {
  const int64_t tiles = a.batch_size() * parts_of(parts_of(a.queries, cut.rows()), cut.turns);
  const int64_t together = std::min(resident, parts_of(tiles, kMultiprocessors));
  const auto waves = static_cast<double>(parts_of(tiles, kMultiprocessors * together));
  const auto blocks = static_cast<double>(parts_of(a.keys, a.block));
  const auto bytes = static_cast<double>(together * a.block * (a.depth + a.columns) * 2);
  const double block =
      std::max({kAloneClocks, static_cast<double>(together * cut.groups) * kIssueClocks,
                bytes / kCopiedPerClock});
  const double first = together == 1 ? kLoneTileClocks : kQueryTileClocks;
  const double next = together == 1 ? kNextTileClocks : kQueryTileClocks;
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
    for (const int64_t groups : {1, 2, 3}) {
      for (const int64_t turns : {int64_t{1}, kTurns}) {
        const AttentionCut cut{groups, turns};
        const int64_t resident = attention_halves_resident(group, cut);
        if (resident < 1 || (turns - 1) * cut.rows() >= group.attention->queries) continue;
        backends::Candidate& c = out.emplace_back();
        c.name = fmt::format("{}__{}x{}", name, cut.rows(), group.attention->block);
        if (turns > 1) c.name += fmt::format("x{}", turns);
        c.order = group.order;
        c.cost_ns = halves_cost_ns(*group.attention, cut, resident);
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

const KernelGenerator& generator_attention_halves() {
  static const AttentionHalves generator;
  return generator;
}

}  // namespace pyc::cuda
