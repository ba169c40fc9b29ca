#include "backends/reference/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "eval/interpreter.h"

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
    return {interpret};
  }

  Result<std::vector<CompiledGroup>> compile(const lower::LoweredGraph& lowered,
                                             std::span<const Candidate> chosen,
                                             const BackendOptions& options,
                                             CompileStats* stats) const override;

  Result<std::string> dump(const lower::LoweredGraph&, size_t, const Candidate&,
                           const BackendOptions&, std::string_view stage) const override {
    return Status(
        Code::kUnsupported,
        fmt::format("the reference backend makes no code, so it has no stage '{}'", stage));
  }
};

CompiledStep make_step(const lower::Group& group, const eval::Interpreter& interpreter) {
  CompiledStep step;
  step.fn = eval::run_interpreted;
  step.self = &interpreter;
  step.parallel = group.kernel.parallel_size();
  for (const ir::ValueId value : group.buffer_values) {
    Operand operand;
    operand.kind = value == ir::kNoId ? Operand::Kind::kScratch : Operand::Kind::kValue;
    operand.value = value;
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
  std::map<std::string, std::shared_ptr<const eval::Interpreter>> interpreters;  // by kernel text
  std::vector<CompiledGroup> compiled;
  for (size_t g = 0; g < lowered.groups.size(); ++g) {
    const lower::Group& group = lowered.groups[g];
    if (chosen[g].name != kInterpret) {
      return Status(Code::kInvalidArgument, fmt::format("reference: group '{}': no candidate '{}'",
                                                        group.name, chosen[g].name));
    }
    std::shared_ptr<const eval::Interpreter>& interpreter = interpreters[loop::print(group.kernel)];
    ++counted.kernels;
    if (interpreter == nullptr) {
      const int64_t start = now_ns();
      auto made = eval::Interpreter::create(group.kernel);
      if (!made.ok()) return std::move(made).status().with_context("group '" + group.name + "'");
      interpreter = std::move(made).value();
      ++counted.distinct;
      counted.slowest_ns = std::max(counted.slowest_ns, now_ns() - start);
    }
    CompiledGroup& out = compiled.emplace_back();
    out.steps.push_back(make_step(group, *interpreter));
    out.owners.push_back(interpreter);
  }
  if (stats != nullptr) *stats = counted;
  return compiled;
}

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace pyc::backends
