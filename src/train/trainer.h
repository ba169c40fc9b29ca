#pragma once

// Runs training steps: one compiled program through the same gateway as any model, and the state
// that goes from one step to the next.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "driver/compile_options.h"
#include "runtime/model.h"
#include "train/step.h"

namespace pyc::train {

// What becomes of a step whose loss or norm of gradients is no finite number.
enum class OnNan : uint8_t {
  kStop,  // the step is refused, and the state stays as it was before it
  kSkip,  // parameters and optimizer stay, the step counts as done
};

struct StepResult {
  double loss = 0.0;
  double norm = 0.0;  // of all gradients
  bool skipped = false;
};

class Trainer {
 public:
  // `model` is a closed graph. Refusals of make_step and of the compile.
  static Result<std::unique_ptr<Trainer>> create(ir::Graph model, const StepSpec& spec,
                                                 const driver::CompileOptions& options);

  // One step over a batch: the model's inputs, then the target if the loss takes one. The state
  // has two instances, one is read while the other is written, so that a step that fails leaves
  // everything as it was. kRuntimeFailed: not finite (kStop), with the number of the step.
  Result<StepResult> step(std::span<const runtime::TensorView> batch, OnNan on_nan = OnNan::kStop);

  // The loss of a batch with the parameters as they are; nothing changes.
  Result<double> evaluate(std::span<const runtime::TensorView> batch);

  // What `step` takes, in order.
  std::span<const runtime::IoSpec> batch() const;
  const std::vector<StateValue>& state() const { return step_.state; }
  std::span<const std::byte> bytes(size_t i) const;
  // kSizeMismatch when the size is not that of the state's type.
  Status set(size_t i, std::span<const std::byte> bytes);
  int64_t steps_done() const;
  // The model with the parameters as they are.
  Result<ir::Graph> trained() const;
  const runtime::Model& program() const { return *program_; }
  // Covers model, spec and numerics: checkpoints of equal ones go on with equal bits.
  const std::string& identity() const { return identity_; }

 private:
  Trainer(ir::Graph model, Step step) : model_(std::move(model)), step_(std::move(step)) {}
  Status make_state();
  size_t counter_index() const;
  Result<StepResult> run(std::span<const runtime::TensorView> batch);

  ir::Graph model_;
  Step step_;
  std::string identity_;
  std::unique_ptr<runtime::Model> program_;
  std::vector<AlignedBuffer> now_;
  std::vector<AlignedBuffer> next_;
  std::vector<AlignedBuffer> results_;  // the loss and the norm
  std::vector<runtime::TensorView> inputs_;
  std::vector<runtime::TensorView> outputs_;
};

}  // namespace pyc::train
