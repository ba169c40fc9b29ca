#pragma once

#include <vector>

#include "base/status.h"
#include "plan/types.h"

namespace pyc::plan {

// Which step is known to be over when another one begins: by the order of their queue, or through
// Records and Waits. The order of the list is one that can be executed.
class HappensBefore {
 public:
  // Refuses a Wait for an event that no earlier step records and an event recorded twice.
  static Result<HappensBefore> create(const ExecutionPlan& plan);

  bool operator()(uint32_t earlier, uint32_t later) const {
    return knows(clocks_[later], earlier) && earlier != later;
  }
  // Whether the step is over when queue 0, and so the run, ends.
  bool before_end(uint32_t step) const { return queues_ <= 1 || knows(end_, step); }
  bool one_queue() const { return queues_ <= 1; }

 private:
  // Per queue: how many of its steps are over, the step itself included.
  using Clock = std::vector<uint32_t>;
  bool knows(const Clock& clock, uint32_t step) const {
    return clock[queue_[step]] >= position_[step];
  }

  size_t queues_ = 1;
  std::vector<uint32_t> queue_;     // per step
  std::vector<uint32_t> position_;  // per step: its number on its queue, from 1 on
  std::vector<Clock> clocks_;       // per step
  Clock end_;
};

}  // namespace pyc::plan
