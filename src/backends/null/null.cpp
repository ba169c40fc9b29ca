// The smallest backend. To write one: copy this folder, rename, and replace what the comments point
// at; then add a line to driver/devices.cpp.

#include "backends/null/null.h"

#include <fmt/format.h>

namespace pyc::backends {
namespace {

// A real backend's kernel computes the parallel points [begin, end) here.
void do_nothing(const pyc_kernel_args*, int64_t, int64_t) {}

class NullBackend final : public Backend {
 public:
  std::string_view name() const override { return "null"; }

  // Say truthfully what the backend can do; no session is made for one that does not run.
  Capabilities capabilities() const override { return {.runs = false}; }

  // Every group must get at least one applicable candidate. Add faster ones for groups you know
  // (group.contraction); one that does not apply says why in `rejected`. What a candidate asks of
  // the planner (scratch, workspace, packed constants) goes into `needs`.
  std::vector<Candidate> candidates(const ir::Graph&, const lower::Group& group,
                                    const BackendOptions&) const override {
    Candidate generic;
    generic.name = "nothing";
    generic.needs.scratch_bytes = group.kernel.scratch_bytes();
    return {generic};
  }

  // Turn each group's kernel (group.kernel, Loop IR) into code. A step names its buffers in the
  // order its function expects them; code that must outlive the program goes into `owners`.
  Result<std::vector<CompiledGroup>> compile(const lower::LoweredGraph& lowered,
                                             std::span<const Candidate>, const BackendOptions&,
                                             CompileStats* stats) const override {
    std::vector<CompiledGroup> compiled;
    for (const lower::Group& group : lowered.groups) {
      CompiledStep step;
      step.fn = do_nothing;
      step.parallel = group.kernel.parallel_size();
      for (const ir::ValueId value : group.buffer_values) {
        Operand operand;
        operand.kind = value == ir::kNoId ? Operand::Kind::kScratch : Operand::Kind::kValue;
        operand.value = value;
        step.operands.push_back(operand);
      }
      compiled.emplace_back().steps.push_back(step);
    }
    if (stats != nullptr) stats->kernels = static_cast<int64_t>(compiled.size());
    return compiled;
  }

  // Return the text of a stage (assembly, say) if there is one.
  Result<std::string> dump(const lower::LoweredGraph&, size_t, const Candidate&,
                           const BackendOptions&, std::string_view stage) const override {
    return Status(Code::kUnsupported,
                  fmt::format("the null backend makes no code, so it has no stage '{}'", stage));
  }
};

}  // namespace

std::unique_ptr<Backend> make_null_backend() { return std::make_unique<NullBackend>(); }

}  // namespace pyc::backends
