// The group's kernel with its points in pairs, where that is worth trying: with AVX-512, which it
// was measured with, and if no thread gets many more points by it.

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
    const double cost_ns =
        generic_cost_ns(r.group, r.target.lanes, r) + waits_ns(*kernel, r.threads);
    return {standing_in("loop_pairs", cost_ns, r, std::move(*kernel))};
  }
};

}  // namespace

const KernelGenerator& generator_loop_pairs() {
  static const LoopPairs generator;
  return generator;
}

}  // namespace pyc::cpu
