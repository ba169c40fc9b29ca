#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/convert.h"
#include "ops/registry.h"
#include "session/model.h"

namespace pyc::train {
namespace {

runtime::TensorView view_of(AlignedBuffer& buffer, const ir::TensorType& type) {
  return {.data = buffer.data(),
          .dtype = type.dtype,
          .shape = type.shape,
          .bytes = static_cast<int64_t>(buffer.size())};
}

double number_in(const AlignedBuffer& buffer, DType dtype) {
  return word_to_double(load_word(buffer.data(), dtype), dtype);
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::create(ir::Graph model, const StepSpec& spec,
                                                 const driver::CompileOptions& options) {
  PYC_ASSIGN(const ir::VerifiedGraph verified, ir::verify_graph(std::move(model)));
  PYC_ASSIGN(Step step, make_step(verified, spec, ops::all_ops()));
  std::unique_ptr<Trainer> trainer(new Trainer(*verified, spec, std::move(step)));
  PYC_ASSIGN(trainer->program_, session::compile(*trainer->step_.graph, options));
  trainer->identity_ = ir::fingerprint(*trainer->step_.graph).hex();
  PYC_TRY(trainer->make_state());
  return trainer;
}

Status Trainer::make_state() {
  for (size_t i = 0; i < step_.state.size(); ++i) {
    const StateValue& value = step_.state[i];
    const SharedBytes& initial = value.initial->bytes;
    for (auto* instance : {&now_, &next_}) {
      PYC_ASSIGN(AlignedBuffer buffer, AlignedBuffer::create(initial.size()));
      std::copy(initial.begin(), initial.end(), buffer.data());
      instance->push_back(std::move(buffer));
    }
  }
  for (size_t i = 0; i < Step::kResults; ++i) {
    PYC_ASSIGN(AlignedBuffer buffer, AlignedBuffer::create(sizeof(double)));
    results_.push_back(std::move(buffer));
  }
  inputs_.resize(step_.data_inputs + step_.state.size());
  outputs_.resize(Step::kResults + step_.state.size());
  return {};
}

std::span<const runtime::IoSpec> Trainer::batch() const {
  return std::span(program_->inputs()).first(step_.data_inputs);
}

std::span<const std::byte> Trainer::bytes(size_t i) const { return now_[i].bytes(); }

Status Trainer::set(size_t i, std::span<const std::byte> bytes) {
  if (i >= now_.size() || bytes.size() != now_[i].size()) {
    return {Code::kSizeMismatch,
            fmt::format("state '{}': expected {} bytes, found {}",
                        i < now_.size() ? step_.state[i].name : std::to_string(i),
                        i < now_.size() ? now_[i].size() : 0, bytes.size())};
  }
  std::copy(bytes.begin(), bytes.end(), now_[i].data());
  return {};
}

size_t Trainer::counter_index() const {
  const auto found = std::find_if(step_.state.begin(), step_.state.end(), [](const StateValue& v) {
    return v.role == StateValue::Role::kStep;
  });
  return static_cast<size_t>(found - step_.state.begin());
}

int64_t Trainer::steps_done() const {
  int64_t done = 0;
  std::memcpy(&done, now_[counter_index()].data(), sizeof(done));
  return done;
}

Digest Trainer::weights_digest() const {
  Hasher hasher;
  for (size_t i = 0; i < step_.state.size(); ++i) {
    const StateValue& value = step_.state[i];
    if (value.role != StateValue::Role::kParameter) continue;
    hasher.update(std::string_view(value.name)).update(std::string_view(value.type.to_string()));
    hasher.update(bytes(i));
  }
  return hasher.finish();
}

// Reads one instance of the state and writes the other.
Result<StepResult> Trainer::run(std::span<const runtime::TensorView> batch) {
  if (batch.size() != step_.data_inputs) {
    return Status(Code::kInvalidArgument, fmt::format("batch: expected {} tensors, found {}",
                                                      step_.data_inputs, batch.size()));
  }
  std::copy(batch.begin(), batch.end(), inputs_.begin());
  for (size_t i = 0; i < Step::kResults; ++i) {
    outputs_[i] = view_of(results_[i], step_.graph->type(step_.graph->outputs[i]));
  }
  for (size_t i = 0; i < step_.state.size(); ++i) {
    const ir::TensorType& type = step_.state[i].type;
    inputs_[step_.data_inputs + i] = view_of(now_[i], type);
    outputs_[Step::kResults + i] = view_of(next_[i], type);
  }
  PYC_TRY(program_->run(inputs_, outputs_));
  const std::vector<runtime::IoSpec>& specs = program_->outputs();
  return StepResult{.loss = number_in(results_[0], specs[0].dtype),
                    .norm = number_in(results_[1], specs[1].dtype)};
}

Result<StepResult> Trainer::step(std::span<const runtime::TensorView> batch) {
  PYC_ASSIGN(StepResult result, run(batch));
  if (std::isfinite(result.loss) && std::isfinite(result.norm)) {
    std::swap(now_, next_);
    return result;
  }
  if (spec_.on_nan == OnNan::kStop) {
    return Status(
        Code::kRuntimeFailed,
        fmt::format("step {}: the loss is {} and the norm of its gradients {}; parameters "
                    "and optimizer are as before it",
                    steps_done() + 1, result.loss, result.norm));
  }
  const size_t counter = counter_index();
  std::swap(now_[counter], next_[counter]);
  result.skipped = true;
  return result;
}

Result<double> Trainer::evaluate(std::span<const runtime::TensorView> batch) {
  PYC_ASSIGN(const StepResult result, run(batch));
  return result.loss;
}

Result<ir::Graph> Trainer::trained() const {
  std::vector<SharedBytes> bytes;
  for (const AlignedBuffer& buffer : now_) {
    bytes.emplace_back(std::vector<std::byte>(buffer.bytes().begin(), buffer.bytes().end()));
  }
  return with_parameters(model_, step_.state, bytes);
}

}  // namespace pyc::train
