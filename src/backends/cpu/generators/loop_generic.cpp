// The group's own kernel, as it is: for every group.

#include <fmt/format.h>

#include "backends/cpu/generators/loop_plan.h"

namespace pyc::cpu {
namespace {

// The widths worth trying: the target's own and, where chains of dependent operations could be kept
// in flight side by side, another. A width the caller asked for is the only one.
std::vector<int> widths_of(const GeneratorRequest& r) {
  const int own = r.target.lanes;
  if (r.lanes_asked || !reduces_in_lanes(r.group.kernel)) return {own};
  return {own, own == 16 ? 8 : 16};
}

class LoopGeneric final : public KernelGenerator {
 public:
  std::vector<backends::Candidate> candidates(const GeneratorRequest& r) const override {
    std::vector<backends::Candidate> out;
    const std::vector<loop::InPlacePair> in_place = loop::in_place_pairs(r.group.kernel);
    for (const int lanes : widths_of(r)) {
      backends::Candidate c;
      c.name = fmt::format("loop_generic__{}", lanes);
      c.cost_ns = generic_cost_ns(r.group, lanes, r) + waits_ns(r.group.kernel, r.threads);
      c.needs.scratch_bytes = r.group.kernel.scratch_bytes();
      c.needs.in_place = in_place;
      c.order = r.group.order;
      c.plan = std::make_shared<LoopPlan>(lanes, nullptr);
      out.push_back(std::move(c));
    }
    return out;
  }
};

}  // namespace

const KernelGenerator& generator_loop_generic() {
  static const LoopGeneric generator;
  return generator;
}

}  // namespace pyc::cpu
