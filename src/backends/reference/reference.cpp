#include "backends/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "backends/reference/loader.h"
#include "base/clock.h"
#include "runtime/host_engine.h"

namespace pyc::backends {
namespace {

constexpr std::string_view kInterpret = "interpret";
// Roughly what interpreting one operation takes.
constexpr double kNsPerFlop = 10.0;

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  Capabilities capabilities() const override { return {}; }

  std::vector<Candidate> candidates(const ir::Graph&, const lower::Group& group,
                                    const BackendOptions& options) const override {
    Candidate interpret;
    interpret.name = kInterpret;
    interpret.cost_ns = kNsPerFlop * std::max(1.0, group.flops) / std::max(1, options.threads);
    interpret.needs.scratch_bytes = group.kernel.scratch_bytes();
    interpret.order = group.order;
    return {interpret};
  }

  Result<std::vector<CompiledGroup>> compile(const lower::LoweredGraph& lowered,
                                             std::span<const Candidate> chosen,
                                             const BackendOptions& options,
                                             CompileStats* stats) const override;

  const runtime::Loader& loader() const override { return reference::loader(); }

  Result<std::string> dump(const lower::LoweredGraph&, size_t, const Candidate&,
                           const BackendOptions&, std::string_view stage) const override {
    return Status(
        Code::kUnsupported,
        fmt::format("the reference backend makes no code, so it has no stage '{}'", stage));
  }
};

CompiledStep make_step(const lower::Group& group, std::shared_ptr<const std::string> text) {
  CompiledStep step;
  step.symbol = reference::kSymbol;
  step.object = std::move(text);
  step.launch = runtime::host_launch(group.kernel.parallel_size());
  for (size_t b = 0; b < group.buffer_values.size(); ++b) {
    const ir::ValueId value = group.buffer_values[b];
    Operand operand;
    operand.kind = value == ir::kNoId ? Operand::Kind::kScratch : Operand::Kind::kValue;
    operand.value = value;
    operand.offset = group.buffer_offset_bytes(b);
    step.operands.push_back(operand);
  }
  return step;
}

Result<std::vector<CompiledGroup>> ReferenceBackend::compile(const lower::LoweredGraph& lowered,
                                                             std::span<const Candidate> chosen,
                                                             const BackendOptions&,
                                                             CompileStats* stats) const {
  if (chosen.size() != lowered.groups.size()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("reference: expected a candidate for each of {} groups, found {}",
                              lowered.groups.size(), chosen.size()));
  }
  CompileStats counted;
  std::map<std::string, std::shared_ptr<const std::string>> texts;
  std::vector<CompiledGroup> compiled;
  for (size_t g = 0; g < lowered.groups.size(); ++g) {
    const lower::Group& group = lowered.groups[g];
    if (chosen[g].name != kInterpret) {
      return Status(Code::kInvalidArgument, fmt::format("reference: group '{}': no candidate '{}'",
                                                        group.name, chosen[g].name));
    }
    const int64_t start = now_ns();
    std::string text = loop::print(group.kernel);
    std::shared_ptr<const std::string>& object = texts[text];
    ++counted.kernels;
    if (object == nullptr) {
      object = std::make_shared<const std::string>(std::move(text));
      ++counted.distinct;
      counted.slowest_ns = std::max(counted.slowest_ns, now_ns() - start);
    }
    compiled.emplace_back().steps.push_back(make_step(group, object));
  }
  if (stats != nullptr) *stats = counted;
  return compiled;
}

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace pyc::backends
