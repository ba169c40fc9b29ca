#pragma once

// Measures the kernels of a graph on this machine, so that compiles choose by times in place of
// estimates. For each group the candidates of the group's own order compete whose estimates are
// within what the estimates are known to be wrong by. Each is checked against the reference
// interpreter and against the other results before it is timed. What was found is put into the
// store (driver/tuning.h) group by group: a tuner that is ended has lost one group at most, and the
// next one goes on where it was.

#include <cstdint>
#include <functional>
#include <string>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/status.h"
#include "driver/compile_options.h"
#include "driver/tuning.h"
#include "ir/graph.h"

namespace pyc::tune {

// A group that is done.
struct Step {
  int64_t done = 0;  // of `all`, this one included
  int64_t all = 0;
  bool known = false;  // the store had it
  std::string group;
  double flops = 0.0;
  const driver::TunedGroup* tuned = nullptr;
};

struct Request {
  int64_t budget_ms = 0;  // after so long no further group is begun; 0: no limit
  // Called after each group; false: no further one.
  std::function<bool(const Step&)> after_group = {};
  // For tests: what offers the candidates, and measures time.
  const backends::Backend* backend = nullptr;
  Clock* clock = nullptr;
};

struct Report {
  int64_t groups = 0;    // with more than one candidate, equal ones once
  int64_t measured = 0;  // of those: now
  int64_t known = 0;     // by the store
  int64_t changed = 0;   // of those that are done: another kernel than the estimates' is faster
  int64_t near = 0;      // the estimates' kernel takes at most 3 % more than the fastest
  int64_t wrong = 0;     // candidates whose results were not the reference's
  driver::MachineProbe probe = {};
  int64_t left() const { return groups - measured - known; }
};

// What the estimates' kernel may take more than the fastest to count as near.
inline constexpr double kNear = 1.03;

// kInvalidArgument without a folder (the option cache_dir or PYC_CACHE_DIR); kIoError when it
// cannot be written; refusals as of a compile.
Result<Report> tune(const ir::VerifiedGraph& given, driver::CompileOptions options,
                    const Request& request);

}  // namespace pyc::tune
