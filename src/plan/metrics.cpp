#include "plan/metrics.h"

#include <algorithm>
#include <vector>

#include "plan/liveness.h"

namespace pyc::plan {
namespace {

struct Living {
  const Instance* instance;
  Lifetime life;
  bool in_place;  // of another one
};

std::vector<Living> arena_instances(const ExecutionPlan& plan, uint32_t place) {
  const std::vector<uint32_t> sources = in_place_sources(plan);
  std::vector<Living> arena;
  for (size_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    if (instance.place != place || !in_arena(instance)) continue;
    arena.push_back({&instance, lifetime(plan, instance), sources[i] != ir::kNoId});
  }
  return arena;
}

LivePeak peak_of(const std::vector<Living>& arena, size_t steps) {
  std::vector<int64_t> change(steps + 2, 0);  // a plan without steps has step 0 too
  for (const Living& l : arena) {
    change[static_cast<size_t>(l.life.first) + (l.in_place ? 1 : 0)] += arena_size(*l.instance);
    change[static_cast<size_t>(l.life.last) + 1] -= arena_size(*l.instance);
  }
  LivePeak peak;
  int64_t live = 0;
  for (size_t s = 0; s < steps; ++s) {
    live += change[s];
    if (live > peak.bytes) peak = {live, static_cast<int>(s)};
  }
  return peak;
}

bool has_memory_of(const Living& later, const Living& earlier) {
  return earlier.life.last < later.life.first && share_bytes(*later.instance, *earlier.instance);
}

// The model allocates each state once, in whole units.
int64_t state_bytes(const ExecutionPlan& plan, uint32_t place) {
  int64_t sum = 0;
  for (uint32_t s = 0; s < plan.states.size(); ++s) {
    const auto of_state =
        std::find_if(plan.instances.begin(), plan.instances.end(), [&](const Instance& instance) {
          return instance.cls == BufferClass::kState && instance.io_index == s;
        });
    if (of_state != plan.instances.end() && of_state->place == place) sum += arena_size(*of_state);
  }
  return sum;
}

}  // namespace

LivePeak live_peak(const ExecutionPlan& plan, uint32_t place) {
  return peak_of(arena_instances(plan, place), plan.steps.size());
}

PlanMetrics measure(const ExecutionPlan& plan, uint32_t place) {
  PlanMetrics metrics;
  for (const Instance& instance : plan.instances) {
    if (instance.place != place || instance.cls == BufferClass::kState) continue;
    metrics.class_bytes[static_cast<size_t>(instance.cls)] += instance.bytes;
  }
  metrics.class_bytes[static_cast<size_t>(BufferClass::kState)] = state_bytes(plan, place);
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::kCopy) continue;
    for (const uint32_t to : step.writes) {
      if (plan.instances[to].place == place) metrics.copied_bytes += plan.instances[to].bytes;
    }
  }
  const std::vector<Living> arena = arena_instances(plan, place);
  for (size_t i = 0; i < arena.size(); ++i) {
    const Instance& instance = *arena[i].instance;
    metrics.arena_bytes = std::max(metrics.arena_bytes, instance.offset + arena_size(instance));
    metrics.requested_bytes += arena_size(instance);
    metrics.largest_bytes = std::max(metrics.largest_bytes, instance.bytes);
    ++metrics.buffers;
    bool reused = arena[i].in_place;
    for (size_t j = 0; j < arena.size(); ++j) {
      if (j < i && live_together(arena[i].life, arena[j].life)) ++metrics.overlap_pairs;
      reused = reused || has_memory_of(arena[i], arena[j]);
    }
    if (reused) ++metrics.reused;
    if (arena[i].in_place) ++metrics.in_place;
  }
  const LivePeak peak = peak_of(arena, plan.steps.size());
  metrics.lower_bound_bytes = peak.bytes;
  metrics.peak_step = peak.step;
  metrics.peak_bytes = metrics.arena_bytes;
  for (const BufferClass cls : {BufferClass::kHostInput, BufferClass::kParameter,
                                BufferClass::kOutput, BufferClass::kState}) {
    metrics.peak_bytes += metrics.class_bytes[static_cast<size_t>(cls)];
  }
  return metrics;
}

}  // namespace pyc::plan
