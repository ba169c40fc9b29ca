#include "plan/happens_before.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan/refusal.h"

namespace pyc::plan {
namespace {

// Queues are numbered without gaps; more than this is no plan of ours.
constexpr uint32_t kMostQueues = 64;

}  // namespace

Result<HappensBefore> HappensBefore::create(const ExecutionPlan& plan) {
  HappensBefore order;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const uint32_t queue = plan.steps[s].queue;
    if (queue >= kMostQueues) {
      return refusal("unknown_queue", fmt::format("step {} is on queue {}", s, queue));
    }
    order.queues_ = std::max<size_t>(order.queues_, queue + 1);
  }
  std::vector<Clock> now(order.queues_, Clock(order.queues_, 0));  // per queue
  std::map<uint32_t, uint32_t> recorded;                           // event → step
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    Clock& clock = now[step.queue];
    ++clock[step.queue];
    if (step.kind == StepKind::kRecord) {
      const auto [it, is_new] = recorded.try_emplace(step.event, s);
      if (!is_new) {
        return refusal("double_record",
                       fmt::format("steps {} and {} record event {}", it->second, s, step.event));
      }
    }
    if (step.kind == StepKind::kWait) {
      const auto it = recorded.find(step.event);
      if (it == recorded.end()) {
        return refusal("unknown_event",
                       fmt::format("step {} waits for event {}, which no earlier step records", s,
                                   step.event));
      }
      const Clock& other = order.clocks_[it->second];
      for (size_t q = 0; q < clock.size(); ++q) clock[q] = std::max(clock[q], other[q]);
    }
    order.queue_.push_back(step.queue);
    order.position_.push_back(clock[step.queue]);
    order.clocks_.push_back(clock);
  }
  order.end_ = now[0];
  return order;
}

}  // namespace pyc::plan
