#include "driver/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/fp_state.h"
#include "driver/assemble.h"
#include "driver/contract.h"
#include "driver/devices.h"
#include "driver/select.h"
#include "driver/stages.h"
#include "driver/states.h"
#include "driver/targets.h"
#include "loop/loop.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "plan/in_place.h"
#include "plan/plan.h"

namespace pyc::driver {
namespace {

// Everything up to the plan: what compile and dump share.
struct Front {
  ir::VerifiedGraph given;
  ir::VerifiedGraph canonical;
  lower::LoweredGraph lowered;
  Selection selection;
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

// When a compile has to be over. It is asked between stages and refuses, so that the program is the
// same or there is none.
class TimeLimit {
 public:
  explicit TimeLimit(const CompileOptions& o) : budget_ms_(o.compile_budget_ms) {}

  Status check(std::string_view stage) const {
    if (budget_ms_ < 0 || (now_ns() - start_) / 1'000'000 < budget_ms_) return {};
    return {Code::kBudgetExceeded,
            fmt::format("compile_budget_ms: expected the compile to be over within {} ms, found it "
                        "at the end of the stage '{}'; allow more, or leave it out",
                        budget_ms_, stage)};
  }

 private:
  int64_t budget_ms_;
  int64_t start_ = now_ns();
};

// As the plan takes it: a negative budget is none.
int64_t budget_or_none(const CompileOptions& o) {
  return o.memory_budget == 0 ? -1 : o.memory_budget;
}

plan::PlanMode mode_of(const CompileOptions& o) {
  return o.mode == kMemoryFirst ? plan::PlanMode::kMemoryFirst : plan::PlanMode::kBalanced;
}

// The device kind whose named order products of halves have: only balanced promises one.
std::string unit_of(const CompileOptions& o, const backends::Backend& backend,
                    const backends::BackendOptions& backend_options) {
  if (o.determinism != Determinism::kBalanced || o.matrix_unit == kNoMatrixUnit) return "";
  return o.matrix_unit.empty() ? std::string(backend.matrix_unit(backend_options)) : o.matrix_unit;
}

lower::LowerOptions options_of(const CompileOptions& o, const backends::Backend& backend,
                               const backends::BackendOptions& backend_options) {
  lower::LowerOptions out{.fuse = o.fuse, .unit = unit_of(o, backend, backend_options)};
  if (o.layouts) out.layout_facts = backend.layout_facts(backend_options);
  return out;
}

Result<Front> plan_graph(ir::VerifiedGraph given, const CompileOptions& o, const TimeLimit& limit) {
  DecisionLog log;
  PYC_ASSIGN(const backends::Backend* backend, find_backend(o.device));
  if (o.determinism != Determinism::kFast && !backend->capabilities().ieee_floats) {
    return Status(
        Code::kUnsupported,
        fmt::format("device '{}' does not round as IEEE 754 says, so it does not keep the "
                    "determinism level {}; fast asks for nothing of it",
                    o.device, determinism_name(o.determinism)));
  }
  PYC_ASSIGN(std::vector<plan::StatePair> states, find_states(*given, o.states));
  if (!states.empty() && !backend->capabilities().states) {
    return Status(
        Code::kUnsupported,
        fmt::format("state: device '{}' keeps nothing from one run to the next; leave out "
                    "the option, or choose the device cpu",
                    o.device));
  }
  const backends::BackendOptions backend_options{
      .threads = thread_count(o), .lanes = o.lanes, .target = o.target, .store = o.store.get()};

  runtime::CompileBreakdown times;
  Lap lap;
  PYC_ASSIGN(ir::VerifiedGraph canonical,
             passes::run_pipeline(given, ops::all_ops(),
                                  {.off = o.passes_off, .precision = o.precision}, &log));
  times.passes_ns = lap();
  PYC_TRY(limit.check("passes"));
  PYC_ASSIGN(lower::LoweredGraph lowered,
             lower::lower_graph(canonical, options_of(o, *backend, backend_options)));
  times.lower_ns = lap();
  PYC_TRY(limit.check("lower"));
  PYC_ASSIGN(Selection selection, select_kernels(lowered, *backend, backend_options, o.kernels,
                                                 o.determinism == Determinism::kFast));
  times.select_ns = lap();
  PYC_TRY(limit.check("select"));
  PYC_ASSIGN(plan::ExecutionPlan plan, plan::build_plan(lowered, selection.needs,
                                                        {.threads = backend_options.threads,
                                                         .memory_budget = budget_or_none(o),
                                                         .reuse = o.reuse,
                                                         .mode = mode_of(o),
                                                         .states = std::move(states)}));
  plan::state_in_place(plan, lowered);
  times.plan_ns = lap();
  PYC_TRY(limit.check("plan"));

  for (DecisionLog* part : {&lowered.decisions, &selection.decisions, &plan.decisions}) {
    log.insert(log.end(), std::move_iterator(part->begin()), std::move_iterator(part->end()));
    part->clear();
  }
  return Front{.given = std::move(given),
               .canonical = std::move(canonical),
               .lowered = std::move(lowered),
               .selection = std::move(selection),
               .plan = std::move(plan),
               .backend = backend,
               .backend_options = backend_options,
               .log = std::move(log),
               .times = times};
}

// That it is a stage, and one of the chosen device.
Status check_stage(std::string_view stage, const CompileOptions& o) {
  constexpr std::string_view kCommon[] = {"graph", "passes", "groups", "loop", "plan"};
  if (std::ranges::find(kCommon, stage) != std::end(kCommon)) return {};
  const std::vector<std::string_view> code = code_stages();
  if (std::ranges::find(code, stage) == code.end()) {
    return {Code::kUnknownOption,
            fmt::format("stage '{}' is not known; known stages: {}, {}", stage,
                        fmt::join(kCommon, ", "), fmt::join(code, ", "))};
  }
  PYC_ASSIGN(const backends::Backend* backend, find_backend(o.device));
  PYC_TRY(check_target(*backend, o.target));
  const std::vector<std::string_view> own = backend->capabilities().stages;
  if (own.empty() || std::ranges::find(own, stage) != own.end()) return {};
  return {Code::kUnsupported, fmt::format("device '{}' has no stage '{}'; it has: {}", o.device,
                                          stage, fmt::join(own, ", "))};
}

}  // namespace

Result<Compiled> compile_program(ir::VerifiedGraph given, const CompileOptions& o) {
  const FpStateGuard fp_state;  // costs and constants do not depend on the caller's
  PYC_TRY(check_options(o));
  const TimeLimit limit(o);
  PYC_ASSIGN(const backends::Backend* backend, find_backend(o.device));
  PYC_TRY(check_target(*backend, o.target));
  PYC_ASSIGN(Front front, plan_graph(std::move(given), o, limit));
  PYC_TRY(check_latency(o, front.log));
  backends::CompileStats stats;
  Lap lap;
  PYC_ASSIGN(
      std::vector<backends::CompiledGroup> groups,
      front.backend->compile(front.lowered, front.selection.chosen, front.backend_options, &stats));
  front.times.code_ns = lap();
  PYC_TRY(limit.check("code"));
  PYC_ASSIGN(std::shared_ptr<const runtime::Program> program,
             assemble(*front.given, front.lowered, front.plan, groups,
                      {.backend = std::string(front.backend->name()), .target = o.target}));
  front.times.assemble_ns = lap();
  front.times.kernels = stats.kernels;
  front.times.distinct_kernels = stats.distinct;
  front.times.generated_kernels = stats.generated;
  front.times.slowest_kernel_ns = stats.slowest_ns;
  front.log.push_back({.what = "compile",
                       .chosen = fmt::format("{} distinct kernels", stats.distinct),
                       .reason = "equal_kernels_once",
                       .detail = fmt::format("{} asked for", stats.kernels),
                       .alternatives = {}});
  if (o.store != nullptr) {
    front.log.push_back({.what = "code",
                         .chosen = fmt::format("{} generated", stats.generated),
                         .reason = "sizes_are_arguments",
                         .detail = fmt::format("{} of {} distinct kernels are shared with other "
                                               "sizes of the graph",
                                               stats.distinct - stats.generated, stats.distinct),
                         .alternatives = {}});
  }
  return Compiled{.program = std::move(program),
                  .engine = nullptr,
                  .log = with_choices(std::move(front.log), o),
                  .memory = memory_report(front.plan, front.backend_options.threads),
                  .times = front.times};
}

Status load(Compiled& compiled) {
  Lap lap;
  PYC_ASSIGN(compiled.engine, runtime::load_engine(compiled.program, loaders()));
  compiled.times.code_ns += lap();
  return {};
}

runtime::RunContract run_contract(const CompileOptions& options) {
  return {.strict_views = options.strict_views, .memory_budget = options.memory_budget};
}

Result<ir::Graph> parse_model(std::string_view text) { return ir::parse(text, ops::all_ops()); }

Result<Stages> stages(ir::VerifiedGraph given, const CompileOptions& o) {
  const FpStateGuard fp_state;
  PYC_TRY(check_options(o));
  PYC_ASSIGN(Front front, plan_graph(std::move(given), o));
  std::vector<std::string> kernels;
  for (const backends::Candidate& c : front.selection.chosen) kernels.push_back(c.name);
  return Stages{.given = std::move(front.given),
                .canonical = std::move(front.canonical),
                .lowered = std::move(front.lowered),
                .kernels = std::move(kernels),
                .plan = std::move(front.plan)};
}

Result<std::string> dump(ir::VerifiedGraph given, const CompileOptions& o, std::string_view stage) {
  PYC_TRY(check_options(o));
  PYC_TRY(check_stage(stage, o));
  if (stage == "graph") return ir::print(*given);
  PYC_ASSIGN(Front front, plan_graph(std::move(given), o, TimeLimit(o)));
  if (stage == "passes") return ir::print(*front.canonical);
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
