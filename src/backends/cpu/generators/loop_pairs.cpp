// The group's kernel with its points in pairs, where that is worth trying: with AVX-512, which it
// was measured with, and if no thread gets many more points by it.

#include <fmt/format.h>

#include "backends/cpu/generators/loop_plan.h"
#include "backends/cpu/pair_points.h"

namespace pyc::cpu {
namespace {

std::optional<loop::Kernel> paired_kernel(const GeneratorRequest& r) {
  if (!r.target.avx512 || r.target.lanes != 16) return std::nullopt;
  const auto share = [&](int64_t points) { return (points + r.threads - 1) / r.threads; };
  const int64_t points = r.group.kernel.parallel_size();
  if (2 * share(points / 2) > share(points) * 17 / 16) return std::nullopt;
  return pair_points(r.group.kernel);
}

class LoopPairs final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const GeneratorRequest& r) const override {
    auto kernel = paired_kernel(r);
    if (!kernel) return {};
    backends::Candidate c;
    c.name = fmt::format("loop_pairs__{}", r.target.lanes);
    c.cost_ns = generic_cost_ns(r.group, r.target.lanes, r) + waits_ns(*kernel, r.threads);
    c.needs.scratch_bytes = kernel->scratch_bytes();
    c.needs.in_place = loop::in_place_pairs(r.group.kernel);
    std::erase_if(c.needs.in_place, [&](const loop::InPlacePair& pair) {
      return !loop::may_be_in_place(*kernel, pair);
    });
    c.order = r.group.order;
    c.plan = std::make_shared<LoopPlan>(r.target.lanes,
                                        std::make_shared<const loop::Kernel>(std::move(*kernel)));
    return {c};
  }
};

}  // namespace

const KernelGenerator& generator_loop_pairs() {
  static const LoopPairs generator;
  return generator;
}

}  // namespace pyc::cpu
