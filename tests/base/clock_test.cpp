#include "base/clock.h"

#include <gtest/gtest.h>

namespace pyc {
namespace {

struct FakeClock final : Clock {
  int64_t time = 0;
  int64_t now_ns() override { return time; }
};

template <class Work>
int64_t duration_ns(Clock& clock, Work work) {
  const int64_t start = clock.now_ns();
  work();
  return clock.now_ns() - start;
}

TEST(Clock, NeverGoesBack) {
  MonotonicClock clock;
  int64_t last = clock.now_ns();
  for (int i = 0; i < 10'000; ++i) {
    const int64_t now = clock.now_ns();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Clock, AdvancesWithRealTime) {
  const int64_t start = now_ns();
  while (now_ns() - start < 1'000'000) {
  }
  MonotonicClock clock;
  EXPECT_GE(clock.now_ns() - start, 1'000'000);
}

TEST(Clock, AnInjectedClockDecidesWhatIsMeasured) {
  FakeClock clock;
  EXPECT_EQ(duration_ns(clock, [&] { clock.time += 1234; }), 1234);
  EXPECT_EQ(duration_ns(clock, [] {}), 0);
}

}  // namespace
}  // namespace pyc
