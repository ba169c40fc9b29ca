// Attention of halves on Hopper's matrix unit, in the order sm90: how many queries a block of
// threads takes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/cuda/generators/attention_formulas.h"
#include "backends/cuda/generators/attention_halves_sizes.h"
#include "backends/cuda/generators/attention_halves_text.h"
#include "backends/cuda/generators/attention_indices.h"
#include "backends/cuda/generators/attention_limits.h"
#include "backends/cuda/kernel_generator.h"

namespace pyc::cuda {
namespace {

constexpr std::string_view kHalvesOrder = "sm90";

// An H200, in clocks of a multiprocessor, for 64 queries and 128 keys (bench/results/
// cuda_attention_h200.md has the table they are from).
constexpr double kHalvesClocksPerNs = 1.7;
constexpr double kUnitClocks = 4.0;           // of the unit, a number of depth and a column
constexpr double kAloneClocks = 3000.0;       // of a group that has the multiprocessor to itself
constexpr double kAloneApartClocks = 2300.0;  // the same where another group copies
constexpr double kIssueClocks = 830.0;        // of instructions, which add to the unit's
constexpr double kApartClocks = 725.0;        // the same where another group copies for two
constexpr double kSharedClocks = 645.0;       // and for three
constexpr double kTileEndsClocks = 1450.0;    // before the first block of keys and after the last
constexpr double kColumnClocks = 9.4;         // the same, a column
constexpr double kEdgeClocks = 610.0;         // of blocks of keys with a limit in them, a tile
constexpr double kBesideShare = 0.45;   // of these, where other blocks of threads run meanwhile
constexpr double kNextTileShare = 0.4;  // and for a further tile in turn
// A group that copies for others can go on to the next tile while they end one.
constexpr int64_t kInTurns = 0;  // as many as keep every multiprocessor busy
constexpr int64_t kFewTurns = 4;
constexpr AttentionCut kCuts[] = {{1}, {1, 1, true}, {2}, {2, kInTurns}, {3}, {3, kInTurns}};

constexpr int64_t kThreadRegisters = 255;  // of a thread
constexpr int64_t kMostKeys = 128;         // of a block, as lower/ cuts them
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
bool reads_pairs(const loop::Pool& pool, const lower::Attention& a, loop::ExprId score) {
  const std::vector<loop::ExprId> loads = loads_of(pool, {score});
  return std::any_of(loads.begin(), loads.end(), [&](loop::ExprId e) {
    return is_read_by(pool, e, a.query_var) &&
           (is_read_by(pool, e, a.key_var) || is_read_by(pool, e, a.block_var));
  });
}

// Whether the score reads a number for each key.
bool reads_keys(const loop::Pool& pool, const lower::Attention& a, loop::ExprId score) {
  const std::vector<loop::ExprId> loads = loads_of(pool, {score});
  return std::any_of(loads.begin(), loads.end(), [&](loop::ExprId e) {
    return is_read_by(pool, e, a.key_var) || is_read_by(pool, e, a.block_var);
  });
}

int64_t parts_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What blocks of threads take one after the other.
int64_t tiles_of(const lower::Attention& a, const AttentionCut& cut) {
  const AttentionSizes z(a, cut);
  const int64_t tiles = a.batch_size() * parts_of(a.queries, z.tile_rows());
  return z.mixed ? parts_of(tiles, kMixedGroups) : tiles;
}

// Tiles that each multiprocessor takes; a few where there is not one for each.
int64_t turns_of(const lower::Attention& a, AttentionCut cut) {
  cut.turns = kFewTurns;
  const int64_t tiles = tiles_of(a, cut);
  return std::max(parts_of(tiles, kMultiprocessors), std::min(tiles, kFewTurns));
}

// Tiles are begun the longest first, so that limited ones fill all multiprocessors to the end; a
// launch lasts as long as its longest tile at least.
double halves_cost_ns(const lower::Attention& a, const AttentionCut& cut, int64_t resident,
                      bool limited) {
  const int64_t parts = parts_of(tiles_of(a, cut), cut.turns);
  const int64_t together = std::min(resident, parts_of(parts, kMultiprocessors));
  const auto groups = static_cast<double>(cut.groups);
  const auto beside = static_cast<double>(together);
  const auto blocks = static_cast<double>(parts_of(a.keys, a.block));
  const double unit = kUnitClocks * static_cast<double>(a.depth + a.columns);
  const double issue = cut.groups == 1   ? kIssueClocks
                       : cut.groups == 2 ? kApartClocks
                                         : kSharedClocks;
  const double alone = cut.apart ? kAloneApartClocks : kAloneClocks;
  const double block =
      std::max(beside * groups > 1.0 ? 0.0 : alone, beside * groups * (unit + issue));
  const double first = groups * (kTileEndsClocks + kColumnClocks * static_cast<double>(a.columns)) *
                       (together == 1 ? 1.0 : beside * kBesideShare);
  const double next = first * kNextTileShare;
  const auto turns = static_cast<double>(cut.turns);
  const double edges = limited ? turns * beside * groups * kEdgeClocks : 0.0;
  const double ends = first + (turns - 1.0) * next + edges;
  // Tiles of 192 queries end within a block of keys, every other one.
  const double past = cut.groups == 3 && cut.turns == 1 ? groups : 1.0;
  const double longest = ends + turns * blocks * block;
  const double waves =
      static_cast<double>(parts) / (beside * static_cast<double>(kMultiprocessors));
  const double clocks =
      limited ? std::max(longest / turns,
                         std::max(waves, 1.0) * (ends + turns * (blocks + past) / 2.0 * block))
              : std::ceil(waves) * longest;
  return kLaunchNs + clocks / kHalvesClocksPerNs;
}

class AttentionHalves final : public KernelGenerator {
 public:
  bool is_for_unit(std::string_view order) const override { return order == kHalvesOrder; }

  std::vector<backends::Candidate> candidates(const ir::Graph& graph,
                                              const lower::Group& given) const override {
    if (!given.attention || given.order != kHalvesOrder) return {};
    const lower::Group group = with_indices(graph, given);
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
    for (AttentionCut cut : kCuts) {
      const bool in_turns = cut.turns == kInTurns;
      if (in_turns) cut.turns = turns_of(*group.attention, cut);
      const int64_t resident = attention_halves_resident(group, cut);
      if (resident < 1 || (in_turns && cut.turns == 1)) continue;
      backends::Candidate& c = out.emplace_back();
      c.name = fmt::format("{}__{}x{}", name, cut.rows(), group.attention->block);
      if (in_turns) c.name += "_turns";
      if (cut.apart) c.name += "_apart";
      c.order = group.order;
      c.cost_ns = halves_cost_ns(*group.attention, cut, resident, limited);
      auto plan = std::make_shared<CudaPlan>();
      plan->parts.push_back(
          make_part(attention_halves_text(group, cut, kUnitSymbol), group.kernel, group));
      c.plan = std::move(plan);
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
  // Three tiles side by side are of two heads at most.
  if (z.mixed && a.queries <= kGroupRows) return 0;
  // What scores read, a number for each of the thread's keys, is in registers for a while. In a
  // loop without copies the compiler finds room, if it is no more and the score has little else.
  const AttentionFormulas formulas(group, "");
  const loop::Pool& pool = formulas.kernel().pool;
  const loop::ExprId score = formulas.written(a.score);
  bool reads = reads_keys(pool, a, score);
  if (reads && z.copies_apart) {
    reads = scaled_sum(pool, a, key_limits(pool, a, score).live).beside == loop::kNone ||
            reads_pairs(pool, a, score);
  }
  const int64_t registers = z.registers() + (reads ? z.keys / 4 : 0);
  if (z.copies_apart) {
    const int64_t most = z.moves_registers() ? z.registers_to_compute() : kThreadRegisters;
    return registers <= most && z.shared_bytes() + kSharedTaken <= kSharedOfOne ? 1 : 0;
  }
  return std::min(kRegistersOfOne / (z.threads * up_to(registers, 8)),
                  kSharedOfOne / (z.shared_bytes() + kSharedTaken));
}

const KernelGenerator& generator_attention_halves() {
  static const AttentionHalves generator;
  return generator;
}

}  // namespace pyc::cuda
