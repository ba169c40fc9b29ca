#include "runtime/lanes.h"

#include <utility>

namespace pyc::runtime {

Result<PooledLane*> LanePool::acquire(int64_t& allocations) {
  if (PooledLane* spare = spare_.exchange(nullptr, std::memory_order_acq_rel)) return spare;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      PooledLane* lane = free_.back();
      free_.pop_back();
      return lane;
    }
  }
  auto made = std::make_unique<PooledLane>();
  PYC_ASSIGN(made->lane, engine_.make_lane(threads_, states_.memory()));
  allocations += made->lane->blocks();
  PooledLane* lane = made.get();
  const std::lock_guard lock(mutex_);
  free_.reserve(all_.size() + 1);
  all_.push_back(std::move(made));
  return lane;
}

void LanePool::release(PooledLane* lane) {
  PooledLane* none = nullptr;
  if (spare_.compare_exchange_strong(none, lane, std::memory_order_acq_rel)) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(lane);
}

int64_t LanePool::made() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(all_.size());
}

}  // namespace pyc::runtime
