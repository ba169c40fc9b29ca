#include "tune/timing.h"

#include <algorithm>

#include "base/status.h"

namespace pyc::tune {

Timing timing_of(std::vector<int64_t> samples) {
  PYC_CHECK(!samples.empty(), "a measurement has samples");
  std::ranges::sort(samples);
  // The nearest rank: the least sample that so many percent do not exceed.
  const auto percentile = [&](size_t percent) {
    return samples[(samples.size() * percent + 99) / 100 - 1];
  };
  return {.best_ns = samples.front(), .p50_ns = percentile(50), .p95_ns = percentile(95)};
}

bool is_faster(const Timing& other, const Timing& now) {
  constexpr double kNoise = 0.99;
  return static_cast<double>(other.best_ns) < kNoise * static_cast<double>(now.best_ns) &&
         other.p50_ns < now.p50_ns;
}

}  // namespace pyc::tune
