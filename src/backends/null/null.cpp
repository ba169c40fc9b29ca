// The smallest backend. To write one: copy this folder, rename, and replace what the comments point
// at; then add a line to driver/devices.cpp.

#include "backends/null/null.h"

#include <fmt/format.h>

namespace pyc::backends {
namespace {

// A real backend's loader makes the steps' objects callable and gives an engine that runs them.
// Where kernels are functions of the host, derive from runtime::HostLoader (runtime/host_engine.h)
// and say how an object becomes a function.
class NullLoader final : public runtime::Loader {
 public:
  std::string_view backend() const override { return "null"; }
  // A device that may be missing says here what is in the way.
  Status available() const override {
    return {Code::kUnsupported,
            "device 'null' computes nothing: its programs are for looking at plans and cannot be "
            "run"};
  }
  Result<std::shared_ptr<const runtime::Engine>> load(std::shared_ptr<const runtime::Program>,
                                                      uint32_t) const override {
    return available();
  }
};

class NullBackend final : public Backend {
 public:
  std::string_view name() const override { return "null"; }

  // Say truthfully what the backend can do.
  Capabilities capabilities() const override { return {}; }

  // Every group must get at least one applicable candidate. Add faster ones for groups you know
  // (group.contraction); one that does not apply says why in `rejected`. What a candidate asks of
  // the planner (scratch, workspace, packed constants) goes into `needs`.
  std::vector<Candidate> candidates(const ir::Graph&, const lower::Group& group,
                                    const BackendOptions&) const override {
    Candidate generic;
    generic.name = "nothing";
    generic.needs.scratch_bytes = group.kernel.scratch_bytes();
    generic.order = group.order;  // what computes group.kernel as it is has its order
    return {generic};
  }

  // Turn each group's kernel (group.kernel, Loop IR) into an object, bytes that the loader takes. A
  // step names its buffers in the order its function expects them; `launch` is for the loader too.
  Result<std::vector<CompiledGroup>> compile(const lower::LoweredGraph& lowered,
                                             std::span<const Candidate>, const BackendOptions&,
                                             CompileStats* stats) const override {
    const auto nothing = std::make_shared<const std::string>();
    std::vector<CompiledGroup> compiled;
    for (const lower::Group& group : lowered.groups) {
      CompiledStep step;
      step.symbol = "nothing";
      step.object = nothing;
      for (size_t b = 0; b < group.buffer_values.size(); ++b) {
        const ir::ValueId value = group.buffer_values[b];
        Operand operand;
        operand.kind = value == ir::kNoId ? Operand::Kind::kScratch : Operand::Kind::kValue;
        operand.value = value;
        operand.offset = group.buffer_offset_bytes(b);
        step.operands.push_back(operand);
      }
      compiled.emplace_back().steps.push_back(step);
    }
    if (stats != nullptr) stats->kernels = static_cast<int64_t>(compiled.size());
    return compiled;
  }

  const runtime::Loader& loader() const override {
    static const NullLoader instance;
    return instance;
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
