#pragma once

#include <cstdint>
#include <vector>

#include "plan/order.h"

namespace pyc::plan {

// The steps of a plan executed one after the other and taken back again, with the arena bytes that
// are live in between. Numbers of steps are indices into plan.steps.
class StepRun {
 public:
  StepRun(const ExecutionPlan& plan, const PairsOfSteps& pairs);

  // Whether the steps may be taken in another order: they are on one queue, and each arena instance
  // is written once.
  bool orderable() const { return orderable_; }
  size_t count() const { return growth_.size(); }
  bool complete() const { return trail_.size() == count(); }

  // The steps that can run now, ascending.
  const std::vector<uint32_t>& ready() const { return ready_; }
  const std::vector<uint32_t>& trail() const { return trail_; }
  int64_t live() const { return live_; }
  // Live bytes after the step less those before it. It never rises while other steps run.
  int64_t growth(uint32_t step) const { return growth_[step]; }
  // Arena bytes in use while the step runs. A step takes no less in any order than least().
  int64_t use(uint32_t step) const { return live_ + own_[step] - saved(step); }
  int64_t least(uint32_t step) const { return least_[step]; }

  void run(uint32_t step);
  // Takes steps back until `steps` are left.
  void back_to(size_t steps);

  // Which steps have run, not in which order.
  struct Key {
    uint64_t a = 0;
    uint64_t b = 0;
    auto operator<=>(const Key&) const = default;
  };
  const Key& key() const { return key_; }

 private:
  struct Operand {
    uint32_t instance;
    int64_t bytes;
  };
  void add_edges(const ExecutionPlan& plan);
  void add_bytes(const ExecutionPlan& plan);
  int64_t saved(uint32_t step) const;
  void flip(uint32_t step);

  bool orderable_ = true;
  PairsOfSteps pairs_;
  std::vector<std::vector<uint32_t>> next_;  // per step: the steps that have to follow it
  std::vector<uint32_t> missing_;            // per step: steps that have to run before it
  std::vector<std::vector<Operand>> reads_;  // per step: arena instances
  std::vector<int64_t> kept_;                // per step: bytes it writes for others
  std::vector<int64_t> own_;                 // per step: all bytes it writes, and its workspace
  std::vector<int64_t> least_;               // per step
  std::vector<int64_t> growth_;              // per step
  std::vector<int64_t> bytes_;               // per instance, in the arena
  std::vector<uint32_t> unread_;             // per instance: readers that have not run
  std::vector<uint32_t> unread_ids_;         // per instance: their numbers, joined by exclusive or
  std::vector<uint32_t> ready_;
  std::vector<uint32_t> trail_;
  int64_t live_ = 0;
  Key key_;
};

}  // namespace pyc::plan
