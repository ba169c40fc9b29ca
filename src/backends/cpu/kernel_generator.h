#pragma once

// What computes groups on a CPU: generators, one file each in generators/, found as ops are found.
// A generator offers candidates, each with the plan it would be made by; the chosen plan is emitted
// as it is.

#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/codegen.h"
#include "backends/cpu/generator.h"
#include "loop/texts.h"

namespace pyc::cpu {

// What a generator sees of a group.
struct GeneratorRequest {
  const ir::Graph& graph;
  const lower::Group& group;
  const CodegenTarget& target;
  int threads = 1;
  bool lanes_asked = false;   // the caller chose the vector width
  bool least_memory = false;  // of two ways, the one with the smaller workspace
};

// How one group is computed. `group` is always the one that it was planned for, or one with an
// equal key.
class CpuPlan : public backends::KernelPlan {
 public:
  // Everything the code depends on but the target and the symbol: equal keys give equal code.
  virtual std::string key(const lower::Group& group, loop::KernelTexts& texts) const = 0;
  virtual Result<std::string> emit(const lower::Group& group, const CodegenTarget& target,
                                   const Output& output) const = 0;
  // Run in order; their functions are found by symbol in the emitted object.
  virtual std::vector<backends::CompiledStep> steps(const lower::Group& group,
                                                    const std::string& symbol) const = 0;
  // Entry `index` of KernelNeeds::packed; its data is null when there is no memory.
  virtual runtime::Parameter pack(const ir::Graph&, const lower::Group&, size_t) const {
    return {};
  }
};

class KernelGenerator {
 public:
  virtual ~KernelGenerator() = default;
  // What it has for the group; empty where it is for another kind of group altogether. The plans
  // are CpuPlans.
  virtual std::vector<backends::Candidate> candidates(const GeneratorRequest& request) const = 0;
};

// All of them, in the order of their files' names.
std::span<const KernelGenerator* const> kernel_generators();

// The operands of a step that takes the kernel's buffers in their order.
std::vector<backends::Operand> kernel_operands(const lower::Group& group);

// Rough rates of one thread, for estimates only: generic loops are seldom near a roof.
inline constexpr double kBytesPerNs = 20.0;
// What a step of so many parallel points takes beside its work: a call, or that threads begin and
// end together. Seen on Neoverse-V1 as the time of more steps of the same work: 10 to 25 ns with
// one thread, 340 to 470 ns with two.
double step_overhead_ns(int64_t points, int threads);

// Operations that one thread does on elements by themselves, in vectors.
double point_flops_per_ns(const CodegenTarget& target);
// A reduction inside the lanes of a vector loop: one chain of dependent operations per vector.
bool reduces_in_lanes(const loop::Kernel& kernel);
// Estimated time of one run of the group's generic kernel in vectors of `lanes`.
double generic_cost_ns(const lower::Group& group, int lanes, const GeneratorRequest& request);
// What all points wait for results of their reductions.
double waits_ns(const loop::Kernel& kernel, int threads);

}  // namespace pyc::cpu
