#include "plan/schedule.h"

#include <algorithm>

#include "plan/liveness.h"

namespace pyc::plan {
namespace {

class GreedyScheduler {
 public:
  explicit GreedyScheduler(const ExecutionPlan& plan)
      : plan_(plan),
        readers_(plan.instances.size()),
        unread_(plan.instances.size(), 0),
        missing_(plan.steps.size(), 0) {
    std::vector<bool> written(plan.instances.size(), false);
    for (const Step& step : plan.steps) {
      for (const uint32_t b : step.writes) written[b] = true;
    }
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      for (const uint32_t b : plan.steps[s].reads) {
        readers_[b].push_back(s);
        ++unread_[b];
        if (written[b]) ++missing_[s];
      }
    }
  }

  std::vector<size_t> order() {
    std::vector<size_t> ready;
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      if (missing_[s] == 0) ready.push_back(s);
    }
    std::vector<size_t> order;
    while (!ready.empty()) {
      const auto next = std::min_element(ready.begin(), ready.end(), [this](size_t a, size_t b) {
        const int64_t growth_a = growth(a);
        const int64_t growth_b = growth(b);
        return growth_a != growth_b ? growth_a < growth_b : a < b;
      });
      const size_t step = *next;
      ready.erase(next);
      order.push_back(step);
      finish(step, ready);
    }
    return order;
  }

 private:
  // Arena bytes live after the step less those live before it.
  int64_t growth(size_t s) const {
    const Step& step = plan_.steps[s];
    int64_t bytes = 0;
    for (const uint32_t b : step.writes) {
      if (in_arena(plan_.instances[b]) && unread_[b] > 0) bytes += arena_size(plan_.instances[b]);
    }
    for (const uint32_t b : step.reads) {
      if (in_arena(plan_.instances[b]) && unread_[b] == 1) bytes -= arena_size(plan_.instances[b]);
    }
    return bytes;
  }

  void finish(size_t s, std::vector<size_t>& ready) {
    const Step& step = plan_.steps[s];
    for (const uint32_t b : step.reads) --unread_[b];
    for (const uint32_t b : step.writes) {
      for (const size_t reader : readers_[b]) {
        if (--missing_[reader] == 0) ready.push_back(reader);
      }
    }
  }

  const ExecutionPlan& plan_;
  std::vector<std::vector<size_t>> readers_;  // per instance: the steps that read it
  std::vector<int> unread_;                   // per instance: readers that have not run
  std::vector<int> missing_;                  // per step: operands that are not written yet
};

}  // namespace

std::vector<size_t> memory_aware_order(const ExecutionPlan& plan) {
  return GreedyScheduler(plan).order();
}

}  // namespace pyc::plan
