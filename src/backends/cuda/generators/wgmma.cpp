// Products of halves on Hopper's matrix unit, in the order sm90. Groups in that order without a
// contraction, and those of eight-bit floats, have the generic forms alone.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "backends/cuda/generators/wgmma_epilogue.h"
#include "backends/cuda/generators/wgmma_text.h"
#include "backends/cuda/kernel_generator.h"
#include "loop/function.h"

namespace pyc::cuda {
namespace {

constexpr std::string_view kOrder = "sm90";
constexpr int64_t kLongest = int64_t{1} << 30;  // indices of a kernel are i32

// An H100 or H200, roughly, in clocks of a multiprocessor.
constexpr double kClocksPerNs = 1.7;
constexpr double kFlops = 4096.0;
constexpr double kBytes = 54.0;          // from the second-level cache, copied by threads
constexpr double kMapBytes = 66.0;       // the same by tensor maps
constexpr double kElementClocks = 2.0;   // of an operand's element that comes by itself
constexpr double kLatency = 1000.0;      // of a stage, from its first copy to its product
constexpr double kLeastStage = 130.0;    // a gate and a product
constexpr double kWindowStage = 200.0;   // the same, and places of a window's taps
constexpr double kStartClocks = 1800.0;  // of a block, before its first stage
constexpr double kTileClocks = 300.0;    // after the last stage
constexpr double kSumClocks = 0.12;      // of a sum in the epilogue
constexpr double kSwappedClocks = 0.28;  // the same of swapped operands
constexpr double kMeetClocks = 1500.0;   // of blocks that run together, before they join their sums
constexpr double kJoinBytes = 20.0;      // of sums of segments, written and read

// The type of the product's operands; nothing if no member's order is the unit's.
std::optional<DType> factors_of(const ir::Graph& graph, const lower::Group& group) {
  for (const ir::NodeId n : group.members) {
    const ir::Node& node = graph.nodes[n];
    if (node.op->on_unit != nullptr) return graph.type(node.inputs[0]).dtype;
  }
  return std::nullopt;
}

std::string obstacle(const lower::Group& group) {
  if (!group.contraction) return "no_contraction";
  const lower::Contraction& c = *group.contraction;
  if (c.dtype != DType::kF32) return "sums_not_f32";
  if (c.m * c.n * c.batch_size() == 0) return "no_elements";
  if (std::max({c.m, c.n, c.k, c.batch_size()}) >= kLongest) return "too_long";
  return "";
}

int64_t quotient_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Cut {
  WgmmaTile tile;
  double ns = std::numeric_limits<double>::infinity();
};

double bring_clocks(const WgmmaProduct& p, bool of_b, int64_t rows) {
  const auto elements = static_cast<double>(rows * 64);
  if (wgmma_bring(p, of_b) == WgmmaBring::kElements) return elements * kElementClocks;
  return elements * 2.0 / (p.tile.maps ? kMapBytes : kBytes);
}

double least_stage(const WgmmaProduct& p) {
  for (const bool of_b : {false, true}) {
    const auto form = (of_b ? p.contraction().b : p.contraction().a).form;
    const bool together = wgmma_bring(p, of_b) != WgmmaBring::kElements;
    if (together && form == lower::Contraction::Form::kComputed) return kWindowStage;
  }
  return kLeastStage;
}

// Of what follows the last stage of a tile. Blocks that run together share the results out.
double epilogue_clocks(const WgmmaProduct& p) {
  const auto sums = static_cast<double>(p.tile.rows * p.tile.columns);
  const double stored = sums * (p.tile.swapped ? kSwappedClocks : kSumClocks);
  if (!wgmma_together(p)) return kTileClocks + stored;
  return kMeetClocks + sums * 4.0 / kJoinBytes + stored / static_cast<double>(wgmma_segments(p));
}

// Of joining segments that do not run together, in another kernel.
double join_ns(const WgmmaProduct& p, int64_t tiles) {
  if (!p.tile.split || wgmma_together(p)) return 0.0;
  const auto kept_bytes = static_cast<double>(wgmma_segments(p) * p.tile.rows * p.tile.columns * 4);
  const auto waves = static_cast<double>(quotient_up(tiles, kMultiprocessors));
  return kLaunchNs + waves * (kStartClocks + kept_bytes / kJoinBytes) / kClocksPerNs;
}

double cost_ns(const WgmmaProduct& p) {
  const lower::Contraction& c = p.contraction();
  const WgmmaTile& t = p.tile;
  const int64_t segments = t.split ? wgmma_segments(p) : 1;
  const int64_t tiles = quotient_up(t.swapped ? c.n : c.m, t.rows) *
                        quotient_up(t.swapped ? c.m : c.n, t.columns) * c.batch_size() * segments;
  const double product = static_cast<double>(t.rows * t.columns) * 128.0 / kFlops;
  const double bring = bring_clocks(p, t.swapped, t.rows) + bring_clocks(p, !t.swapped, t.columns);
  // Clusters leave some multiprocessors out, but for pairs.
  const bool all = !wgmma_together(p) || segments == 2;
  const int64_t usable = all ? kMultiprocessors : kMultiprocessors - 16;
  const int64_t resident = std::min(wgmma_resident(p), quotient_up(tiles, usable));
  const auto waves = static_cast<double>(quotient_up(tiles, usable * resident));
  const auto stages = static_cast<double>(quotient_up(std::min(c.k, t.split ? 1024 : c.k), 64));
  const double latency = std::max(kLatency / static_cast<double>(t.stages - 1), least_stage(p));
  const double all_stages =
      stages * std::max(std::max(product, bring) * static_cast<double>(resident), latency);
  const double epilogue = epilogue_clocks(p);
  const double alone = kStartClocks + all_stages + epilogue;
  // A block goes on with another tile, but not with another segment: the ring is filled while
  // results are stored, and of two blocks one multiplies.
  const double next = wgmma_together(p) ? alone : std::max(all_stages, stages * product + epilogue);
  return kLaunchNs + (alone + (waves - 1.0) * next) / kClocksPerNs + join_ns(p, tiles / segments);
}

Cut best_cut(WgmmaProduct p) {
  Cut best;
  for (const bool swapped : {false, true}) {
    for (const int64_t rows : {192, 128, 64}) {
      for (const int64_t columns : {256, 192, 128, 96, 64, 32, 16, 8}) {
        const bool is_measured = columns == 192 || (swapped && columns == 96);
        if (rows == 192 && !is_measured) continue;
        p.tile = {rows, columns, swapped};
        const bool has_maps = wgmma_has_maps(p);
        for (const int64_t stages : {12, 8, 6, 5, 4, 3}) {
          for (const bool split : {false, true}) {
            p.tile = {rows, columns, swapped, stages, split};
            if (!wgmma_fits(p)) continue;
            // Never slower than threads, but for these: 128x96 by 10 %, 64x96 by 17.
            const bool is_slow = split && swapped && columns > 32;
            p.tile.maps = has_maps && !is_slow;
            const double ns = cost_ns(p);
            if (ns < best.ns) best = {p.tile, ns};
          }
        }
      }
    }
  }
  return best;
}

// The same in turns, which gains where a block has several tiles of one segment and their stores
// compute much.
Cut cut_in_turns(WgmmaProduct p, const Cut& other) {
  constexpr int64_t kManyOperations = 40;
  constexpr int64_t kSeveral = 4;
  const lower::Contraction& c = p.contraction();
  p.tile = {.rows = 128, .columns = 128, .stages = 6, .maps = true, .turns = 2};
  if (!wgmma_fits(p)) return other;
  const int64_t tiles = quotient_up(c.m, p.tile.rows) * quotient_up(c.n, p.tile.columns);
  if (tiles < kSeveral * kMultiprocessors) return other;
  const int64_t operations = wgmma_operations(loop::without_calls(*c.kernel));
  return operations < kManyOperations ? other : Cut{p.tile, other.ns};
}

// A constant whose neighbours are far apart is packed by rows, in 16 bytes of which the unit has
// neighbours along k.
std::optional<ProductPacking> packing_for(const ir::Graph& graph, WgmmaProduct p) {
  p.tile.rows = p.tile.columns = 64;
  for (const bool of_b : {true, false}) {
    if (wgmma_bring(p, of_b) != WgmmaBring::kElements) continue;
    auto packing = packing_of(graph, *p.group, !of_b, p.factors, PackingOrder::kByRows);
    if (packing) return packing;
  }
  return std::nullopt;
}

class Wgmma final : public KernelGenerator {
 public:
  bool is_for_unit(std::string_view order) const override { return order == kOrder; }

  std::vector<backends::Candidate> candidates(const ir::Graph& graph,
                                              const lower::Group& group) const override {
    if (group.order != kOrder) return {};
    const auto factors = factors_of(graph, group);
    if (!factors || !is_half(*factors)) return {};
    backends::Candidate c;
    c.order = group.order;
    c.name = fmt::format("{}_wgmma", dtype_name(*factors));
    c.rejected = obstacle(group);
    if (!c.rejected.empty()) return {c};
    WgmmaProduct product{.group = &group, .factors = *factors, .tile = {}};
    product.packing = packing_for(graph, product);
    const lower::Group read = product.packing ? with_packing(group, *product.packing) : group;
    product.group = &read;
    Cut cut = best_cut(product);
    if (cut.tile.rows == 0) {
      c.rejected = "too_many_tiles";
      return {c};
    }
    cut = cut_in_turns(product, cut);
    product.tile = cut.tile;
    c.name += fmt::format("__{}x{}x{}{}{}{}{}", cut.tile.rows, cut.tile.columns, cut.tile.stages,
                          cut.tile.swapped ? "_swapped" : "", cut.tile.split ? "_split" : "",
                          cut.tile.turns > 0 ? "_turns" : "", cut.tile.maps ? "_maps" : "");
    c.cost_ns = cut.ns;
    // A thread reads at an element what it needs there before it writes it.
    c.needs.in_place = loop::pointwise_pairs(group.kernel);
    auto plan = std::make_shared<CudaPlan>();
    for (KernelText& text : wgmma_texts(product, kUnitSymbol)) {
      c.needs.workspace_bytes = text.workspace_bytes;
      plan->parts.push_back(make_part(std::move(text), read.kernel, read));
    }
    if (product.packing) use_packed(c, *plan, group, *product.packing);
    c.plan = std::move(plan);
    return {c};
  }
};

}  // namespace

const KernelGenerator& generator_wgmma() {
  static const Wgmma generator;
  return generator;
}

}  // namespace pyc::cuda
