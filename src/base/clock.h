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

// What the processor counts at a fixed rate. A few nanoseconds where now_ns() takes a few tens,
// since it neither converts nor waits for what is under way: a moment may be that much too early.
// TickScale makes times of it.
inline uint64_t ticks() {
#if defined(__aarch64__)
  uint64_t count = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#elif defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<uint64_t>(now_ns());
#endif
}

// One moment by both clocks.
struct TickMoment {
  uint64_t count = 0;
  int64_t ns = 0;
};

inline TickMoment tick_moment() {
  constexpr int kTries = 5;  // of which the one counts that was disturbed least
  TickMoment best;
  uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = ticks();
    const int64_t ns = now_ns();
    const uint64_t took = ticks() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {before + took / 2, ns};
  }
  return best;
}

// Times of counts, by two moments around them.
class TickScale {
 public:
  TickScale(TickMoment first, TickMoment last) : first_(first) {
    const auto counts = static_cast<int64_t>(last.count - first.count);
    if (counts > 0) {
      ns_per_tick_ = static_cast<double>(last.ns - first.ns) / static_cast<double>(counts);
    }
  }
  int64_t ns(uint64_t count) const {
    const auto since = static_cast<int64_t>(count - first_.count);
    return first_.ns + static_cast<int64_t>(static_cast<double>(since) * ns_per_tick_);
  }
  // Of so many nanoseconds.
  uint64_t counts(double ns) const { return static_cast<uint64_t>(ns / ns_per_tick_); }

 private:
  TickMoment first_;
  double ns_per_tick_ = 1.0;
};

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
