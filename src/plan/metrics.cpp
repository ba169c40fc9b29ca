#include "plan/metrics.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
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

std::vector<int64_t> bytes_along(const std::vector<Living>& arena, size_t steps) {
  std::vector<int64_t> live(steps + 2, 0);  // a plan without steps has step 0 too
  for (const Living& l : arena) {
    live[static_cast<size_t>(l.life.first) + (l.in_place ? 1 : 0)] += arena_size(*l.instance);
    live[static_cast<size_t>(l.life.last) + 1] -= arena_size(*l.instance);
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.resize(steps);
  return live;
}

LivePeak peak_of(const std::vector<Living>& arena, size_t steps) {
  LivePeak peak;
  const std::vector<int64_t> live = bytes_along(arena, steps);
  for (size_t s = 0; s < steps; ++s) {
    if (live[s] > peak.bytes) peak = {live[s], static_cast<int>(s)};
  }
  return peak;
}

// Pairs that live at one step together: all, less those of which one is over before the other.
int64_t pairs_together(const std::vector<Living>& arena) {
  std::vector<int> ends;
  ends.reserve(arena.size());
  for (const Living& l : arena) ends.push_back(l.life.last);
  std::sort(ends.begin(), ends.end());
  const auto count = static_cast<int64_t>(arena.size());
  int64_t pairs = count * (count - 1) / 2;
  for (const Living& l : arena) {
    pairs -= std::lower_bound(ends.begin(), ends.end(), l.life.first) - ends.begin();
  }
  return pairs;
}

// Who has which bytes of an arena, from each offset to the next.
class Owners {
 public:
  explicit Owners(const ExecutionPlan& plan) : plan_(plan) {}

  // The instance takes its memory; returns who had some of it and was over, the last of them.
  uint32_t take(uint32_t i) {
    const Instance& instance = plan_.instances[i];
    const int64_t end = instance.offset + arena_size(instance);
    split(instance.offset);
    split(end);
    uint32_t previous = ir::kNoId;
    const auto first = owner_from_.find(instance.offset);
    const auto last = owner_from_.find(end);
    for (auto at = first; at != last; ++at) {
      const uint32_t other = at->second;
      if (other == ir::kNoId || other == i) continue;
      if (plan_.instances[other].uses.back() >= instance.uses.front()) continue;
      if (previous == ir::kNoId || is_later(other, previous)) previous = other;
    }
    owner_from_.erase(first, last);
    owner_from_[instance.offset] = i;
    return previous;
  }

 private:
  bool is_later(uint32_t a, uint32_t b) const {
    const uint32_t last_a = plan_.instances[a].uses.back();
    const uint32_t last_b = plan_.instances[b].uses.back();
    return last_a != last_b ? last_a > last_b : a < b;
  }
  void split(int64_t offset) {
    const auto above = owner_from_.upper_bound(offset);
    const uint32_t owner = above == owner_from_.begin() ? ir::kNoId : std::prev(above)->second;
    owner_from_.try_emplace(offset, owner);
  }

  const ExecutionPlan& plan_;
  std::map<int64_t, uint32_t> owner_from_;
};

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

std::vector<int64_t> live_bytes(const ExecutionPlan& plan, uint32_t place) {
  return bytes_along(arena_instances(plan, place), plan.steps.size());
}

std::vector<uint32_t> previous_owners(const ExecutionPlan& plan, uint32_t place) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    if (instance.place == place && in_arena(instance) && !instance.uses.empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return plan.instances[a].uses.front() < plan.instances[b].uses.front();
  });
  std::vector<uint32_t> previous(plan.instances.size(), ir::kNoId);
  Owners owners(plan);
  for (const uint32_t i : order) previous[i] = owners.take(i);
  return previous;
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
  const std::vector<uint32_t> previous = previous_owners(plan, place);
  for (const Living& living : arena) {
    const Instance& instance = *living.instance;
    metrics.arena_bytes = std::max(metrics.arena_bytes, instance.offset + arena_size(instance));
    metrics.requested_bytes += arena_size(instance);
    metrics.largest_bytes = std::max(metrics.largest_bytes, instance.bytes);
    ++metrics.buffers;
    const auto i = static_cast<size_t>(&instance - plan.instances.data());
    if (living.in_place || previous[i] != ir::kNoId) ++metrics.reused;
    if (living.in_place) ++metrics.in_place;
  }
  metrics.overlap_pairs = pairs_together(arena);
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
