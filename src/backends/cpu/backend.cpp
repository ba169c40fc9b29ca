#include "backends/cpu/backend.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <system_error>
#include <thread>

#include "backends/cpu/codegen.h"
#include "backends/cpu/kernel_generator.h"
#include "base/exceptions.h"
#include "runtime/code_module.h"

namespace pyc::backends {
namespace {

cpu::CodegenTarget target_of(const BackendOptions& options) {
  cpu::CodegenTarget target = cpu::CodegenTarget::host();
  if (options.target == "aarch64_neon") target = cpu::CodegenTarget::aarch64_neon();
  if (options.target == "x86_avx2") target = cpu::CodegenTarget::x86_avx2();
  if (options.target == "x86_avx512") target = cpu::CodegenTarget::x86_avx512();
  if (options.lanes > 0) target.lanes = options.lanes;
  return target;
}

const cpu::CpuPlan& plan_of(const Candidate& chosen) {
  return static_cast<const cpu::CpuPlan&>(*chosen.plan);
}

// One piece of machine code that some groups share.
struct Unit {
  const lower::Group* group = nullptr;
  const cpu::CpuPlan* plan = nullptr;
  std::string symbol;
  std::shared_ptr<const std::string> object;
  std::shared_ptr<const runtime::CodeModule> module;  // null for a foreign target
  int64_t ns = 0;                                     // thread_ns it took
};

// Time this thread was running: what other programs take from it is not the kernel's.
int64_t thread_ns() {
  constexpr int64_t kSecond = 1'000'000'000;
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

Status compile_unit(const cpu::CodegenTarget& target, bool load, Unit& unit) {
  const int64_t start = thread_ns();
  PYC_ASSIGN(std::string object,
             unit.plan->emit(*unit.group, target, unit.symbol, cpu::Form::kObject));
  if (load) {
    PYC_ASSIGN(unit.module, runtime::CodeModule::load(object));
  } else {
    unit.object = std::make_shared<const std::string>(std::move(object));
  }
  unit.ns = thread_ns() - start;
  return {};
}

// Calls work(i) for all i below `count`, on all cores; which thread takes which never shows in the
// result. Gives the first refusal in the order of i.
template <class Work>
Status on_all_cores(size_t count, const Work& work) {
  std::vector<Status> statuses(count);
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        statuses[i] = work(i);
      } catch (...) {  // may be on a helper thread: nothing may leave it
        statuses[i] = status_of_exception();
      }
    }
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> helpers;
  for (size_t t = 1; t < std::min(cores, count); ++t) {
    try {
      helpers.emplace_back(take);
    } catch (const std::system_error&) {
      break;  // no more threads to be had: this one does the rest
    }
  }
  take();
  helpers.clear();
  for (Status& status : statuses) {
    if (!status.ok()) return std::move(status);
  }
  return {};
}

Status compile_units(const cpu::CodegenTarget& target, bool load, std::vector<Unit>& units) {
  return on_all_cores(units.size(), [&](size_t i) {
    return compile_unit(target, load, units[i])
        .with_context("compiling group " + units[i].group->name);
  });
}

CompiledGroup make_group(const ir::Graph& graph, const lower::Group& group,
                         const cpu::CpuPlan& plan, const Unit& unit) {
  CompiledGroup out;
  out.object = unit.object;
  if (unit.module) out.owners.push_back(unit.module);
  out.steps = plan.steps(group, unit.symbol);
  for (CompiledStep& step : out.steps) {
    if (unit.module) step.fn = unit.module->lookup(step.symbol);
  }
  out.packed = plan.packed(graph, group);
  return out;
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  Capabilities capabilities() const override { return {.ahead = true}; }

  std::vector<Candidate> candidates(const ir::Graph& graph, const lower::Group& group,
                                    const BackendOptions& options) const override {
    const cpu::CodegenTarget target = target_of(options);
    const cpu::GeneratorRequest request{.graph = graph,
                                        .group = group,
                                        .target = target,
                                        .threads = options.threads,
                                        .lanes_asked = options.lanes > 0};
    std::vector<Candidate> out;
    for (const cpu::KernelGenerator* generator : cpu::kernel_generators()) {
      for (Candidate& c : generator->candidates(request)) out.push_back(std::move(c));
    }
    return out;
  }

  Result<std::vector<CompiledGroup>> compile(const lower::LoweredGraph& lowered,
                                             std::span<const Candidate> chosen,
                                             const BackendOptions& options,
                                             CompileStats* stats) const override {
    PYC_CHECK(chosen.size() == lowered.groups.size(), "a choice for every group");
    std::vector<Unit> units;
    std::map<std::string, size_t> known;
    std::vector<size_t> unit_of;
    for (size_t g = 0; g < lowered.groups.size(); ++g) {
      const lower::Group& group = lowered.groups[g];
      const cpu::CpuPlan& plan = plan_of(chosen[g]);
      const std::string key = plan.key(group);
      const auto [it, is_new] = known.try_emplace(key, units.size());
      if (is_new) {
        units.emplace_back();
        units.back().group = &group;
        units.back().symbol = fmt::format("pyc_k{}", it->second);
        units.back().plan = &plan;
      }
      unit_of.push_back(it->second);
    }
    PYC_TRY(compile_units(target_of(options), options.target.empty(), units));
    stats->kernels = static_cast<int64_t>(lowered.groups.size());
    stats->distinct = static_cast<int64_t>(units.size());
    for (const Unit& unit : units) stats->slowest_ns = std::max(stats->slowest_ns, unit.ns);

    std::vector<CompiledGroup> out(lowered.groups.size());
    PYC_TRY(on_all_cores(out.size(), [&](size_t g) -> Status {
      out[g] = make_group(*lowered.graph, lowered.groups[g], plan_of(chosen[g]), units[unit_of[g]]);
      return {};
    }));
    return out;
  }

  Result<std::string> dump(const lower::LoweredGraph& lowered, size_t g, const Candidate& chosen,
                           const BackendOptions& options, std::string_view stage) const override {
    return plan_of(chosen).emit(lowered.groups[g], target_of(options),
                                std::string(cpu::kDefaultSymbol),
                                stage == "llvm" ? cpu::Form::kLlvmText : cpu::Form::kAssembly);
  }
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace pyc::backends
