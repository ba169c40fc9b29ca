#pragma once

#include <cstdint>
#include <vector>

namespace pyc::tune {

// So many runs of each candidate, in turns: a machine that slows down does so for all of them.
inline constexpr int kRepeats = 11;

struct Timing {
  int64_t best_ns = 0;
  int64_t p50_ns = 0;
  int64_t p95_ns = 0;
};

// Requires at least one sample.
Timing timing_of(std::vector<int64_t> samples);

// Whether `other` is to take the place of `now`: both its fastest run, which others on the machine
// disturb least, and its median are ahead, by more than runs differ on a quiet machine.
bool is_faster(const Timing& other, const Timing& now);

}  // namespace pyc::tune
