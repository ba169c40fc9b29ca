#pragma once

// What a run holds in values (base/dyn_value.h): bytes now, the most there were, and how many there
// may be. Content made while a meter is in use on a thread is counted from then on until the last
// value that shares it is gone, on whichever thread that is. Inputs of a run and constants of its
// model were there before and are not counted.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace pyc {

class ValueMeter {
 public:
  // `name` is what messages call the limit.
  ValueMeter(int64_t limit, std::string name) : limit_(limit), name_(std::move(name)) {}

  // What the run holds beside its values: `beside` bytes of its own and what `others` counts. All
  // together may be `budget` bytes. To be called before the meter is used.
  void share(std::shared_ptr<const std::atomic<int64_t>> others, int64_t beside, int64_t budget);

  // kBudgetExceeded, with what is asked, held and allowed, when `bytes` more are over the limit, or
  // `handed_out`, what an allocator takes for them, over the budget.
  Status check_room(int64_t bytes, int64_t handed_out) const;
  int64_t live() const { return live_.load(std::memory_order_relaxed); }
  // As allocators hand it out.
  int64_t live_handed_out() const { return handed_out_.load(std::memory_order_relaxed); }
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  // The most that values, as they were handed out, and what is held beside them were at a time.
  int64_t total_peak() const { return total_peak_.load(std::memory_order_relaxed); }
  // What the run holds by itself: its values, as they were handed out, and what is its own beside
  // them.
  int64_t own() const { return beside_ + live_handed_out(); }

 private:
  int64_t beside() const;  // everything but the values
  friend class Charge;
  void add(int64_t bytes, int64_t handed_out);

  const int64_t limit_;
  const std::string name_;
  std::atomic<int64_t> live_ = 0;
  std::atomic<int64_t> handed_out_ = 0;
  std::atomic<int64_t> peak_ = 0;
  std::atomic<int64_t> total_peak_ = 0;
  std::shared_ptr<const std::atomic<int64_t>> others_;
  int64_t beside_ = 0;
  int64_t budget_ = INT64_MAX;
};

// Makes a meter the one of this thread, or none, as long as it lives.
class MeterScope {
 public:
  explicit MeterScope(std::shared_ptr<ValueMeter> meter);
  ~MeterScope();
  MeterScope(const MeterScope&) = delete;
  MeterScope& operator=(const MeterScope&) = delete;

 private:
  std::shared_ptr<ValueMeter> before_;
};

// As the meter of this thread says; ok when there is none. To be asked before memory is.
Status check_room(int64_t bytes, int64_t handed_out);
inline Status check_room(int64_t bytes) { return check_room(bytes, bytes); }

// Bytes that the meter of this thread, if there is one, counts as long as this lives. It refuses
// nothing: whoever cannot ask before looks afterwards, with check_room(0).
class Charge {
 public:
  Charge(int64_t bytes, int64_t handed_out);
  ~Charge();
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  std::shared_ptr<ValueMeter> meter_;
  int64_t bytes_;
  int64_t handed_out_;
};

// Half of the memory this machine has, or that the process's control group may use.
int64_t default_value_limit();

}  // namespace pyc
