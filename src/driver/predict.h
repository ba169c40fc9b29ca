#pragma once

#include "base/status.h"
#include "driver/compile_options.h"
#include "ir/graph.h"

namespace pyc::driver {

// What a program would take, known before there is code.
struct Prediction {
  int64_t peak_bytes = 0;  // exact
  int64_t arena_bytes = 0;
  int64_t steps = 0;             // of a run, each a group or a copy
  int64_t recomputed_steps = 0;  // of those
  double run_ns = -1;            // predicted_ns (contract.h)
  int64_t copied_bytes = 0;      // in a run
};

// Plans the graph and makes no code. Refuses as compile_program does, but for what making code
// refuses. `smallest`: for the smallest memory budget that works instead of the options' own.
Result<Prediction> predict(ir::VerifiedGraph given, CompileOptions options, bool smallest = false);

}  // namespace pyc::driver
