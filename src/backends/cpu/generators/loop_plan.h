#pragma once

// A plan whose code is made from Loop IR alone.

#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <utility>

#include "backends/cpu/kernel_generator.h"
#include "runtime/host_engine.h"

namespace pyc::cpu {

class LoopPlan final : public CpuPlan {
 public:
  // In vectors of `lanes`; a kernel that stands for the group's own, or null.
  LoopPlan(int lanes, std::shared_ptr<const loop::Kernel> kernel)
      : lanes_(lanes), kernel_(std::move(kernel)) {}

  std::string key(const lower::Group& group, loop::KernelTexts& texts) const override {
    return fmt::format(
        "{}\n{}", lanes_,
        kernel_ == nullptr ? texts.of(group.kernel) : loop::print(in_place_as(group)));
  }
  Result<std::string> emit(const lower::Group& group, const CodegenTarget& target,
                           const Output& output) const override {
    PYC_ASSIGN(const Generator* made, generator());
    CodegenTarget wide = target;
    wide.lanes = lanes_;
    if (kernel_ == nullptr) return made->kernel(group.kernel, wide, output);
    return made->kernel(in_place_as(group), wide, output);
  }
  std::vector<backends::CompiledStep> steps(const lower::Group& group,
                                            const std::string& symbol) const override {
    backends::CompiledStep step;
    step.symbol = symbol;
    step.launch = runtime::host_launch(kernel_of(group).parallel_size());
    step.operands = kernel_operands(group);
    return {step};
  }

 private:
  // The kernel that stands for the group's, with the pairs that the plan chose for that.
  loop::Kernel in_place_as(const lower::Group& group) const {
    loop::Kernel kernel = *kernel_;
    for (size_t b = 0; b < group.kernel.buffers.size(); ++b) {
      kernel.buffers[b].in_place_of = group.kernel.buffers[b].in_place_of;
    }
    return kernel;
  }

  const loop::Kernel& kernel_of(const lower::Group& group) const {
    return kernel_ == nullptr ? group.kernel : *kernel_;
  }

  int lanes_;
  std::shared_ptr<const loop::Kernel> kernel_;
};

// The candidate whose code is made from a kernel that stands for the group's own: named `what` and
// the target's lanes, with the pairs in place that both kernels allow.
inline backends::Candidate standing_in(std::string_view what, double cost_ns,
                                       const GeneratorRequest& r, loop::Kernel kernel) {
  backends::Candidate c;
  c.name = fmt::format("{}__{}", what, r.target.lanes);
  c.cost_ns = cost_ns;
  c.needs.scratch_bytes = kernel.scratch_bytes();
  c.needs.in_place = loop::in_place_pairs(r.group.kernel);
  std::erase_if(c.needs.in_place, [&](const loop::InPlacePair& pair) {
    return !loop::may_be_in_place(kernel, pair);
  });
  c.order = r.group.order;
  c.plan = std::make_shared<LoopPlan>(r.target.lanes,
                                      std::make_shared<const loop::Kernel>(std::move(kernel)));
  return c;
}

}  // namespace pyc::cpu
