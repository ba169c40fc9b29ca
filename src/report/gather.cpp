#include "report/gather.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "plan/liveness.h"
#include "report/draw.h"

namespace pyc::report {
namespace {

std::string_view kind_of(const lower::Group& group) {
  if (group.attention) return "attention";
  return group.kind == lower::GroupKind::kContraction ? "contraction" : "loop";
}

GroupRow row_of(const lower::Group& group, const std::string& kernel) {
  GroupRow row{.name = group.name,
               .kind = std::string(kind_of(group)),
               .kernel = kernel,
               .order = group.order,
               .members = group.members,
               .reasons = group.reasons,
               .writes = {}};
  for (size_t b = 0; b < group.buffer_values.size(); ++b) {
    const ir::ValueId value = group.buffer_values[b];
    if (value != ir::kNoId && group.kernel.buffers[b].access != loop::Access::kRead) {
      row.writes.push_back(value);
    }
  }
  return row;
}

void name_groups(GraphPart& after, const std::vector<GroupRow>& groups) {
  for (uint32_t g = 0; g < groups.size(); ++g) {
    for (const uint32_t node : groups[g].members) after.nodes[node].groups.push_back(g);
  }
}

// What became of a node that was given: the groups of the nodes that have its name or its location.
// Passes keep both where they can; a node they left no trace of has none.
void follow_nodes(const ir::Graph& given, GraphPart& before, const ir::Graph& canonical,
                  const GraphPart& after) {
  std::map<std::string_view, std::vector<uint32_t>> by_name;
  std::map<std::string_view, std::vector<uint32_t>> by_location;
  for (size_t n = 0; n < canonical.nodes.size(); ++n) {
    const auto add = [&](std::vector<uint32_t>& to) {
      to.insert(to.end(), after.nodes[n].groups.begin(), after.nodes[n].groups.end());
    };
    for (const ir::ValueId v : canonical.nodes[n].outputs) add(by_name[canonical.value(v).name]);
    if (!canonical.nodes[n].loc.empty()) add(by_location[canonical.nodes[n].loc]);
  }
  const auto take = [](const auto& from, std::string_view key, std::vector<uint32_t>& to) {
    const auto found = from.find(key);
    if (found != from.end()) to.insert(to.end(), found->second.begin(), found->second.end());
  };
  for (size_t n = 0; n < given.nodes.size(); ++n) {
    std::vector<uint32_t>& groups = before.nodes[n].groups;
    for (const ir::ValueId v : given.nodes[n].outputs) {
      take(by_name, given.value(v).name, groups);
      // Passes give what a node becomes its name as location where it has none of its own.
      take(by_location, given.value(v).name, groups);
    }
    if (!given.nodes[n].loc.empty()) take(by_location, given.nodes[n].loc, groups);
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  }
}

std::string step_text(const plan::Step& step, const std::vector<GroupRow>& groups) {
  switch (step.kind) {
    case plan::StepKind::kRun:
      return groups[step.group].name;
    case plan::StepKind::kCopy:
      return "copy";
    case plan::StepKind::kRecord:
      return "record";
    case plan::StepKind::kWait:
      return "wait";
  }
  return "";
}

void add_plan(CompileRows& rows, const plan::ExecutionPlan& plan) {
  for (const plan::Place& place : plan.places) {
    rows.places.push_back({.name = place.name,
                           .arena_bytes = place.metrics.arena_bytes,
                           .lower_bound_bytes = place.metrics.lower_bound_bytes,
                           .requested_bytes = place.metrics.requested_bytes,
                           .peak_step = place.metrics.peak_step});
  }
  const std::vector<uint32_t> in_place_of = plan::in_place_sources(plan);
  for (size_t i = 0; i < plan.instances.size(); ++i) {
    const plan::Instance& instance = plan.instances[i];
    if (!plan::in_arena(instance)) continue;
    const plan::Lifetime life = plan::lifetime(plan, instance);
    rows.instances.push_back({.name = shown(instance.name),
                              .cls = std::string(buffer_class_name(instance.cls)),
                              .place = instance.place,
                              .offset = instance.offset,
                              .bytes = instance.bytes,
                              .taken_bytes = plan::arena_size(instance),
                              .first = life.first,
                              .last = life.last,
                              .in_place = in_place_of[i] != ir::kNoId});
  }
  for (const plan::Step& step : plan.steps) {
    rows.plan_steps.push_back(step_text(step, rows.groups));
    if (step.kind == plan::StepKind::kRun) rows.runs.push_back(step.group);
  }
}

}  // namespace

CompileRows gather(const driver::Stages& stages) {
  const ir::Graph& canonical = *stages.lowered.graph;
  CompileRows rows;
  for (size_t g = 0; g < stages.lowered.groups.size(); ++g) {
    rows.groups.push_back(row_of(stages.lowered.groups[g], stages.kernels[g]));
  }
  rows.before = rows_of(*stages.given);
  rows.after = rows_of(canonical);
  name_groups(rows.after, rows.groups);
  follow_nodes(*stages.given, rows.before, canonical, rows.after);
  draw_nodes(rows.before, *stages.given);
  draw_groups(rows.after, canonical, rows.groups);
  add_plan(rows, stages.plan);
  return rows;
}

}  // namespace pyc::report
