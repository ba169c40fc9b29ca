// Kernels that write rows from elsewhere side by side, row by row (interleave.h).

#include "backends/cpu/generators/loop_plan.h"
#include "backends/cpu/interleave.h"

namespace pyc::cpu {
namespace {

// Measured with AVX-512 against the kernel as it is: shuffled channels of bytes, colours of f32.
constexpr double kInterleavedGain = 0.25;

class LoopInterleaved final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const GeneratorRequest& r) const override {
    if (r.group.contraction) return {};
    auto kernel = interleave(r.group.kernel);
    if (!kernel) return {};
    const double cost_ns = kInterleavedGain * generic_cost_ns(r.group, r.target.lanes, r);
    return {standing_in("loop_interleaved", cost_ns, r, std::move(*kernel))};
  }
};

}  // namespace

const KernelGenerator& generator_loop_interleaved() {
  static const LoopInterleaved generator;
  return generator;
}

}  // namespace pyc::cpu
