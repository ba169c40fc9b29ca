#include "plan/states.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plan/in_place.h"

namespace pyc::plan {
namespace {

using GroupNeeds = std::span<const lower::KernelNeeds>;

bool names(const std::vector<uint32_t>& list, uint32_t instance) {
  return std::find(list.begin(), list.end(), instance) != list.end();
}

// A state's two instances, the steps that read the one and the step that writes the other.
struct StateUse {
  uint32_t before = ir::kNoId;
  uint32_t after = ir::kNoId;
  std::vector<uint32_t> readers = {};
  uint32_t writer = 0;
};

StateUse use_of(const lower::LoweredGraph& lowered, const ExecutionPlan& plan, uint32_t state) {
  StateUse use;
  const ir::ValueId input = lowered.graph->inputs[plan.states[state].input];
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    if (instance.cls != BufferClass::kState || instance.io_index != state) continue;
    (instance.value == input ? use.before : use.after) = i;
  }
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    if (names(plan.steps[s].reads, use.before)) use.readers.push_back(s);
    if (names(plan.steps[s].writes, use.after)) use.writer = s;
  }
  return use;
}

// Whether the writing step may have both in one memory.
bool allows_pair(const lower::LoweredGraph& lowered, GroupNeeds needs, const ExecutionPlan& plan,
                 const StateUse& use) {
  const uint32_t g = plan.steps[use.writer].group;
  const lower::Group& group = lowered.groups[g];
  return std::any_of(
      needs[g].in_place.begin(), needs[g].in_place.end(), [&](const loop::InPlacePair& buffers) {
        return cover_alike(group, buffers) &&
               group.buffer_values[buffers.read] == plan.instances[use.before].value &&
               group.buffer_values[buffers.written] == plan.instances[use.after].value;
      });
}

// Why the output cannot be written over the input; "" when it can.
std::string why_copied(const lower::LoweredGraph& lowered, GroupNeeds needs,
                       const ExecutionPlan& plan, const StateUse& use) {
  if (use.readers.empty()) return "";
  if (use.readers.back() > use.writer) return "read_later";
  if (use.readers.back() < use.writer) return "";
  return allows_pair(lowered, needs, plan, use) ? "" : "kernel_reads_what_it_overwrote";
}

int64_t bytes_to_copy(const lower::LoweredGraph& lowered, GroupNeeds needs,
                      const ExecutionPlan& plan) {
  int64_t sum = 0;
  for (uint32_t state = 0; state < plan.states.size(); ++state) {
    const StateUse use = use_of(lowered, plan, state);
    if (!why_copied(lowered, needs, plan, use).empty()) sum += plan.instances[use.after].bytes;
  }
  return sum;
}

// Per step: whether it is the writer or needs something that a needing step writes.
std::vector<bool> needing(const ExecutionPlan& plan, uint32_t writer) {
  std::vector<bool> fresh(plan.instances.size(), false);
  std::vector<bool> needs(plan.steps.size(), false);
  for (size_t s = writer; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    needs[s] = s == writer || std::any_of(step.reads.begin(), step.reads.end(),
                                          [&](uint32_t i) { return fresh[i]; });
    if (!needs[s]) continue;
    for (const uint32_t i : step.writes) fresh[i] = true;
  }
  return needs;
}

// The steps from the writer to the last reader, those that do not need what it writes first.
void put_writer_last(ExecutionPlan& plan, const StateUse& use) {
  const std::vector<bool> late = needing(plan, use.writer);
  std::vector<Step> ordered;
  for (const bool wanted : {false, true}) {
    for (size_t s = use.writer; s <= use.readers.back(); ++s) {
      if (late[s] == wanted) ordered.push_back(plan.steps[s]);
    }
  }
  std::move(ordered.begin(), ordered.end(), plan.steps.begin() + use.writer);
}

void log_state(ExecutionPlan& plan, const StateUse& use, std::string_view chosen,
               std::string_view reason) {
  const Instance& before = plan.instances[use.before];
  plan.decisions.push_back(
      {"state:" + before.name,
       std::string(chosen),
       std::string(reason),
       fmt::format("{} bytes, written as {}", before.bytes, plan.instances[use.after].name),
       {}});
}

// The output as a temporary, and a step that copies it into the state.
void copy_home(ExecutionPlan& plan, const StateUse& use) {
  const auto home = static_cast<uint32_t>(plan.instances.size());
  plan.instances.push_back(plan.instances[use.after]);
  Instance& written = plan.instances[use.after];
  written.cls = BufferClass::kTemporary;
  written.io_index = 0;
  Step step;
  step.kind = StepKind::kCopy;
  step.reads = {use.after};
  step.writes = {home};
  plan.steps.push_back(std::move(step));
}

}  // namespace

void order_for_states(const lower::LoweredGraph& lowered, GroupNeeds needs, ExecutionPlan& plan) {
  for (uint32_t state = 0; state < plan.states.size(); ++state) {
    const StateUse use = use_of(lowered, plan, state);
    if (why_copied(lowered, needs, plan, use) != "read_later") continue;
    ExecutionPlan moved = plan;
    put_writer_last(moved, use);
    // A reader that needs the new value stays behind, and another state may have lost.
    if (bytes_to_copy(lowered, needs, moved) < bytes_to_copy(lowered, needs, plan)) {
      plan = std::move(moved);
    }
  }
}

int64_t place_states(const lower::LoweredGraph& lowered, GroupNeeds needs, ExecutionPlan& plan,
                     bool share) {
  int64_t copied = 0;
  std::vector<StateUse> away;
  for (uint32_t state = 0; state < plan.states.size(); ++state) {
    const StateUse use = use_of(lowered, plan, state);
    const std::string reason =
        !share && !use.readers.empty() ? "reuse_off" : why_copied(lowered, needs, plan, use);
    if (!reason.empty()) {
      log_state(plan, use, "copied", reason);
      copied += plan.instances[use.before].bytes;
      away.push_back(use);
      continue;
    }
    const bool reads = !use.readers.empty() && use.readers.back() == use.writer;
    log_state(plan, use, "in_place", reads ? "kernel_allows_it" : "read_before");
    if (reads) plan.steps[use.writer].in_place.push_back({use.before, use.after});
  }
  for (const StateUse& use : away) copy_home(plan, use);
  return copied;
}

}  // namespace pyc::plan
