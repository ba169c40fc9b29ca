#pragma once

// The pool that runs take their lanes from.

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/staging.h"
#include "runtime/states.h"

namespace pyc::runtime {

struct PooledLane {
  std::unique_ptr<Lane> lane;
  Staging staging;            // of the run that has it
  TracePace* pace = nullptr;  // the trace's, from the first run on that is traced
};

class LanePool {
 public:
  // All outlive it.
  LanePool(const Engine& engine, ThreadPool& threads, const States& states)
      : engine_(engine), threads_(threads), states_(states) {}

  // A lane that no other run has. `allocations` grows by what had to be allocated for it: 0 unless
  // more runs overlap than ever before.
  Result<PooledLane*> acquire(int64_t& allocations);
  void release(PooledLane* lane);

  // Lanes made so far.
  int64_t made() const;

 private:
  const Engine& engine_;
  ThreadPool& threads_;
  const States& states_;
  // One free lane that is taken and given back without the lock: all that a model needs whose runs
  // do not overlap.
  std::atomic<PooledLane*> spare_{nullptr};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<PooledLane>> all_;
  std::vector<PooledLane*> free_;  // has room for all of them, so that release never allocates
};

}  // namespace pyc::runtime
