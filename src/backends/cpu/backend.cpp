#include "backends/cpu/backend.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "backends/cpu/code_store.h"
#include "backends/cpu/codegen.h"
#include "backends/cpu/kernel_generator.h"
#include "backends/cpu/loader.h"
#include "backends/cpu/registers.h"
#include "base/all_cores.h"
#include "base/clock.h"
#include "base/trace.h"

namespace pyc::backends {
namespace {

cpu::CodegenTarget target_of(const BackendOptions& options) {
  cpu::CodegenTarget target = cpu::CodegenTarget::host();
  if (options.target == "aarch64_neon") target = cpu::CodegenTarget::aarch64_neon();
  if (options.target == "aarch64_i8mm") target = cpu::CodegenTarget::aarch64_i8mm();
  if (options.target == "x86_avx2") target = cpu::CodegenTarget::x86_avx2();
  if (options.target == "x86_avx512") target = cpu::CodegenTarget::x86_avx512();
  if (options.target == "x86_vnni") target = cpu::CodegenTarget::x86_vnni();
  if (options.target == "x86_amx") target = cpu::CodegenTarget::x86_amx();
  if (options.lanes > 0) target.lanes = options.lanes;
  target.effort = options.effort;
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
  cpu::SharedObject object;
  std::vector<int64_t> dims;  // sizes that are arguments of the code
  std::string source;         // what the store knows the code by
  bool any_size = false;
  int64_t ns = 0;  // thread_ns it took
  const BackendOptions* options = nullptr;
};

// Time this thread was running: what other programs take from it is not the kernel's.
int64_t thread_ns() {
  constexpr int64_t kSecond = 1'000'000'000;
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

Result<std::string> emit_unit(const cpu::CodegenTarget& target, Unit& unit, cpu::Form form) {
  unit.dims.clear();
  return unit.plan->emit(
      *unit.group, target,
      {.symbol = unit.symbol, .form = form, .dims = unit.any_size ? &unit.dims : nullptr});
}

Status compile_unit(const cpu::CodegenTarget& target, Unit& unit) {
  if (unit.options->before_kernel) PYC_TRY(unit.options->before_kernel());
  const int64_t start = thread_ns();
  const int64_t began = now_ns();
  PYC_ASSIGN(std::string object, emit_unit(target, unit, cpu::Form::kObject));
  unit.object = std::make_shared<const std::string>(std::move(object));
  unit.ns = thread_ns() - start;
  TraceLog* const trace = unit.options->trace;
  if (trace != nullptr) trace->add_span("generate " + unit.group->name, began);
  return {};
}

// Calls work(unit) for all of them.
template <class Work>
Status each_unit(std::span<Unit* const> units, const Work& work) {
  return on_all_cores(units.size(), [&](size_t i) {
    return work(*units[i]).with_context("compiling group " + units[i]->group->name);
  });
}

Status compile_units(const cpu::CodegenTarget& target, std::span<Unit* const> units) {
  return each_unit(units, [&](Unit& unit) -> Status {
    PYC_TRY(compile_unit(target, unit));
    const auto& made = unit.options->after_kernel;
    if (made) made(static_cast<int64_t>(units.size()));
    return {};
  });
}

// The units that the store has nothing for, one of each source.
std::vector<Unit*> missing_in(const cpu::CodeStore& store, std::span<Unit* const> units) {
  std::vector<Unit*> out;
  std::set<std::string_view> asked;
  for (Unit* unit : units) {
    unit->object = store.find(unit->source);
    if (unit->object == nullptr && asked.insert(unit->source).second) out.push_back(unit);
  }
  return out;
}

// Generates what the store does not have yet and takes all from there; returns how many that were.
// First by all that fixed code follows from; of a program whose inputs were met with other sizes,
// what is not found is asked for again with its sizes as arguments.
Result<int64_t> take_units(const cpu::CodegenTarget& target, bool met, std::span<Unit* const> units,
                           cpu::CodeStore& store) {
  std::vector<Unit*> missing = missing_in(store, units);
  if (met && !missing.empty()) {
    std::vector<Unit*> open;
    for (Unit* unit : units) {
      if (unit->object != nullptr) continue;
      unit->any_size = true;
      open.push_back(unit);
    }
    PYC_TRY(each_unit(open, [&](Unit& unit) -> Status {
      PYC_ASSIGN(unit.source, emit_unit(target, unit, cpu::Form::kSource));
      return {};
    }));
    missing = missing_in(store, open);
  }
  PYC_TRY(compile_units(target, missing));
  for (Unit* unit : missing) unit->object = store.keep(unit->source, unit->object);
  for (Unit* unit : units) {
    if (unit->object == nullptr) unit->object = store.find(unit->source);
  }
  return static_cast<int64_t>(missing.size());
}

CompiledGroup make_group(const lower::Group& group, const cpu::CpuPlan& plan, const Unit& unit) {
  CompiledGroup out;
  out.steps = plan.steps(group, unit.symbol);
  for (CompiledStep& step : out.steps) {
    step.object = unit.object;
    step.launch.append(reinterpret_cast<const char*>(unit.dims.data()),
                       unit.dims.size() * sizeof(int64_t));
  }
  return out;
}

// A constant that some groups ask for in one packing.
struct PackJob {
  size_t group;
  size_t index;
  const ir::ConstData* source;
  std::string what;
  runtime::Parameter made;
};

// What another program made of the same constant; without data if none did.
runtime::Parameter find_packed(const PackJob& job) {
  const auto found = job.source->made.find(job.what);
  if (found.owner == nullptr) return {};
  return {found.owner, found.bytes.data(), static_cast<int64_t>(found.bytes.size())};
}

void keep_packed(const PackJob& job) {
  const std::span bytes(static_cast<const std::byte*>(job.made.data),
                        static_cast<size_t>(job.made.bytes));
  job.source->made.keep(job.what, {job.made.owner, bytes});
}

// Packs each constant once per packing, for all groups that ask for it.
Status pack_constants(const lower::LoweredGraph& lowered, std::span<const Candidate> chosen,
                      std::vector<CompiledGroup>& groups) {
  std::vector<PackJob> jobs;
  std::map<std::pair<ir::ValueId, std::string_view>, size_t> known;
  std::vector<std::vector<size_t>> job_of(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto& packed = chosen[g].needs.packed;
    for (size_t i = 0; i < packed.size(); ++i) {
      const auto [it, is_new] =
          known.try_emplace({packed[i].source, packed[i].packing}, jobs.size());
      if (is_new) {
        jobs.push_back({.group = g,
                        .index = i,
                        .source = lowered.graph->value(packed[i].source).constant.get(),
                        .what = "packed: " + packed[i].packing,
                        .made = {}});
      }
      job_of[g].push_back(it->second);
    }
  }
  std::vector<PackJob*> missing;
  for (PackJob& job : jobs) {
    job.made = find_packed(job);
    if (job.made.owner == nullptr) missing.push_back(&job);
  }
  PYC_TRY(on_all_cores(missing.size(), [&](size_t j) -> Status {
    PackJob& job = *missing[j];
    job.made =
        plan_of(chosen[job.group]).pack(*lowered.graph, lowered.groups[job.group], job.index);
    keep_packed(job);
    return {};
  }));
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const size_t j : job_of[g]) groups[g].packed.push_back(jobs[j].made);
  }
  return {};
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  Capabilities capabilities() const override {
    const auto targets = target_names();
    return {.targets = {targets.begin(), targets.end()}, .stages = {"llvm", "asm"}};
  }
  std::string native_target() const override {
    return std::string(pyc::native_target(host_target()));
  }

  // Measured on Neoverse-V1; elsewhere scaled by the width of its vectors.
  lower::LayoutFacts layout_facts(const BackendOptions& options) const override {
    const cpu::CodegenTarget target = target_of(options);
    const double width = static_cast<double>(cpu::registers_of(target).native_lanes) / 4.0;
    return {.tile_product = 2.0 / cpu::tile_flops_per_ns(target),
            .generic_product = 0.1 / width,
            .read = 0.05 / width,
            .strided_read = 0.6,
            .packed_read = 0.15 / width};
  }

  std::vector<Candidate> candidates(const ir::Graph& graph, const lower::Group& group,
                                    const BackendOptions& options) const override {
    const cpu::CodegenTarget target = target_of(options);
    const cpu::GeneratorRequest request{.graph = graph,
                                        .group = group,
                                        .target = target,
                                        .threads = options.threads,
                                        .lanes_asked = options.lanes > 0,
                                        .least_memory = options.least_memory};
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
    const cpu::CodegenTarget target = target_of(options);
    auto* const store = dynamic_cast<cpu::CodeStore*>(options.store);
    std::vector<Unit> units;
    loop::KernelTexts texts(store == nullptr ? nullptr : store->texts());
    std::map<std::string, size_t> known;
    std::vector<size_t> unit_of;
    for (size_t g = 0; g < lowered.groups.size(); ++g) {
      const lower::Group& group = lowered.groups[g];
      const cpu::CpuPlan& plan = plan_of(chosen[g]);
      const std::string key = plan.key(group, texts);
      const auto [it, is_new] = known.try_emplace(key, units.size());
      if (is_new) {
        units.emplace_back();
        units.back().group = &group;
        units.back().plan = &plan;
        units.back().options = &options;
        if (store == nullptr) {
          units.back().symbol = fmt::format("pyc_k{}", it->second);
        } else {
          units.back().symbol = cpu::kDefaultSymbol;  // the same in all programs
          units.back().source = fmt::format("{} {} {} {}\n{}", target.triple, target.cpu,
                                            target.features, target.lanes, key);
        }
      }
      unit_of.push_back(it->second);
    }
    if (store != nullptr) store->keep_texts(texts.kept());
    std::vector<Unit*> all;
    for (Unit& unit : units) all.push_back(&unit);
    if (store == nullptr) {
      PYC_TRY(compile_units(target, all));
      stats->generated = static_cast<int64_t>(units.size());
    } else {
      PYC_ASSIGN(stats->generated, take_units(target, store->meet(*lowered.graph), all, *store));
    }
    stats->kernels = static_cast<int64_t>(lowered.groups.size());
    stats->distinct = static_cast<int64_t>(units.size());
    for (const Unit& unit : units) stats->slowest_ns = std::max(stats->slowest_ns, unit.ns);

    std::vector<CompiledGroup> out(lowered.groups.size());
    for (size_t g = 0; g < out.size(); ++g) {
      out[g] = make_group(lowered.groups[g], plan_of(chosen[g]), units[unit_of[g]]);
    }
    PYC_TRY(pack_constants(lowered, chosen, out));
    return out;
  }

  std::shared_ptr<CodeStore> make_store() const override {
    return std::make_shared<cpu::CodeStore>();
  }
  const runtime::Loader& loader() const override { return cpu::loader(); }

  Result<std::string> dump(const lower::LoweredGraph& lowered, size_t g, const Candidate& chosen,
                           const BackendOptions& options, std::string_view stage) const override {
    return plan_of(chosen).emit(
        lowered.groups[g], target_of(options),
        {.form = stage == "llvm" ? cpu::Form::kLlvmText : cpu::Form::kAssembly});
  }
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace pyc::backends
