#include "driver/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/fp_state.h"
#include "driver/assemble.h"
#include "driver/contract.h"
#include "driver/devices.h"
#include "driver/front.h"
#include "driver/policies.h"
#include "driver/smaller_groups.h"
#include "driver/states.h"
#include "driver/stream_file.h"
#include "driver/targets.h"
#include "driver/tuning.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "plan/in_place.h"
#include "plan/plan.h"

namespace pyc::driver {
namespace {

// As the plan takes it: a negative budget is none.
int64_t budget_or_none(const CompileOptions& o) {
  return o.memory_budget == 0 ? -1 : o.memory_budget;
}

plan::PlanMode mode_of(const CompileOptions& o) {
  if (o.mode == kMemoryFirst) return plan::PlanMode::kMemoryFirst;
  return o.mode == kLatencyFirst ? plan::PlanMode::kLatencyFirst : plan::PlanMode::kBalanced;
}

Effort effort_of(const CompileOptions& o) {
  if (o.effort == kFastDev) return Effort::kFastDev;
  return o.effort == kMaxPerf ? Effort::kMaxPerf : Effort::kBalanced;
}

std::vector<double> costs_of(const Selection& selection) {
  std::vector<double> costs;
  for (size_t g = 0; g < selection.chosen.size(); ++g) {
    const Decision& d = selection.decisions[g];
    const auto row = std::ranges::find(d.alternatives, d.chosen, &Alternative::name);
    const bool measured = row != d.alternatives.end() && row->measured_ns > 0;
    costs.push_back(measured ? row->measured_ns : selection.chosen[g].cost_ns);
  }
  return costs;
}

// The device kind whose named order products of halves have: only balanced promises one.
Result<std::string> unit_of(const CompileOptions& o, const backends::Backend& backend,
                            const backends::BackendOptions& backend_options) {
  if (o.determinism != Determinism::kBalanced || o.matrix_unit == kNoMatrixUnit)
    return std::string();
  if (!o.matrix_unit.empty()) return o.matrix_unit;
  PYC_ASSIGN(const std::string_view own, backend.matrix_unit(backend_options));
  return std::string(own);
}

Result<lower::LowerOptions> options_of(const CompileOptions& o, const backends::Backend& backend,
                                       const backends::BackendOptions& backend_options) {
  lower::LowerOptions out{.fuse = o.fuse};
  PYC_ASSIGN(out.unit, unit_of(o, backend, backend_options));
  if (o.layouts) out.layout_facts = backend.layout_facts(backend_options);
  return out;
}

Result<Selection> select_tuned(const lower::LoweredGraph& lowered, const CompileOptions& o,
                               const backends::Backend& backend,
                               const backends::BackendOptions& backend_options) {
  PYC_ASSIGN(Selection selection, select_kernels(lowered, backend, backend_options, o.kernels,
                                                 o.determinism == Determinism::kFast));
  if (o.tuning != nullptr) apply_tuning(*o.tuning, lowered, backend, backend_options, selection);
  return selection;
}

// The graph in other groups, for the same backend and with the same options.
Result<Planned> plan_apart(const CompileOptions& o, const Planned& usual,
                           const ir::VerifiedGraph& canonical, const std::set<std::string>& apart) {
  const Grouped& g = usual.grouped;
  PYC_ASSIGN(lower::LowerOptions lowering, options_of(o, *g.backend, g.backend_options));
  if (!apart.empty()) {
    lowering.keep_apart = [&apart](const ir::Graph& graph, ir::ValueId v) {
      return apart.contains(graph.value(v).name);
    };
  }
  PYC_ASSIGN(lower::LoweredGraph lowered, lower::lower_graph(canonical, lowering));
  PYC_ASSIGN(Selection selection, select_tuned(lowered, o, *g.backend, g.backend_options));
  plan::PlanOptions planning = usual.options;
  planning.group_ns = costs_of(selection);
  auto plan = plan::build_plan(lowered, selection.needs, planning);
  return Planned{
      {canonical, std::move(lowered), std::move(selection), g.backend, g.backend_options},
      std::move(planning),
      std::move(plan)};
}

// By group, the nodes that the user gave and what became of them there. What a node becomes has its
// location, or its name where it has none.
std::map<std::string, std::vector<TraceNode>> traced_nodes(const Front& front) {
  std::map<std::string_view, std::string> given;  // by location
  for (const ir::Node& node : front.given->nodes) {
    const std::string& name = front.given->value(node.outputs[0]).name;
    if (!node.loc.empty()) given.emplace(node.loc, fmt::format("{} ({})", name, node.loc));
  }
  std::map<std::string, std::vector<TraceNode>> out;
  const ir::Graph& graph = *front.lowered.graph;
  for (const lower::Group& group : front.lowered.groups) {
    std::vector<TraceNode>& nodes = out[group.name];
    for (const ir::NodeId n : group.members) {
      const ir::Node& node = graph.nodes[n];
      const auto known = given.find(node.loc);
      const std::string& own = node.loc.empty() ? graph.value(node.outputs[0]).name : node.loc;
      const std::string& name = known == given.end() ? own : known->second;
      if (nodes.empty() || nodes.back().name != name) nodes.push_back({name, ""});
      std::string& ops = nodes.back().ops;
      ops += (ops.empty() ? "" : " ") + std::string(node.op->name);
    }
  }
  return out;
}

// Counts the kernels of one compile.
std::function<void(int64_t)> after_kernel(const CompileOptions& o) {
  if (!o.progress) return {};
  return [tell = o.progress, done = std::make_shared<std::atomic<int64_t>>(0)](int64_t all) {
    tell(++*done, all);
  };
}

}  // namespace

Result<Grouped> group_graph(const ir::VerifiedGraph& given, const CompileOptions& o,
                            const TimeLimit& limit, const Policies& policies, DecisionLog& log,
                            runtime::CompileBreakdown& times) {
  PYC_ASSIGN(const backends::Backend* backend, find_backend(o.device));
  backends::BackendOptions backend_options{.threads = thread_count(o),
                                           .lanes = o.lanes,
                                           .target = o.target,
                                           .store = o.store.get(),
                                           .effort = effort_of(o),
                                           .least_memory = o.mode == kMemoryFirst,
                                           .trace = o.trace.get(),
                                           .before_kernel = [limit] { return limit.check("code"); },
                                           .after_kernel = after_kernel(o)};
  Lap lap(o.trace.get());
  PYC_ASSIGN(ir::VerifiedGraph canonical,
             passes::run_pipeline(given, ops::all_ops(),
                                  {.off = o.passes_off,
                                   .precision = o.precision,
                                   .join_products = backend->capabilities().joined_products},
                                  &log));
  times.passes_ns = lap("passes");
  PYC_TRY(limit.check("passes"));
  PYC_ASSIGN(lower::LowerOptions lowering, options_of(o, *backend, backend_options));
  PYC_TRY(policies.form_groups(*canonical, lowering));
  PYC_ASSIGN(lower::LoweredGraph lowered, lower::lower_graph(canonical, lowering));
  times.lower_ns = lap("lower");
  PYC_TRY(limit.check("lower"));
  PYC_ASSIGN(Selection selection, select_tuned(lowered, o, *backend, backend_options));
  PYC_TRY(policies.choose_kernels(lowered, *backend, backend_options, selection));
  times.select_ns = lap("select");
  PYC_TRY(limit.check("select"));
  return Grouped{.canonical = std::move(canonical),
                 .lowered = std::move(lowered),
                 .selection = std::move(selection),
                 .backend = backend,
                 .backend_options = std::move(backend_options)};
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
  PYC_ASSIGN(const Policies policies, Policies::of(o, log));
  runtime::CompileBreakdown times;
  PYC_ASSIGN(Grouped grouped, group_graph(given, o, limit, policies, log, times));
  Lap lap(o.trace.get());
  plan::PlanOptions planning{.threads = grouped.backend_options.threads,
                             .memory_budget = budget_or_none(o),
                             .reuse = o.reuse,
                             .mode = mode_of(o),
                             .effort = effort_of(o),
                             .group_ns = costs_of(grouped.selection),
                             .stream = o.stream_parameters && backend->capabilities().streams,
                             .offload = backend->capabilities().offloads,
                             .states = std::move(states)};
  PYC_TRY(policies.plan(grouped.lowered, grouped.selection, std::max<int64_t>(0, o.memory_budget),
                        planning, log));
  auto first = plan::build_plan(grouped.lowered, grouped.selection.needs, planning);
  Planned planned{std::move(grouped), std::move(planning), std::move(first)};
  const Replan replan = [&](const ir::VerifiedGraph& canonical,
                            const std::set<std::string>& apart) {
    return plan_apart(o, planned, canonical, apart);
  };
  PYC_TRY(find_smaller_groups(o, replan, planned, log));
  if (!planned.plan.ok()) {
    const bool chosen =
        !planned.options.order.empty() || planned.options.memory_budget != budget_or_none(o);
    Status refusal = std::move(planned.plan).status();
    return chosen ? policies.named(std::move(refusal)) : refusal;
  }
  grouped = std::move(planned.grouped);
  lower::LoweredGraph& lowered = grouped.lowered;
  Selection& selection = grouped.selection;
  plan::ExecutionPlan plan = std::move(*planned.plan);
  plan::state_in_place(plan, lowered);
  times.plan_ns = lap("plan");
  PYC_TRY(limit.check("plan"));

  log.reserve(log.size() + lowered.decisions.size() + selection.decisions.size() +
              plan.decisions.size());
  for (DecisionLog* part : {&lowered.decisions, &selection.decisions, &plan.decisions}) {
    log.insert(log.end(), std::move_iterator(part->begin()), std::move_iterator(part->end()));
    part->clear();
  }
  return Front{.given = std::move(given),
               .canonical = std::move(grouped.canonical),
               .lowered = std::move(lowered),
               .selection = std::move(selection),
               .plan = std::move(plan),
               .backend = backend,
               .backend_options = std::move(grouped.backend_options),
               .log = std::move(log),
               .times = times};
}

Result<Compiled> compile_program(ir::VerifiedGraph given, const CompileOptions& o) {
  const FpStateGuard fp_state;  // costs and constants do not depend on the caller's
  PYC_TRY(check_options(o));
  const TimeLimit limit(o);
  PYC_ASSIGN(const backends::Backend* backend, find_backend(o.device));
  PYC_TRY(check_target(*backend, o.target));
  PYC_ASSIGN(Front front, plan_graph(std::move(given), o, limit));
  PYC_TRY(check_latency(o, front.log));
  backends::CompileStats stats;
  Lap lap(o.trace.get());
  PYC_ASSIGN(
      std::vector<backends::CompiledGroup> groups,
      front.backend->compile(front.lowered, front.selection.chosen, front.backend_options, &stats));
  front.times.code_ns = lap("code");
  PYC_TRY(limit.check("code"));
  PYC_ASSIGN(std::shared_ptr<const runtime::Program> program,
             assemble(*front.given, front.lowered, front.plan, groups,
                      {.backend = std::string(front.backend->name()), .target = o.target}));
  if (!o.stream_folder.empty()) {
    PYC_ASSIGN(program, with_streamed_in_file(std::move(program), o.stream_folder));
  }
  front.times.assemble_ns = lap("assemble");
  if (o.trace != nullptr) o.trace->add_nodes(program, traced_nodes(front));
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

Status load(Compiled& compiled, TraceLog* trace) {
  Lap lap(trace);
  PYC_ASSIGN(compiled.engine, runtime::load_engine(compiled.program, loaders()));
  compiled.times.code_ns += lap("load");
  return {};
}

runtime::RunContract run_contract(const CompileOptions& options) {
  return {.strict_views = options.strict_views,
          .memory_budget = options.memory_budget,
          .trace = options.trace};
}

Result<ir::Graph> parse_model(std::string_view text) { return ir::parse(text, ops::all_ops()); }

}  // namespace pyc::driver
