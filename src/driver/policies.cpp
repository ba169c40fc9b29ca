#include "driver/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace pyc::driver {
namespace {

constexpr std::string_view kChosenByPolicy = "chosen_by_policy";

std::vector<policy::ValueFacts> facts_of_values(const ir::Graph& graph) {
  std::vector<int64_t> readers(graph.values.size());
  for (const ir::Node& node : graph.nodes) {
    const std::set<ir::ValueId> inputs(node.inputs.begin(), node.inputs.end());
    for (const ir::ValueId v : inputs) ++readers[v];
  }
  std::vector<policy::ValueFacts> out;
  for (const ir::Node& node : graph.nodes) {
    for (const ir::ValueId v : node.outputs) {
      out.push_back({.name = graph.value(v).name,
                     .op = std::string(node.op->name),
                     .bytes = graph.type(v).bytes(),
                     .readers = readers[v]});
    }
  }
  return out;
}

std::vector<policy::GroupFacts> facts_of_groups(const lower::LoweredGraph& lowered,
                                                const Selection& selection) {
  std::vector<policy::GroupFacts> out;
  for (size_t g = 0; g < lowered.groups.size(); ++g) {
    policy::GroupFacts& group = out.emplace_back();
    group.name = lowered.groups[g].name;
    for (const Alternative& a : selection.decisions[g].alternatives) {
      group.candidates.push_back({a.name, a.rejected, a.cost_ns});
    }
  }
  return out;
}

std::vector<policy::StepFacts> facts_of_steps(const lower::LoweredGraph& lowered,
                                              const Selection& selection) {
  std::map<ir::ValueId, uint32_t> writers;
  std::vector<policy::StepFacts> out;
  const auto each = [](const lower::Group& group, loop::Access access, const auto& visit) {
    for (size_t b = 0; b < group.buffer_values.size(); ++b) {
      if (group.kernel.buffers[b].access == access) visit(group.buffer_values[b]);
    }
  };
  for (uint32_t g = 0; g < lowered.groups.size(); ++g) {
    const lower::Group& group = lowered.groups[g];
    policy::StepFacts& step = out.emplace_back();
    step.group = group.name;
    step.cost_ns = selection.chosen[g].cost_ns;
    each(group, loop::Access::kWrite, [&](ir::ValueId v) {
      writers[v] = g;
      step.written_bytes += lowered.graph->type(v).bytes();
    });
  }
  for (uint32_t g = 0; g < lowered.groups.size(); ++g) {
    std::set<uint32_t> before;
    each(lowered.groups[g], loop::Access::kRead, [&](ir::ValueId v) {
      const auto writer = writers.find(v);
      if (writer != writers.end() && writer->second != g) before.insert(writer->second);
    });
    out[g].waits_for.assign(before.begin(), before.end());
  }
  return out;
}

Status wrong_count(size_t expected, size_t found) {
  return {Code::kInvalidArgument, fmt::format("expected {} answers, found {}", expected, found)};
}

}  // namespace

Result<Policies> Policies::of(const CompileOptions& options, DecisionLog& log) {
  Policies out;
  if (options.policy.empty()) return out;
  PYC_ASSIGN(policy::Policy policy, policy::Policy::load(options.policy, options.policy_isolated));
  log.push_back({.what = "policy",
                 .chosen = policy.name(),
                 .reason = "asked",
                 .detail = options.policy_isolated ? "in a child process" : "in this process",
                 .alternatives = {}});
  out.policy_ = std::make_shared<const policy::Policy>(std::move(policy));
  return out;
}

Status Policies::named(Status status) const {
  if (status.ok()) return status;
  return std::move(status).with_context(fmt::format("policy '{}'", policy_->name()));
}

Status Policies::form_groups(const ir::Graph& canonical, lower::LowerOptions& options) const {
  if (policy_ == nullptr) return {};
  const std::vector<policy::ValueFacts> values = facts_of_values(canonical);
  PYC_ASSIGN(const std::vector<int64_t> apart, policy_->keep_apart(values));
  if (apart.empty()) return {};
  if (apart.size() != values.size()) return named(wrong_count(values.size(), apart.size()));
  std::set<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) {
    if (apart[i] != 0) names.insert(values[i].name);
  }
  options.keep_apart = [names = std::move(names)](const ir::Graph& graph, ir::ValueId v) {
    return names.contains(graph.value(v).name);
  };
  return {};
}

Status Policies::choose_kernels(const lower::LoweredGraph& lowered,
                                const backends::Backend& backend,
                                const backends::BackendOptions& options,
                                Selection& selection) const {
  if (policy_ == nullptr) return {};
  const std::vector<policy::GroupFacts> groups = facts_of_groups(lowered, selection);
  PYC_ASSIGN(const std::vector<int64_t> chosen, policy_->choose_kernels(groups));
  if (chosen.empty()) return {};
  if (chosen.size() != groups.size()) return named(wrong_count(groups.size(), chosen.size()));
  for (size_t g = 0; g < groups.size(); ++g) {
    if (chosen[g] == -1) continue;
    const auto count = static_cast<int64_t>(groups[g].candidates.size());
    const bool there = chosen[g] >= 0 && chosen[g] < count;
    const auto at = static_cast<size_t>(chosen[g]);
    const std::string rejected = there ? groups[g].candidates[at].rejected : "";
    if (!there || !rejected.empty()) {
      return named({Code::kInvalidArgument,
                    fmt::format("group {}: expected -1 or a candidate of 0 to {} that is not "
                                "rejected, found {}{}",
                                groups[g].name, count - 1, chosen[g],
                                rejected.empty() ? "" : fmt::format(" ({})", rejected))});
    }
    Decision& decision = selection.decisions[g];
    decision.reason = kChosenByPolicy;
    if (groups[g].candidates[at].name == decision.chosen) continue;
    take_candidate(at, lowered, g, backend, options, selection);
  }
  return {};
}

Status Policies::plan(const lower::LoweredGraph& lowered, const Selection& selection,
                      int64_t asked_budget, plan::PlanOptions& options, DecisionLog& log) const {
  if (policy_ == nullptr) return {};
  if (options.states.empty()) {
    const std::vector<policy::StepFacts> steps = facts_of_steps(lowered, selection);
    PYC_ASSIGN(const std::vector<int64_t> order, policy_->order_steps(steps));
    if (!order.empty()) {
      PYC_TRY(named(plan::check_order(order, steps.size())));
      options.order.assign(order.begin(), order.end());
    }
  }
  PYC_ASSIGN(const int64_t budget, policy_->memory_budget(asked_budget));
  if (budget == 0) return {};
  if (budget < 0 || (asked_budget > 0 && budget > asked_budget)) {
    return named(
        {Code::kInvalidArgument,
         fmt::format("memory_budget: expected {}, found {}",
                     asked_budget > 0 ? fmt::format("0 to {} bytes", asked_budget) : "0 or more",
                     budget)});
  }
  options.memory_budget = budget;
  log.push_back({.what = "policy:memory_budget",
                 .chosen = fmt::format("{} bytes", budget),
                 .reason = std::string(kChosenByPolicy),
                 .detail = "",
                 .alternatives = {}});
  return {};
}

}  // namespace pyc::driver
