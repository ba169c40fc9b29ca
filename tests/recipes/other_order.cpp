// A generator whose products have another order than their groups', at no cost.

#include "backends/cpu/generators/loop_plan.h"

namespace pyc::cpu {
namespace {

class OtherOrder final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const GeneratorRequest& r) const override {
    backends::Candidate c;
    c.name = "planted";
    c.order = "planted_order";
    c.needs.scratch_bytes = r.group.kernel.scratch_bytes();
    c.plan = std::make_shared<LoopPlan>(r.target.lanes, nullptr);
    return {c};
  }
};

}  // namespace

const KernelGenerator& generator_other_order() {
  static const OtherOrder generator;
  return generator;
}

}  // namespace pyc::cpu
