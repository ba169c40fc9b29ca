#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "plan/buffers.h"
#include "plan/liveness.h"
#include "plan/metrics.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

Status refuse(std::string_view reason, const std::string& message) {
  return {Code::kVerifyFailed, fmt::format("[{}] {}", reason, message)};
}

bool contains(const std::vector<uint32_t>& list, uint32_t entry) {
  return std::find(list.begin(), list.end(), entry) != list.end();
}

Status check_buffer_ids(const ExecutionPlan& plan) {
  const size_t count = plan.buffers.size();
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlannedStep& step = plan.steps[s];
    const auto unknown = [count](uint32_t b) { return b >= count; };
    if (std::any_of(step.reads.begin(), step.reads.end(), unknown) ||
        std::any_of(step.writes.begin(), step.writes.end(), unknown) ||
        (step.workspace != ir::kNoId && unknown(step.workspace))) {
      return refuse("unknown_buffer",
                    fmt::format("step {} names a buffer that is none of the {}", s, count));
    }
  }
  return {};
}

Status check_groups_run_once(const lower::LoweredGraph& lowered, const ExecutionPlan& plan) {
  std::vector<size_t> ran_at(lowered.groups.size(), SIZE_MAX);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const uint32_t g = plan.steps[s].group;
    if (g >= lowered.groups.size()) {
      return refuse("unknown_group",
                    fmt::format("step {} names group {} of {}", s, g, lowered.groups.size()));
    }
    if (ran_at[g] != SIZE_MAX) {
      return refuse("duplicate_step", fmt::format("group '{}' runs at step {} and at step {}",
                                                  lowered.groups[g].name, ran_at[g], s));
    }
    ran_at[g] = s;
  }
  for (size_t g = 0; g < lowered.groups.size(); ++g) {
    if (ran_at[g] == SIZE_MAX) {
      return refuse("missing_step", fmt::format("group '{}' never runs", lowered.groups[g].name));
    }
  }
  return {};
}

// Whether `step` reads the constant in a form packed for its group.
bool reads_packed(const ExecutionPlan& plan, const PlannedStep& step, const ir::Value& value,
                  const lower::Group& group) {
  if (value.kind != ir::ValueKind::kConstant) return false;
  const std::string name = packed_name(value, group);
  return std::any_of(step.reads.begin(), step.reads.end(), [&](uint32_t b) {
    return plan.buffers[b].value == ir::kNoId && plan.buffers[b].name == name;
  });
}

// The step names the buffers of the values its group's kernel takes.
Status check_operands(const lower::LoweredGraph& lowered, const ExecutionPlan& plan, size_t s,
                      const std::vector<uint32_t>& buffer_of) {
  const PlannedStep& step = plan.steps[s];
  const lower::Group& group = lowered.groups[step.group];
  for (size_t b = 0; b < group.kernel.buffers.size(); ++b) {
    const loop::Access access = group.kernel.buffers[b].access;
    if (access == loop::Access::kScratch) continue;
    const ir::Value& value = lowered.graph->value(group.buffer_values[b]);
    const uint32_t buffer = buffer_of[group.buffer_values[b]];
    if (access == loop::Access::kWrite && !contains(step.writes, buffer)) {
      return refuse("missing_write",
                    fmt::format("step {} does not name '{}', which group '{}' writes", s,
                                value.name, group.name));
    }
    if (access == loop::Access::kRead && !contains(step.reads, buffer) &&
        !reads_packed(plan, step, value, group)) {
      return refuse("missing_read",
                    fmt::format("step {} does not name '{}', which group '{}' reads", s, value.name,
                                group.name));
    }
  }
  return {};
}

// Planned buffer of each value; a value without one has kNoId.
Result<std::vector<uint32_t>> map_values(const lower::LoweredGraph& lowered,
                                         const ExecutionPlan& plan) {
  std::vector<uint32_t> buffer_of(lowered.graph->values.size(), ir::kNoId);
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan.buffers[b];
    if (buffer.value == ir::kNoId) continue;
    if (buffer.value >= buffer_of.size()) {
      return refuse("unknown_value", fmt::format("buffer '{}' holds no value", buffer.name));
    }
    if (buffer_of[buffer.value] != ir::kNoId) {
      return refuse("duplicate_buffer", fmt::format("'{}' has two buffers", buffer.name));
    }
    buffer_of[buffer.value] = static_cast<uint32_t>(b);
  }
  return buffer_of;
}

// Model output i is written where output_values says.
Status check_outputs(const lower::LoweredGraph& lowered, const ExecutionPlan& plan,
                     const std::vector<uint32_t>& buffer_of) {
  for (size_t i = 0; i < lowered.output_values.size(); ++i) {
    const ir::ValueId value = lowered.output_values[i];
    const uint32_t b = value < buffer_of.size() ? buffer_of[value] : ir::kNoId;
    if (b != ir::kNoId && plan.buffers[b].cls == BufferClass::kOutput &&
        plan.buffers[b].io_index == i) {
      continue;
    }
    return refuse("wrong_output", fmt::format("the storage of output {} is not its buffer", i));
  }
  return {};
}

Status check_order(const lower::LoweredGraph& lowered, const ExecutionPlan& plan) {
  const auto group_name = [&](size_t s) { return lowered.groups[plan.steps[s].group].name; };
  std::vector<size_t> writer(plan.buffers.size(), SIZE_MAX);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    for (const uint32_t b : plan.steps[s].writes) {
      if (writer[b] != SIZE_MAX) {
        return refuse("double_write", fmt::format("steps {} and {} write '{}'", writer[b], s,
                                                  plan.buffers[b].name));
      }
      writer[b] = s;
    }
  }
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    for (const uint32_t b : plan.steps[s].reads) {
      if (writer[b] == SIZE_MAX || writer[b] < s) continue;
      return refuse(
          "read_before_write",
          fmt::format("step {} ({}) reads '{}', which step {} ({}) writes", s, group_name(s),
                      plan.buffers[b].name, writer[b], group_name(writer[b])));
    }
  }
  return {};
}

Status check_sizes_and_lifetimes(const ExecutionPlan& plan) {
  const int steps = std::max(1, static_cast<int>(plan.steps.size()));
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (buffer.bytes < 0) {
      return refuse("negative_size", fmt::format("'{}' has {} bytes", buffer.name, buffer.bytes));
    }
    if (buffer.first_step < 0 || buffer.first_step > buffer.last_step ||
        buffer.last_step >= steps) {
      return refuse("bad_lifetime",
                    fmt::format("'{}' lives from step {} to step {} of {}", buffer.name,
                                buffer.first_step, buffer.last_step, steps));
    }
  }
  return {};
}

Status check_live_when_used(const ExecutionPlan& plan) {
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    std::vector<uint32_t> used = plan.steps[s].reads;
    used.insert(used.end(), plan.steps[s].writes.begin(), plan.steps[s].writes.end());
    if (plan.steps[s].workspace != ir::kNoId) used.push_back(plan.steps[s].workspace);
    for (const uint32_t b : used) {
      const PlannedBuffer& buffer = plan.buffers[b];
      const int now = static_cast<int>(s);
      if (now >= buffer.first_step && now <= buffer.last_step) continue;
      return refuse("not_live",
                    fmt::format("step {} uses '{}', which lives from step {} to step {}", s,
                                buffer.name, buffer.first_step, buffer.last_step));
    }
  }
  return {};
}

enum class Role : uint8_t { kGiven, kWritten, kWorkspace };

bool suits(BufferClass cls, Role role) {
  switch (cls) {
    case BufferClass::kHostInput:
    case BufferClass::kParameter:
      return role == Role::kGiven;
    case BufferClass::kTemporary:
    case BufferClass::kOutput:
      return role == Role::kWritten;
    case BufferClass::kWorkspace:
      return role == Role::kWorkspace;
  }
  return false;
}

Status check_classes(const ExecutionPlan& plan) {
  std::vector<Role> roles(plan.buffers.size(), Role::kGiven);
  for (const PlannedStep& step : plan.steps) {
    for (const uint32_t b : step.writes) roles[b] = Role::kWritten;
    if (step.workspace != ir::kNoId) roles[step.workspace] = Role::kWorkspace;
  }
  constexpr std::string_view kRoleNames[] = {"only read", "written by a step", "a workspace"};
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const PlannedBuffer& buffer = plan.buffers[b];
    const std::string_view cls = buffer_class_name(buffer.cls);
    if (!suits(buffer.cls, roles[b])) {
      return refuse("wrong_class", fmt::format("'{}' has class {} but is {}", buffer.name, cls,
                                               kRoleNames[static_cast<size_t>(roles[b])]));
    }
    if (in_arena(buffer) != (buffer.offset >= 0)) {
      return refuse("wrong_class", fmt::format("'{}' has class {} but {} place in the arena",
                                               buffer.name, cls, in_arena(buffer) ? "no" : "a"));
    }
  }
  return {};
}

// Inputs, outputs and parameters are numbered from 0 without gaps.
Status check_io_indices(const ExecutionPlan& plan) {
  std::array<std::vector<bool>, kBufferClasses> seen;
  for (const PlannedBuffer& buffer : plan.buffers) {
    seen[static_cast<size_t>(buffer.cls)].push_back(false);
  }
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (in_arena(buffer)) continue;
    std::vector<bool>& taken = seen[static_cast<size_t>(buffer.cls)];
    if (buffer.io_index >= taken.size() || taken[buffer.io_index]) {
      return refuse("wrong_index",
                    fmt::format("'{}' cannot be {} {} of {}", buffer.name,
                                buffer_class_name(buffer.cls), buffer.io_index, taken.size()));
    }
    taken[buffer.io_index] = true;
  }
  return {};
}

Status check_places(const ExecutionPlan& plan) {
  const int64_t arena = plan.metrics.arena_bytes;
  std::vector<const PlannedBuffer*> placed;
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (!in_arena(buffer)) continue;
    if (buffer.offset % kAlignment != 0) {
      return refuse("misaligned", fmt::format("'{}' at offset {} is not {}-byte aligned",
                                              buffer.name, buffer.offset, kAlignment));
    }
    const int64_t size = arena_size(buffer);
    if (size > arena || buffer.offset > arena - size) {
      return refuse("out_of_arena",
                    fmt::format("'{}' takes {} bytes at offset {} of an arena of {}", buffer.name,
                                size, buffer.offset, arena));
    }
    placed.push_back(&buffer);
  }
  std::stable_sort(
      placed.begin(), placed.end(),
      [](const PlannedBuffer* a, const PlannedBuffer* b) { return a->offset < b->offset; });
  for (size_t i = 0; i < placed.size(); ++i) {
    const PlannedBuffer& a = *placed[i];
    for (size_t j = i + 1; j < placed.size(); ++j) {
      const PlannedBuffer& b = *placed[j];
      if (b.offset >= a.offset + arena_size(a)) break;
      if (!live_together(a, b)) continue;
      return refuse("overlap",
                    fmt::format("'{}' and '{}' share memory at offset {} at step {}", a.name,
                                b.name, b.offset, std::max(a.first_step, b.first_step)));
    }
  }
  return {};
}

Status check_metric(std::string_view name, int64_t expected, int64_t found) {
  if (expected == found) return {};
  return refuse("wrong_metrics", fmt::format("{}: expected {}, found {}", name, expected, found));
}

// How many threads the plan is for is not in it, so the scratch part of the peak is checked as a
// positive multiple of one thread's.
Status check_peak(int64_t without_scratch, const PlanMetrics& found) {
  if (found.scratch_bytes < 0 || found.scratch_bytes % kAlignment != 0) {
    return refuse("wrong_metrics", fmt::format("scratch_bytes: expected a multiple of {}, found {}",
                                               kAlignment, found.scratch_bytes));
  }
  const int64_t scratch = found.peak_bytes - without_scratch;
  if (found.scratch_bytes == 0)
    return check_metric("peak_bytes", without_scratch, found.peak_bytes);
  if (scratch < found.scratch_bytes || scratch % found.scratch_bytes != 0) {
    return refuse("wrong_metrics",
                  fmt::format("peak_bytes: expected {} and a multiple of {}, found {}",
                              without_scratch, found.scratch_bytes, found.peak_bytes));
  }
  return {};
}

Status check_metrics(const ExecutionPlan& plan) {
  const PlanMetrics expected = measure(plan);
  const PlanMetrics& found = plan.metrics;
  for (size_t c = 0; c < kBufferClasses; ++c) {
    const std::string name =
        fmt::format("bytes of class {}", buffer_class_name(static_cast<BufferClass>(c)));
    PYC_TRY(check_metric(name, expected.class_bytes[c], found.class_bytes[c]));
  }
  struct Field {
    std::string_view name;
    int64_t PlanMetrics::*value;
  };
  constexpr Field kFields[] = {
      {"arena_bytes", &PlanMetrics::arena_bytes},
      {"requested_bytes", &PlanMetrics::requested_bytes},
      {"lower_bound_bytes", &PlanMetrics::lower_bound_bytes},
      {"largest_bytes", &PlanMetrics::largest_bytes},
      {"buffers", &PlanMetrics::buffers},
      {"reused", &PlanMetrics::reused},
      {"overlap_pairs", &PlanMetrics::overlap_pairs},
  };
  for (const Field& field : kFields) {
    PYC_TRY(check_metric(field.name, expected.*field.value, found.*field.value));
  }
  PYC_TRY(check_metric("peak_step", expected.peak_step, found.peak_step));
  return check_peak(expected.peak_bytes, found);
}

}  // namespace

Status verify_schedule(const lower::LoweredGraph& lowered, const ExecutionPlan& plan) {
  PYC_TRY(check_buffer_ids(plan));
  PYC_TRY(check_groups_run_once(lowered, plan));
  PYC_ASSIGN(const std::vector<uint32_t> buffer_of, map_values(lowered, plan));
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    PYC_TRY(check_operands(lowered, plan, s, buffer_of));
  }
  PYC_TRY(check_outputs(lowered, plan, buffer_of));
  return check_order(lowered, plan);
}

Status verify_allocation(const ExecutionPlan& plan) {
  PYC_TRY(check_buffer_ids(plan));
  PYC_TRY(check_sizes_and_lifetimes(plan));
  PYC_TRY(check_classes(plan));
  PYC_TRY(check_io_indices(plan));
  PYC_TRY(check_live_when_used(plan));
  PYC_TRY(check_places(plan));
  return check_metrics(plan);
}

}  // namespace pyc::plan
