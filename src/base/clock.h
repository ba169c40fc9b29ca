#pragma once

#include <chrono>
#include <cstdint>

namespace pyc {

// Nanoseconds since some fixed moment: never goes back and ignores changes of the wall clock.
inline int64_t now_ns() {
  using std::chrono::duration_cast;
  using std::chrono::nanoseconds;
  return duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Where code that measures time gets it from, so that tests can hand in a clock of their own.
// now_ns() never goes back.
struct Clock {
  virtual ~Clock() = default;
  virtual int64_t now_ns() = 0;
};

// The system's clock. May be shared between threads.
struct MonotonicClock final : Clock {
  int64_t now_ns() override { return pyc::now_ns(); }
};

}  // namespace pyc
