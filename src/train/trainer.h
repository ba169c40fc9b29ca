#pragma once

// Runs training steps: compiled programs through the same gateway as any model. Parameters, the
// optimizer's values and the number of steps done are the state of the step's program
// (runtime/states.h), which changes it where it lies; nothing of it is copied from step to step.

#include <functional>
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
  int64_t copied_bytes = 0;  // of the state, where a kernel could not write it in place
};

// A graph and the pairs of it that are state (the compile option).
struct StepGraph {
  ir::VerifiedGraph graph;
  driver::StatePairs states;
};

// Micro-batch i of a step, valid until the next call. It may be asked for again.
using MicroBatches = std::function<std::span<const runtime::TensorView>(int64_t i)>;

class Trainer {
 public:
  // `model` is a closed graph. Refusals of make_step and of the compile; kInvalidArgument for f16
  // products without a loss scale in strict, which takes nothing that is not said.
  static Result<std::unique_ptr<Trainer>> create(ir::Graph model, const StepSpec& spec,
                                                 const driver::CompileOptions& options);

  // One step over a batch: the model's inputs, then the target if the loss takes one; of a step in
  // micro-batches these of the first, then of the second, …. A step that fails leaves everything as
  // it was. kRuntimeFailed: not finite (OnNan::kStop), with the number of the step and the node
  // that made the first value that is not.
  Result<StepResult> step(std::span<const runtime::TensorView> batch);
  Result<StepResult> step(const MicroBatches& batches);

  // The loss of a micro-batch with the parameters as they are; nothing changes. The first call
  // compiles the forward graph.
  Result<double> evaluate(std::span<const runtime::TensorView> batch);

  // What a micro-batch is, in order.
  std::span<const runtime::IoSpec> batch() const { return batch_; }
  const std::vector<StateValue>& state() const { return step_.state; }
  std::span<const std::byte> bytes(size_t i) const;
  // kSizeMismatch when the size is not that of the state's type.
  Status set(size_t i, std::span<const std::byte> bytes);
  int64_t steps_done() const;
  // Of the parameters alone: their names, types and bits, in order.
  Digest weights_digest() const;
  // The model with the parameters as they are.
  Result<ir::Graph> trained() const;
  // What is compiled, for those who want to look at it: the step, then the micro-batch if there are
  // several.
  std::vector<StepGraph> graphs() const;
  const runtime::Model& program() const { return *program_; }
  // With what was chosen where nothing was said.
  const StepSpec& spec() const { return spec_; }
  const driver::CompileOptions& options() const { return options_; }
  // Covers model and spec; with equal precision of products too, checkpoints of equal ones go on
  // with equal bits.
  const std::string& identity() const { return identity_; }

 private:
  Trainer(ir::Graph model, StepSpec spec, Step step, driver::CompileOptions options)
      : model_(std::move(model)),
        spec_(std::move(spec)),
        step_(std::move(step)),
        options_(std::move(options)) {}
  Status compile();
  Status make_state();
  size_t counter_index() const;
  runtime::TensorView state_view(size_t i) const;
  // The state with this role, in order.
  std::vector<runtime::TensorView> views_of(StateValue::Role role) const;
  // Inputs of `part` but the sums, and of `graph` but the state.
  // `number`: how many micro-batches of all steps came before.
  std::vector<runtime::TensorView> part_inputs(std::span<const runtime::TensorView> batch,
                                               int64_t& number) const;
  std::vector<runtime::TensorView> sum_views() const;
  Status check_batch(std::span<const runtime::TensorView> batch) const;
  Status add_parts(const MicroBatches& batches, StepResult& result);
  Result<StepResult> run(const MicroBatches& batches);
  // Which node made the first value that is not finite; "" when that cannot be told.
  std::string maker_of_nan(const MicroBatches& batches) const;
  Status not_finite(const StepResult& result, const MicroBatches& batches) const;

  ir::Graph model_;
  StepSpec spec_;
  Step step_;
  driver::CompileOptions options_;
  std::string identity_;
  std::vector<runtime::IoSpec> batch_;
  std::unique_ptr<runtime::Model> program_;
  std::unique_ptr<runtime::Model> part_;     // none: a step is one run
  std::unique_ptr<runtime::Model> forward_;  // none until something is evaluated
  std::vector<AlignedBuffer> results_;       // the loss and the norm
};

}  // namespace pyc::train
