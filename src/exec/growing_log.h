#pragma once

// A decision log that grows while models run. Entries stay where they are.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

#include "base/decision.h"

namespace pyc::exec {

class GrowingLog {
 public:
  // Later entries are dropped.
  static constexpr size_t kMost = size_t{1} << 16;

  void add(Decision decision) {
    const std::scoped_lock lock(mutex_);
    if (entries_.size() < kMost) entries_.push_back(std::move(decision));
  }
  void add(const DecisionLog& decisions) {
    const std::scoped_lock lock(mutex_);
    const size_t room = kMost - entries_.size();
    const auto end =
        decisions.begin() + static_cast<std::ptrdiff_t>(std::min(room, decisions.size()));
    entries_.insert(entries_.end(), decisions.begin(), end);
  }
  size_t size() const {
    const std::scoped_lock lock(mutex_);
    return entries_.size();
  }
  // Good as long as the log lives.
  const Decision& at(size_t i) const {
    const std::scoped_lock lock(mutex_);
    return entries_.at(i);
  }
  DecisionLog copy() const {
    const std::scoped_lock lock(mutex_);
    return {entries_.begin(), entries_.end()};
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Decision> entries_;
};

}  // namespace pyc::exec
