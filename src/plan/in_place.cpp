#include "plan/in_place.h"

#include <algorithm>

#include "loop/kept.h"

namespace pyc::plan {
namespace {

bool saves_memory(const ExecutionPlan& plan, uint32_t s, uint32_t read, uint32_t written) {
  const Instance& r = plan.instances[read];
  const Instance& w = plan.instances[written];
  return r.cls == BufferClass::kTemporary && w.cls == BufferClass::kTemporary &&
         r.bytes == w.bytes && r.place == w.place && r.uses.back() == s && w.uses.front() == s;
}

void choose_for_step(const lower::Group& group, const lower::KernelNeeds& needs,
                     ExecutionPlan& plan, uint32_t s) {
  Step& step = plan.steps[s];
  for (const loop::InPlacePair& buffers : needs.in_place) {
    if (!cover_alike(group, buffers)) continue;
    const uint32_t read = find_instance(plan, step.reads, group.buffer_values[buffers.read]);
    const uint32_t written = find_instance(plan, step.writes, group.buffer_values[buffers.written]);
    if (read == ir::kNoId || written == ir::kNoId) continue;
    const bool taken = std::any_of(
        step.in_place.begin(), step.in_place.end(),
        [&](const loop::InPlacePair& p) { return p.read == read || p.written == written; });
    if (!taken && saves_memory(plan, s, read, written)) step.in_place.push_back({read, written});
  }
}

}  // namespace

uint32_t find_instance(const ExecutionPlan& plan, const std::vector<uint32_t>& ids,
                       ir::ValueId value) {
  const auto found = std::find_if(ids.begin(), ids.end(), [&](uint32_t i) {
    return plan.instances[i].value == value && plan.instances[i].packing.empty();
  });
  return found == ids.end() ? ir::kNoId : *found;
}

bool cover_alike(const lower::Group& group, const loop::InPlacePair& buffers) {
  const size_t count = group.buffer_values.size();
  if (buffers.read >= count || buffers.written >= count) return false;
  const auto once = [&](uint32_t buffer) {
    return std::count(group.buffer_values.begin(), group.buffer_values.end(),
                      group.buffer_values[buffer]) == 1;
  };
  return once(buffers.read) && once(buffers.written) && group.buffer_offset(buffers.read) == 0 &&
         group.buffer_offset(buffers.written) == 0;
}

void choose_in_place(const lower::LoweredGraph& lowered, std::span<const lower::KernelNeeds> needs,
                     ExecutionPlan& plan) {
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (step.kind != StepKind::kRun) continue;
    choose_for_step(lowered.groups[step.group], needs[step.group], plan, s);
  }
}

void state_in_place(const ExecutionPlan& plan, lower::LoweredGraph& lowered) {
  for (const Step& step : plan.steps) {
    for (const loop::InPlacePair& pair : step.in_place) {
      lower::Group& group = lowered.groups[step.group];
      const auto& values = group.buffer_values;
      const auto buffer_of = [&](uint32_t instance) {
        const auto at = std::find(values.begin(), values.end(), plan.instances[instance].value);
        return static_cast<uint32_t>(at - values.begin());
      };
      const loop::InPlacePair buffers{buffer_of(pair.read), buffer_of(pair.written)};
      group.set_in_place(buffers.written, buffers.read);
      // Generators of these name parts of the kernel.
      if (group.contraction || group.attention) continue;
      // A state holds what a run left there or what was set, with one NaN.
      const bool one_nan = plan.instances[pair.read].cls == BufferClass::kState;
      loop::drop_kept_stores(group.kernel, buffers, one_nan);
    }
  }
}

}  // namespace pyc::plan
