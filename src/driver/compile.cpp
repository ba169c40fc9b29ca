#include "driver/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/fp_state.h"
#include "driver/artifacts.h"
#include "driver/assemble.h"
#include "driver/cache.h"
#include "driver/devices.h"
#include "driver/disk_cache.h"
#include "loop/loop.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "plan/plan.h"
#include "tune/select.h"

namespace pyc::driver {
namespace {

// Everything up to the plan: what compile and dump share.
struct Front {
  ir::VerifiedGraph given;
  lower::LoweredGraph lowered;
  tune::Selection selection;
  plan::ExecutionPlan plan;
  const backends::Backend* backend;
  backends::BackendOptions backend_options;
  DecisionLog log;
  runtime::CompileBreakdown times;
};

// Nanoseconds since the last call.
class Lap {
 public:
  int64_t operator()() {
    const int64_t before = std::exchange(last_, now_ns());
    return last_ - before;
  }

 private:
  int64_t last_ = now_ns();
};

// As the plan takes it: a negative budget is none.
int64_t budget_or_none(const CompileOptions& o) {
  return o.memory_budget == 0 ? -1 : o.memory_budget;
}

Result<Front> plan_graph(ir::VerifiedGraph given, const CompileOptions& o) {
  DecisionLog log;
  log.push_back({.what = "determinism",
                 .chosen = std::string(determinism_name(o.determinism)),
                 .reason = "caller_or_default",
                 .detail = "",
                 .alternatives = {}});
  log.push_back({.what = "options",
                 .chosen = options_summary(o),
                 .reason = "caller_or_default",
                 .detail = "",
                 .alternatives = {}});
  PYC_ASSIGN(const backends::Backend* backend, find_backend(o.device));
  if (o.determinism == Determinism::kStrict && !backend->capabilities().strict) {
    return Status(Code::kUnsupported,
                  fmt::format("device '{}' does not keep the determinism level strict", o.device));
  }
  const backends::BackendOptions backend_options{
      .threads = thread_count(o), .lanes = o.lanes, .target = o.target};

  runtime::CompileBreakdown times;
  Lap lap;
  PYC_ASSIGN(ir::VerifiedGraph canonical,
             passes::run_pipeline(given, ops::all_ops(),
                                  {.off = o.passes_off, .precision = o.precision}, &log));
  times.passes_ns = lap();
  PYC_ASSIGN(lower::LoweredGraph lowered, lower::lower_graph(canonical, {.fuse = o.fuse}));
  times.lower_ns = lap();
  PYC_ASSIGN(tune::Selection selection,
             tune::select_kernels(lowered, *backend, backend_options, o.kernels,
                                  o.determinism == Determinism::kFast));
  times.select_ns = lap();
  PYC_ASSIGN(plan::ExecutionPlan plan, plan::build_plan(lowered, selection.needs,
                                                        {.threads = backend_options.threads,
                                                         .memory_budget = budget_or_none(o),
                                                         .reuse = o.reuse}));
  times.plan_ns = lap();

  for (const DecisionLog* part : {&lowered.decisions, &selection.decisions, &plan.decisions}) {
    log.insert(log.end(), part->begin(), part->end());
  }
  return Front{.given = std::move(given),
               .lowered = std::move(lowered),
               .selection = std::move(selection),
               .plan = std::move(plan),
               .backend = backend,
               .backend_options = backend_options,
               .log = std::move(log),
               .times = times};
}

Result<Compiled> build(ir::VerifiedGraph given, const CompileOptions& o) {
  PYC_ASSIGN(Front front, plan_graph(std::move(given), o));
  backends::CompileStats stats;
  Lap lap;
  PYC_ASSIGN(
      std::vector<backends::CompiledGroup> groups,
      front.backend->compile(front.lowered, front.selection.chosen, front.backend_options, &stats));
  front.times.code_ns = lap();
  PYC_ASSIGN(std::shared_ptr<const runtime::Program> program,
             assemble(*front.given, front.lowered, front.plan, groups));
  front.times.assemble_ns = lap();
  front.times.kernels = stats.kernels;
  front.times.distinct_kernels = stats.distinct;
  front.times.slowest_kernel_ns = stats.slowest_ns;
  front.log.push_back({.what = "compile",
                       .chosen = fmt::format("{} distinct kernels", stats.distinct),
                       .reason = "equal_kernels_once",
                       .detail = fmt::format("{} asked for", stats.kernels),
                       .alternatives = {}});
  return Compiled{.program = std::move(program),
                  .log = std::move(front.log),
                  .memory = memory_report(front.plan, front.backend_options.threads),
                  .times = front.times};
}

// All that the program is made from, so that entries are compared by more than a hash; of constants
// their hashes of 128 bits.
std::string disk_key(const ir::Graph& graph, const CompileOptions& o) {
  return fmt::format("pyc={} {}{}", artifact::version(), program_key(o),
                     ir::fingerprint_key(graph));
}

Decision disk_decision(std::string_view chosen, std::string_view reason, std::string detail) {
  return {"disk_cache", std::string(chosen), std::string(reason), std::move(detail), {}};
}

// What the cache on disk has, or a new compile that is put there. No failure of the cache stops a
// compile; the log says what happened.
Result<Compiled> build_on_disk(const ir::VerifiedGraph& given, CompileOptions o,
                               const DiskCache& disk) {
  o.target = native_target(host_target());
  const std::string key = disk_key(*given, o);
  const std::string entry = disk.path_of(key);
  auto found = disk.find(key);
  if (found.ok()) {
    auto compiled = from_artifact(std::move(*found), thread_count(o));
    if (compiled.ok()) {
      compiled->log.push_back(disk_decision("loaded", "found", entry));
      return compiled;
    }
    found = std::move(compiled).status();
  }
  PYC_ASSIGN(artifact::Artifact made, compile_artifact(*given, o));
  const Status written = disk.insert(key, made);
  PYC_ASSIGN(Compiled compiled, from_artifact(std::move(made), thread_count(o)));
  if (found.status().code() != Code::kNotFound) {
    compiled.log.push_back(
        disk_decision("compiled_again", "unusable_entry", found.status().message()));
  }
  compiled.log.push_back(
      written.ok() ? disk_decision("written", "not_found", entry)
                   : disk_decision("not_written", code_name(written.code()), written.message()));
  return compiled;
}

Result<Compiled> build_or_load(ir::VerifiedGraph given, const CompileOptions& o) {
  const std::string folder = o.cache_dir.empty() ? DiskCache::default_folder() : o.cache_dir;
  PYC_ASSIGN(const backends::Backend* backend, find_backend(o.device));
  const bool possible =
      backend->capabilities().ahead && !native_target(host_target()).empty() && o.target.empty();
  if (folder.empty() || !possible) return build(std::move(given), o);
  return build_on_disk(given, o, DiskCache(folder));
}

}  // namespace

runtime::RunContract run_contract(const CompileOptions& options) {
  return {.strict_views = options.strict_views, .memory_budget = options.memory_budget};
}

int thread_count(const CompileOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Result<ir::Graph> parse_model(std::string_view text) { return ir::parse(text, ops::all_ops()); }

Result<std::unique_ptr<runtime::Model>> compile(ir::Graph graph, const CompileOptions& o) {
  const int64_t start = now_ns();
  const FpStateGuard fp_state;  // costs and constants do not depend on the caller's
  PYC_TRY(check_options(o));
  if (!o.target.empty()) {
    return Status(Code::kUnsupported,
                  fmt::format("code for '{}' cannot run here: leave out the target", o.target));
  }
  PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(graph)));
  const std::string key = o.cache ? cache_key(*given, o) : "";
  std::shared_ptr<const Compiled> compiled = o.cache ? cache_find(key) : nullptr;
  const bool hit = compiled != nullptr;
  if (!hit) {
    PYC_ASSIGN(Compiled fresh, build_or_load(std::move(given), o));
    compiled = std::make_shared<const Compiled>(std::move(fresh));
    if (o.cache) cache_insert(key, compiled);
  }
  PYC_ASSIGN(std::shared_ptr<ThreadPool> pool, shared_pool(thread_count(o)));
  PYC_ASSIGN(std::unique_ptr<runtime::Model> model,
             runtime::Model::create(compiled->program, std::move(pool), compiled->log,
                                    compiled->memory, nullptr, run_contract(o)));
  model->set_compile_stats(now_ns() - start, hit,
                           hit ? runtime::CompileBreakdown{} : compiled->times);
  return model;
}

Result<Compiled> compile_ahead(ir::Graph graph, const CompileOptions& o) {
  PYC_TRY(check_options(o));
  PYC_ASSIGN(const backends::Backend* backend, find_backend(o.device));
  if (!backend->capabilities().ahead) {
    return Status(Code::kUnsupported,
                  fmt::format("device '{}' makes no machine code that could be kept: compile ahead "
                              "of time for the device cpu",
                              o.device));
  }
  PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(graph)));
  return build(std::move(given), o);
}

Result<std::string> dump(ir::Graph graph, const CompileOptions& o, std::string_view stage) {
  constexpr std::string_view kStages[] = {"graph", "passes", "groups", "loop",
                                          "plan",  "llvm",   "asm"};
  if (std::find(std::begin(kStages), std::end(kStages), stage) == std::end(kStages)) {
    return Status(Code::kUnknownOption,
                  fmt::format("stage '{}' is not known; known stages: graph, passes, groups, loop, "
                              "plan, llvm, asm",
                              stage));
  }
  PYC_TRY(check_options(o));
  PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(graph)));
  if (stage == "graph") return ir::print(*given);
  PYC_ASSIGN(Front front, plan_graph(std::move(given), o));
  if (stage == "passes") return ir::print(*front.lowered.graph);
  if (stage == "groups") return lower::print_groups(front.lowered);
  if (stage == "plan") return plan::print(front.plan);
  std::string text;
  for (size_t g = 0; g < front.lowered.groups.size(); ++g) {
    if (stage == "loop") {
      text += loop::print(front.lowered.groups[g].kernel);
      continue;
    }
    PYC_ASSIGN(const std::string code,
               front.backend->dump(front.lowered, g, front.selection.chosen[g],
                                   front.backend_options, stage));
    text += code;
  }
  return text;
}

}  // namespace pyc::driver
