#include <fmt/format.h>

#include "support/compare.h"
#include "support/differentiable.h"

namespace pyc::test {
namespace {

// Every op that can be differentiated as f64.
std::vector<Pair> differentiable_pairs() {
  std::vector<Pair> result;
  for (const Pair& pair : all_pairs()) {
    if (pair.dtype == DType::kF64 && pair.op->no_gradient.empty()) result.push_back(pair);
  }
  return result;
}

}  // namespace

RandomCounts check_random_graphs(uint64_t first_seed, int wanted, int compare_every) {
  DrawOptions options;
  options.values = Values::kTame;
  options.pairs = differentiable_pairs();
  options.max_nodes = 12;
  RandomCounts counts;
  for (uint64_t seed = first_seed; counts.agreed < wanted; ++seed) {
    const DrawnGraph drawn = draw_graph(seed, options);
    if (drawn.pairs.size() < 3) continue;
    const auto loss = with_loss(drawn, seed);
    const Verdict v = loss ? check_gradient(*loss, seed) : Verdict{};
    if (v.outcome == Agreement::kUnfit) {
      ++counts.unfit;
      continue;
    }
    if (v.outcome == Agreement::kDiffers) {
      counts.fault = fmt::format("seed {}: {}\n{}", seed, v.message, ir::print(loss->graph));
      return counts;
    }
    ++counts.agreed;
    if (counts.agreed % compare_every != 0) continue;
    const auto gradients = gradient_graph(*loss);
    const std::string found = difference(*gradients, {cpu_options(0, 2)});
    if (!found.empty()) {
      counts.fault = fmt::format("seed {}: {}\n{}", seed, found, ir::print(gradients->graph));
      return counts;
    }
    ++counts.compared;
  }
  return counts;
}

}  // namespace pyc::test
