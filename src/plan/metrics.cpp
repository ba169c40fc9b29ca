#include "plan/metrics.h"

#include <algorithm>
#include <vector>

#include "plan/liveness.h"

namespace pyc::plan {
namespace {

std::vector<const PlannedBuffer*> arena_buffers(const ExecutionPlan& plan) {
  std::vector<const PlannedBuffer*> arena;
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (in_arena(buffer)) arena.push_back(&buffer);
  }
  return arena;
}

bool has_memory_of(const PlannedBuffer& later, const PlannedBuffer& earlier) {
  return earlier.last_step < later.first_step &&
         later.offset < earlier.offset + arena_size(earlier) &&
         earlier.offset < later.offset + arena_size(later);
}

}  // namespace

LivePeak live_peak(const ExecutionPlan& plan) {
  std::vector<int64_t> change(plan.steps.size() + 2, 0);  // a plan without steps has step 0 too
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (!in_arena(buffer)) continue;
    change[static_cast<size_t>(buffer.first_step)] += arena_size(buffer);
    change[static_cast<size_t>(buffer.last_step) + 1] -= arena_size(buffer);
  }
  LivePeak peak;
  int64_t live = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    live += change[s];
    if (live > peak.bytes) peak = {live, static_cast<int>(s)};
  }
  return peak;
}

PlanMetrics measure(const ExecutionPlan& plan) {
  PlanMetrics metrics;
  for (const PlannedBuffer& buffer : plan.buffers) {
    metrics.class_bytes[static_cast<size_t>(buffer.cls)] += buffer.bytes;
  }
  const std::vector<const PlannedBuffer*> arena = arena_buffers(plan);
  for (size_t i = 0; i < arena.size(); ++i) {
    const PlannedBuffer& buffer = *arena[i];
    metrics.arena_bytes = std::max(metrics.arena_bytes, buffer.offset + arena_size(buffer));
    metrics.requested_bytes += arena_size(buffer);
    metrics.largest_bytes = std::max(metrics.largest_bytes, buffer.bytes);
    ++metrics.buffers;
    bool reused = false;
    for (size_t j = 0; j < arena.size(); ++j) {
      if (j < i && live_together(buffer, *arena[j])) ++metrics.overlap_pairs;
      reused = reused || has_memory_of(buffer, *arena[j]);
    }
    if (reused) ++metrics.reused;
  }
  const LivePeak peak = live_peak(plan);
  metrics.lower_bound_bytes = peak.bytes;
  metrics.peak_step = peak.step;
  metrics.peak_bytes = metrics.arena_bytes;
  for (const BufferClass cls :
       {BufferClass::kHostInput, BufferClass::kParameter, BufferClass::kOutput}) {
    metrics.peak_bytes += metrics.class_bytes[static_cast<size_t>(cls)];
  }
  return metrics;
}

}  // namespace pyc::plan
