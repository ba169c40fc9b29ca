#pragma once

// Runs training steps: one compiled program through the same gateway as any model, and the state
// that goes from one step to the next.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/hash.h"
#include "driver/compile_options.h"
#include "runtime/model.h"
#include "train/step.h"

namespace pyc::train {

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
  // everything as it was. kRuntimeFailed: not finite (OnNan::kStop), with the number of the step.
  Result<StepResult> step(std::span<const runtime::TensorView> batch);

  // The loss of a batch with the parameters as they are; nothing changes.
  Result<double> evaluate(std::span<const runtime::TensorView> batch);

  // What `step` takes, in order.
  std::span<const runtime::IoSpec> batch() const;
  const std::vector<StateValue>& state() const { return step_.state; }
  std::span<const std::byte> bytes(size_t i) const;
  // kSizeMismatch when the size is not that of the state's type.
  Status set(size_t i, std::span<const std::byte> bytes);
  int64_t steps_done() const;
  // Of the parameters alone: their names, types and bits, in order.
  Digest weights_digest() const;
  // The model with the parameters as they are.
  Result<ir::Graph> trained() const;
  const runtime::Model& program() const { return *program_; }
  const StepSpec& spec() const { return spec_; }
  // Covers model, spec and numerics: checkpoints of equal ones go on with equal bits.
  const std::string& identity() const { return identity_; }

 private:
  Trainer(ir::Graph model, StepSpec spec, Step step)
      : model_(std::move(model)), spec_(std::move(spec)), step_(std::move(step)) {}
  Status make_state();
  size_t counter_index() const;
  Result<StepResult> run(std::span<const runtime::TensorView> batch);

  ir::Graph model_;
  StepSpec spec_;
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
