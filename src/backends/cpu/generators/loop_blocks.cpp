// Windows that are no matrix products (depthwise convolutions, pools) with several neighbouring
// points in one.

#include "backends/cpu/generators/loop_plan.h"
#include "backends/cpu/point_blocks.h"

namespace pyc::cpu {
namespace {

// Blocks of fewer than this many along the row touch its ends too often.
constexpr int64_t kFewestBlocks = 5;

// Measured on Neoverse-V1 against the kernel point by point.
constexpr double kGain = 0.5;

std::optional<loop::Kernel> blocked_kernel(const GeneratorRequest& r) {
  const loop::Kernel& kernel = r.group.kernel;
  if (kernel.parallel.empty() || r.group.contraction) return std::nullopt;
  const int64_t extent = kernel.pool.var_info(kernel.parallel.back()).extent;
  for (const int count : {4, 3, 2}) {
    if (extent % count != 0 || extent / count < kFewestBlocks) continue;
    if (kernel.parallel_size() / count < 4 * r.threads) continue;
    return block_points(kernel, count);
  }
  return std::nullopt;
}

class LoopBlocks final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const GeneratorRequest& r) const override {
    auto kernel = blocked_kernel(r);
    if (!kernel) return {};
    const double cost_ns = kGain * generic_cost_ns(r.group, 16, r);
    return {standing_in("loop_blocks", cost_ns, r, std::move(*kernel))};
  }
};

}  // namespace

const KernelGenerator& generator_loop_blocks() {
  static const LoopBlocks generator;
  return generator;
}

}  // namespace pyc::cpu
