#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "driver/compile_options.h"
#include "ir/graph.h"
#include "lower/types.h"
#include "plan/types.h"

namespace pyc::driver {

// What every stage up to the plan made of a graph, for those that show it.
struct Stages {
  ir::VerifiedGraph given;
  ir::VerifiedGraph canonical;
  lower::LoweredGraph lowered;
  std::vector<std::string> kernels;  // the candidate chosen for each group
  plan::ExecutionPlan plan;
};

// The stages of a compile with these options; no code is made. Refuses as compile_program does.
Result<Stages> stages(ir::VerifiedGraph given, const CompileOptions& options);

}  // namespace pyc::driver
