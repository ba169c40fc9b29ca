#pragma once

// What steps of optimizers share. Inputs: rate (a scalar), step number (an i64 scalar), x, its
// gradient, then the states of x; results: the new x and states. Arithmetic is in f32 or f64.

#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {

Types infer_optimizer(const InferArgs& args);

struct OptimizerInputs {
  ValueId rate;
  ValueId later;  // whether the step number is above 0
  ValueId x;
  ValueId g;  // the gradient plus norm_coefficient * x
};
OptimizerInputs optimizer_inputs(Compose& c);

// The results as x is typed.
Result<std::vector<ValueId>> optimizer_outputs(Compose& c, std::vector<ValueId> results);

}  // namespace pyc::ops
