#include "backends/cpu/backend.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <system_error>
#include <thread>

#include "backends/cpu/codegen.h"
#include "backends/cpu/matmul.h"
#include "backends/cpu/pair_points.h"
#include "base/exceptions.h"
#include "runtime/code_module.h"

namespace pyc::backends {
namespace {

// Rough rates of one thread, for estimates only: generic loops are seldom near a roof.
constexpr double kGenericFlopsPerNs = 4.0;
constexpr double kBytesPerNs = 20.0;
constexpr double kStepOverheadNs = 2000.0;
// Between two loops over a row, until a reduction's result is there.
constexpr double kWaitNs = 20.0;
// Independent fma chains that hide the latency of one.
constexpr double kChainsInFlight = 4.0;

cpu::CodegenTarget target_of(const BackendOptions& options) {
  cpu::CodegenTarget target = cpu::CodegenTarget::host();
  if (options.target == "aarch64_neon") target = cpu::CodegenTarget::aarch64_neon();
  if (options.target == "x86_avx2") target = cpu::CodegenTarget::x86_avx2();
  if (options.target == "x86_avx512") target = cpu::CodegenTarget::x86_avx512();
  if (options.lanes > 0) target.lanes = options.lanes;
  return target;
}

// A reduction inside the lanes of a vector loop: one chain of dependent operations per vector.
bool reduces_in_lanes(const loop::Kernel& kernel) {
  return std::any_of(kernel.loops.begin(), kernel.loops.end(), [](const loop::Loop& l) {
    return l.vector && std::any_of(l.body.begin(), l.body.end(), [](const loop::Stmt& s) {
             return s.kind == loop::StmtKind::kLoop;
           });
  });
}

// The widths worth trying: the target's own and, where chains of dependent operations could be kept
// in flight side by side, another. A width the caller asked for is the only one.
std::vector<int> generic_widths(const lower::Group& group, const BackendOptions& options) {
  const int own = target_of(options).lanes;
  if (options.lanes > 0 || !reduces_in_lanes(group.kernel)) return {own};
  return {own, own == 16 ? 8 : 16};
}

std::string generic_name(int lanes) { return fmt::format("loop_generic__{}", lanes); }

std::string pairs_name(int lanes) { return fmt::format("loop_pairs__{}", lanes); }

// The group's kernel with its points in pairs, where that is worth trying: with AVX-512, which it
// was measured with, and if no thread gets many more points by it.
std::optional<loop::Kernel> paired_kernel(const lower::Group& group,
                                          const BackendOptions& options) {
  const cpu::CodegenTarget target = target_of(options);
  if (!target.avx512 || target.lanes != 16) return std::nullopt;
  const auto share = [&](int64_t points) {
    return (points + options.threads - 1) / options.threads;
  };
  const int64_t points = group.kernel.parallel_size();
  if (2 * share(points / 2) > share(points) * 17 / 16) return std::nullopt;
  return cpu::pair_points(group.kernel);
}

double generic_cost(const lower::Group& group, int lanes, int own_lanes, int threads) {
  double rate = kGenericFlopsPerNs * own_lanes / 4.0;
  if (reduces_in_lanes(group.kernel)) {
    const double chains = static_cast<double>(lanes) / own_lanes;
    rate *= std::min(chains, kChainsInFlight) / kChainsInFlight;
  }
  const double compute = group.flops / (rate * threads);
  const double memory = static_cast<double>(group.bytes) / (kBytesPerNs * threads);
  return std::max(compute, memory) + kStepOverheadNs;
}

// What its points wait in all.
double waits_ns(const loop::Kernel& kernel, int threads) {
  return kWaitNs * cpu::waits_of(kernel) * static_cast<double>(kernel.parallel_size()) / threads;
}

bool b_is_constant(const ir::Graph& graph, const lower::Group& group) {
  const ir::ValueId b = group.buffer_values[group.contraction->b.buffer];
  return graph.value(b).kind == ir::ValueKind::kConstant;
}

// How one group is computed: by its generic kernel at some width, that kernel with its points in
// pairs, or by the matmul generator.
struct Recipe {
  int lanes = 0;
  std::shared_ptr<const loop::Kernel> pairs;
  std::optional<cpu::MatmulPlan> matmul;

  const loop::Kernel& kernel(const lower::Group& group) const {
    return pairs == nullptr ? group.kernel : *pairs;
  }
};

Recipe recipe_of(const ir::Graph& graph, const lower::Group& group, std::string_view chosen,
                 const BackendOptions& options) {
  Recipe recipe;
  for (int lanes : generic_widths(group, options)) {
    if (generic_name(lanes) == chosen) recipe.lanes = lanes;
  }
  if (pairs_name(target_of(options).lanes) == chosen) {
    recipe.lanes = target_of(options).lanes;
    auto pairs = paired_kernel(group, options);
    PYC_CHECK(pairs.has_value(), "a kernel that was not offered");
    recipe.pairs = std::make_shared<const loop::Kernel>(std::move(*pairs));
  }
  if (recipe.lanes == 0) {
    const cpu::CodegenTarget target = target_of(options);
    recipe.lanes = target.lanes;
    recipe.matmul = cpu::plan_matmul(group, b_is_constant(graph, group), target, options.threads);
    PYC_CHECK(recipe.matmul->name == chosen, "a kernel that was not offered");
  }
  return recipe;
}

// One piece of machine code that some groups share.
struct Unit {
  const lower::Group* group = nullptr;
  Recipe recipe;
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

Status compile_unit(cpu::CodegenTarget target, bool load, Unit& unit) {
  const int64_t start = thread_ns();
  target.lanes = unit.recipe.lanes;
  PYC_ASSIGN(std::string object,
             unit.recipe.matmul
                 ? cpu::emit_matmul_object(*unit.group, *unit.recipe.matmul, target, unit.symbol)
                 : cpu::emit_object(unit.recipe.kernel(*unit.group), target, unit.symbol));
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

CompiledGroup make_group(const ir::Graph& graph, const lower::Group& group, const Unit& unit) {
  CompiledGroup out;
  out.object = unit.object;
  if (unit.module) out.owners.push_back(unit.module);
  const auto function = [&](const std::string& symbol) {
    return unit.module ? unit.module->lookup(symbol) : nullptr;
  };
  if (unit.recipe.matmul) {
    const cpu::MatmulPlan& plan = *unit.recipe.matmul;
    for (const cpu::MatmulStep& s : cpu::matmul_steps(group, plan, unit.symbol)) {
      out.steps.push_back({function(s.symbol), s.symbol, nullptr, s.operands, s.parallel});
    }
    for (const lower::KernelNeeds::Packed& p : cpu::matmul_needs(group, plan).packed) {
      out.packed.push_back(
          cpu::pack_b(plan, *group.contraction, graph.value(p.source).constant->bytes.data()));
    }
    return out;
  }
  CompiledStep step;
  step.fn = function(unit.symbol);
  step.symbol = unit.symbol;
  step.parallel = unit.recipe.kernel(group).parallel_size();
  for (ir::ValueId v : group.buffer_values) {
    Operand operand;
    operand.kind = v == ir::kNoId ? Operand::Kind::kScratch : Operand::Kind::kValue;
    operand.value = v;
    step.operands.push_back(operand);
  }
  out.steps.push_back(std::move(step));
  return out;
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  Capabilities capabilities() const override { return {.ahead = true}; }

  std::vector<Candidate> candidates(const ir::Graph& graph, const lower::Group& group,
                                    const BackendOptions& options) const override {
    const cpu::CodegenTarget target = target_of(options);
    std::vector<Candidate> out;
    for (int lanes : generic_widths(group, options)) {
      Candidate generic;
      generic.name = generic_name(lanes);
      generic.cost_ns = generic_cost(group, lanes, target.lanes, options.threads) +
                        waits_ns(group.kernel, options.threads);
      generic.needs.scratch_bytes = group.kernel.scratch_bytes();
      out.push_back(std::move(generic));
    }
    if (const auto pairs = paired_kernel(group, options)) {
      Candidate candidate;
      candidate.name = pairs_name(target.lanes);
      candidate.cost_ns = generic_cost(group, target.lanes, target.lanes, options.threads) +
                          waits_ns(*pairs, options.threads);
      candidate.needs.scratch_bytes = pairs->scratch_bytes();
      out.push_back(std::move(candidate));
    }
    if (!reduces_in_lanes(group.kernel)) return out;
    Candidate matmul;
    matmul.name = "f32_matmul";
    matmul.rejected = cpu::matmul_rejected(group, target);
    if (matmul.rejected.empty()) {
      const cpu::MatmulPlan plan =
          cpu::plan_matmul(group, b_is_constant(graph, group), target, options.threads);
      matmul.name = plan.name;
      matmul.cost_ns = cpu::matmul_cost_ns(group, plan, target, options.threads);
      matmul.needs = cpu::matmul_needs(group, plan);
    }
    out.push_back(std::move(matmul));
    return out;
  }

  Result<std::vector<CompiledGroup>> compile(const lower::LoweredGraph& lowered,
                                             std::span<const std::string> chosen,
                                             const BackendOptions& options,
                                             CompileStats* stats) const override {
    PYC_CHECK(chosen.size() == lowered.groups.size(), "a choice for every group");
    std::vector<Unit> units;
    std::map<std::string, size_t> known;
    std::vector<size_t> unit_of;
    for (size_t g = 0; g < lowered.groups.size(); ++g) {
      const lower::Group& group = lowered.groups[g];
      Recipe recipe = recipe_of(*lowered.graph, group, chosen[g], options);
      const std::string key =
          recipe.matmul ? cpu::matmul_key(group, *recipe.matmul)
                        : fmt::format("{}\n{}", recipe.lanes, loop::print(recipe.kernel(group)));
      const auto [it, is_new] = known.try_emplace(key, units.size());
      if (is_new) {
        units.emplace_back();
        units.back().group = &group;
        units.back().symbol = fmt::format("pyc_k{}", it->second);
        units.back().recipe = std::move(recipe);
      }
      unit_of.push_back(it->second);
    }
    PYC_TRY(compile_units(target_of(options), options.target.empty(), units));
    stats->kernels = static_cast<int64_t>(lowered.groups.size());
    stats->distinct = static_cast<int64_t>(units.size());
    for (const Unit& unit : units) stats->slowest_ns = std::max(stats->slowest_ns, unit.ns);

    std::vector<CompiledGroup> out(lowered.groups.size());
    PYC_TRY(on_all_cores(out.size(), [&](size_t g) -> Status {
      out[g] = make_group(*lowered.graph, lowered.groups[g], units[unit_of[g]]);
      return {};
    }));
    return out;
  }

  Result<std::string> dump(const lower::LoweredGraph& lowered, size_t g, std::string_view chosen,
                           const BackendOptions& options, std::string_view stage) const override {
    const lower::Group& group = lowered.groups[g];
    const Recipe recipe = recipe_of(*lowered.graph, group, chosen, options);
    cpu::CodegenTarget target = target_of(options);
    target.lanes = recipe.lanes;
    const bool llvm = stage == "llvm";
    if (recipe.matmul) {
      return llvm ? cpu::emit_matmul_llvm_text(group, *recipe.matmul, target)
                  : cpu::emit_matmul_assembly(group, *recipe.matmul, target);
    }
    const loop::Kernel& kernel = recipe.kernel(group);
    return llvm ? cpu::emit_llvm_text(kernel, target) : cpu::emit_assembly(kernel, target);
  }
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace pyc::backends
