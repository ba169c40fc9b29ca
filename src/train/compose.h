#pragma once

// What the graphs of this folder are written with. The first call that is refused makes all later
// ones do nothing; `status` then is that refusal.

#include "ops/support/compose.h"
#include "train/step.h"

namespace pyc::train {

using ir::ValueId;

inline const ir::Node kNoNode;

class StepComposer : public ops::Compose {
 public:
  explicit StepComposer(ir::GraphBuilder& builder) : Compose(builder, kNoNode) {}
  ValueId input(std::string name, ir::TensorType type) {
    return status_.ok() ? take(builder_.input(std::move(name), std::move(type))) : ir::kNoId;
  }
  // Of one element, shaped to take part in arithmetic with anything.
  ValueId mean(ValueId x) { return op("reduce_mean", {x}, {{"keepdims", false}}); }
  ValueId sum(ValueId x) { return op("reduce_sum", {x}, {{"keepdims", false}}); }
  const Status& status() const { return status_; }
};

// The loss of prediction and target; `target` is none where the loss takes none.
ValueId loss_of(StepComposer& c, Loss loss, ValueId prediction, ValueId target);
// The type of the target for a prediction; kInvalidArgument for one that does not fit the loss.
Result<ir::TensorType> target_type(Loss loss, const ir::TensorType& prediction);

// The rate of the step, f64 of one element, from the number of steps done (f64).
ValueId rate_of(StepComposer& c, const Schedule& schedule, ValueId done);
Status check(const Schedule& schedule);

// The values an optimizer keeps per parameter: none, "first", "first" and "second".
std::vector<std::string_view> kept_values(Rule rule);
// The new parameter and its new kept values. `rate` and `number` (1, 2, …) are f64.
std::vector<ValueId> update(StepComposer& c, const Optimizer& optimizer, ValueId parameter,
                            ValueId gradient, const std::vector<ValueId>& kept, ValueId rate,
                            ValueId number);
Status check(const Optimizer& optimizer);

}  // namespace pyc::train
