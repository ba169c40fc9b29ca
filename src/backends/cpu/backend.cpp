#include "backends/cpu/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "backends/cpu/codegen.h"
#include "base/clock.h"

namespace pyc::backends {
namespace {

// Rough rates of one thread, for estimates only: generic loops are seldom near a roof.
constexpr double kGenericFlopsPerNs = 4.0;
constexpr double kBytesPerNs = 20.0;
constexpr double kStepOverheadNs = 2000.0;

cpu::CodegenTarget target_of(const BackendOptions& options) {
  cpu::CodegenTarget target = cpu::CodegenTarget::host();
  if (options.lanes > 0) target.lanes = options.lanes;
  return target;
}

std::string generic_name(const cpu::CodegenTarget& target) {
  return fmt::format("loop_generic__{}", target.lanes);
}

double generic_cost(const lower::Group& group, int threads) {
  const double compute = group.flops / (kGenericFlopsPerNs * threads);
  const double memory = static_cast<double>(group.bytes) / (kBytesPerNs * threads);
  return std::max(compute, memory) + kStepOverheadNs;
}

// One piece of machine code that some groups share.
struct Unit {
  const loop::Kernel* kernel = nullptr;
  std::shared_ptr<const cpu::CodeModule> module;
  pyc_kernel_fn fn = nullptr;
  Status status;
  int64_t ns = 0;
};

void compile_unit(const cpu::CodegenTarget& target, Unit& unit) {
  const int64_t start = MonotonicClock().now_ns();
  const auto run = [&]() -> Status {
    PYC_ASSIGN(const std::string object, cpu::emit_object(*unit.kernel, target));
    PYC_ASSIGN(std::unique_ptr<cpu::CodeModule> module, cpu::CodeModule::load(object));
    unit.fn = module->lookup(cpu::kDefaultSymbol);
    unit.module = std::move(module);
    return {};
  };
  unit.status = run();
  unit.ns = MonotonicClock().now_ns() - start;
}

// Compiles all units, each by one thread; which thread takes which never shows in the result.
Status compile_units(const cpu::CodegenTarget& target, std::vector<Unit>& units) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < units.size(); i = next++) compile_unit(target, units[i]);
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  for (size_t t = 1; t < std::min(cores, units.size()); ++t) helpers.emplace_back(work);
  work();
  for (std::thread& t : helpers) t.join();
  for (Unit& unit : units) PYC_TRY(unit.status);
  return {};
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  Capabilities capabilities() const override { return {}; }

  std::vector<Candidate> candidates(const ir::Graph&, const lower::Group& group,
                                    const BackendOptions& options) const override {
    Candidate generic;
    generic.name = generic_name(target_of(options));
    generic.cost_ns = generic_cost(group, options.threads);
    generic.needs.scratch_bytes = group.kernel.scratch_bytes();
    return {generic};
  }

  Result<std::vector<CompiledGroup>> compile(const lower::LoweredGraph& lowered,
                                             std::span<const std::string> chosen,
                                             const BackendOptions& options,
                                             CompileStats* stats) const override {
    PYC_CHECK(chosen.size() == lowered.groups.size(), "a choice for every group");
    const cpu::CodegenTarget target = target_of(options);
    std::vector<Unit> units;
    std::map<std::string, size_t> known;
    std::vector<size_t> unit_of;
    for (const lower::Group& group : lowered.groups) {
      const auto [it, is_new] = known.try_emplace(loop::print(group.kernel), units.size());
      if (is_new) {
        units.emplace_back();
        units.back().kernel = &group.kernel;
      }
      unit_of.push_back(it->second);
    }
    PYC_TRY(compile_units(target, units));
    stats->kernels = static_cast<int64_t>(lowered.groups.size());
    stats->distinct = static_cast<int64_t>(units.size());
    for (const Unit& unit : units) stats->slowest_ns = std::max(stats->slowest_ns, unit.ns);

    std::vector<CompiledGroup> out;
    for (size_t g = 0; g < lowered.groups.size(); ++g) {
      const lower::Group& group = lowered.groups[g];
      CompiledGroup compiled;
      CompiledStep step;
      step.fn = units[unit_of[g]].fn;
      step.parallel = group.kernel.parallel_size();
      for (ir::ValueId v : group.buffer_values) {
        Operand operand;
        operand.kind = v == ir::kNoId ? Operand::Kind::kScratch : Operand::Kind::kValue;
        operand.value = v;
        step.operands.push_back(operand);
      }
      compiled.steps.push_back(std::move(step));
      compiled.owners.push_back(units[unit_of[g]].module);
      out.push_back(std::move(compiled));
    }
    return out;
  }

  Result<std::string> dump(const lower::LoweredGraph& lowered, size_t group, std::string_view,
                           const BackendOptions& options, std::string_view stage) const override {
    const loop::Kernel& kernel = lowered.groups[group].kernel;
    const cpu::CodegenTarget target = target_of(options);
    return stage == "llvm" ? cpu::emit_llvm_text(kernel, target)
                           : cpu::emit_assembly(kernel, target);
  }
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace pyc::backends
