#pragma once

// A drawn graph on several devices: every bit of every output must agree.

#include <string>
#include <vector>

#include "driver/compile.h"
#include "support/draw.h"

namespace pyc::test {

// The outputs of one run, in guarded memory, or the status of what refused it.
Result<std::vector<std::vector<std::byte>>> run_drawn(const DrawnGraph& drawn,
                                                      const driver::CompileOptions& options);

// One group per node on the reference: what everything else is compared with.
driver::CompileOptions plain_reference();
// The CPU at a vector width (0: its own) with a number of threads.
driver::CompileOptions cpu_options(int lanes, int threads);

// "" when the CPU at each of `settings` gives the bits of the plain reference, else what differs.
std::string difference(const DrawnGraph& drawn,
                       const std::vector<driver::CompileOptions>& settings);
// The same with those of `plain`.
std::string difference(const DrawnGraph& drawn, const driver::CompileOptions& plain,
                       const std::vector<driver::CompileOptions>& settings);

}  // namespace pyc::test
