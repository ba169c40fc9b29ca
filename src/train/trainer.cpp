#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/convert.h"
#include "ops/registry.h"
#include "session/model.h"
#include "train/trace.h"

namespace pyc::train {
namespace {

using runtime::TensorView;

// Where nobody said one and products are of f16.
constexpr double kUsualScale = 65536.0;

double number_in(const AlignedBuffer& buffer, DType dtype) {
  return word_to_double(load_word(buffer.data(), dtype), dtype);
}

// The pairs of state `values`, which come in this order behind the first inputs and outputs.
driver::StatePairs pairs_of(const ir::Graph& graph, size_t inputs, size_t outputs, size_t count) {
  driver::StatePairs pairs;
  for (size_t i = 0; i < count; ++i) {
    pairs.emplace_back(graph.value(graph.inputs[inputs + i]).name,
                       graph.value(graph.outputs[outputs + i]).name);
  }
  return pairs;
}

// Gradients of f16 products vanish or overflow without a scale.
Status choose_scale(StepSpec& spec, const driver::CompileOptions& options) {
  if (options.precision != DType::kF16 || spec.loss_scale != 0.0) return {};
  if (options.determinism == driver::Determinism::kStrict) {
    return {Code::kInvalidArgument,
            fmt::format("precision f16: gradients need a loss scale, and strict takes none that is "
                        "not said: set loss_scale, usually to {}",
                        kUsualScale)};
  }
  spec.loss_scale = kUsualScale;
  return {};
}

}  // namespace

Result<std::unique_ptr<Trainer>> Trainer::create(ir::Graph model, const StepSpec& spec,
                                                 const driver::CompileOptions& options) {
  PYC_ASSIGN(const ir::VerifiedGraph verified, ir::verify_graph(std::move(model)));
  StepSpec chosen = spec;
  PYC_TRY(choose_scale(chosen, options));
  PYC_ASSIGN(Step step, make_step(verified, chosen, ops::all_ops()));
  std::unique_ptr<Trainer> trainer(
      new Trainer(*verified, std::move(chosen), std::move(step), options));
  PYC_TRY(trainer->compile());
  PYC_TRY(trainer->make_state());
  return trainer;
}

std::vector<StepGraph> Trainer::graphs() const {
  std::vector<StepGraph> out;
  out.push_back({step_.graph,
                 pairs_of(*step_.graph, step_.first_inputs(), Step::kResults, step_.state.size())});
  if (step_.part) {
    const ir::Graph& part = **step_.part;
    const size_t sums = step_.sums.size();
    out.push_back({*step_.part, pairs_of(part, part.inputs.size() - sums, 1, sums)});
  }
  return out;
}

Status Trainer::compile() {
  driver::CompileOptions options = options_;
  if (!options.states.empty()) {
    return {Code::kInvalidArgument,
            fmt::format("state '{}': a training step's state is its own; leave out the option",
                        options.states[0].first)};
  }
  Hasher identity;
  for (const StepGraph& made : graphs()) {
    options.states = made.states;
    auto& program = program_ == nullptr ? program_ : part_;
    PYC_ASSIGN(program, session::compile(made.graph, options));
    identity.update(ir::fingerprint(*made.graph).hex());
  }
  identity_ = identity.finish().hex();
  const std::vector<runtime::IoSpec>& inputs = part_ ? part_->inputs() : program_->inputs();
  batch_.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(step_.data_inputs));
  return {};
}

Status Trainer::make_state() {
  for (size_t i = 0; i < step_.state.size(); ++i) {
    PYC_TRY(set(i, step_.state[i].initial->bytes.span()));
  }
  for (size_t i = 0; i < Step::kResults; ++i) {
    PYC_ASSIGN(AlignedBuffer buffer, AlignedBuffer::create(sizeof(double)));
    results_.push_back(std::move(buffer));
  }
  return {};
}

TensorView Trainer::state_view(size_t i) const {
  const ir::TensorType& type = step_.state[i].type;
  return {.data = program_->states().memory()[i],
          .dtype = type.dtype,
          .shape = type.shape,
          .bytes = type.bytes()};
}

std::span<const std::byte> Trainer::bytes(size_t i) const {
  return {program_->states().memory()[i], static_cast<size_t>(step_.state[i].type.bytes())};
}

Status Trainer::set(size_t i, std::span<const std::byte> bytes) {
  const size_t count = step_.state.size();
  const size_t expected = i < count ? static_cast<size_t>(step_.state[i].type.bytes()) : 0;
  if (i >= count || bytes.size() != expected) {
    return {Code::kSizeMismatch, fmt::format("state '{}': expected {} bytes, found {}",
                                             i < count ? step_.state[i].name : std::to_string(i),
                                             expected, bytes.size())};
  }
  TensorView from = state_view(i);
  from.data = const_cast<std::byte*>(bytes.data());  // is only read
  return program_->states().set(i, from);
}

size_t Trainer::counter_index() const {
  const auto found = std::find_if(step_.state.begin(), step_.state.end(), [](const StateValue& v) {
    return v.role == StateValue::Role::kStep;
  });
  return static_cast<size_t>(found - step_.state.begin());
}

int64_t Trainer::steps_done() const {
  int64_t done = 0;
  std::memcpy(&done, bytes(counter_index()).data(), sizeof(done));
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

std::vector<TensorView> Trainer::views_of(StateValue::Role role) const {
  std::vector<TensorView> views;
  for (size_t i = 0; i < step_.state.size(); ++i) {
    if (step_.state[i].role == role) views.push_back(state_view(i));
  }
  return views;
}

std::vector<TensorView> Trainer::part_inputs(std::span<const TensorView> batch,
                                             int64_t& number) const {
  std::vector<TensorView> inputs(batch.begin(), batch.end());
  const std::vector<TensorView> parameters = views_of(StateValue::Role::kParameter);
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  if (spec_.loss_scale != 0.0) inputs.push_back(views_of(StateValue::Role::kScale)[0]);
  if (step_.draws) {
    inputs.push_back({.data = &number, .dtype = DType::kI64, .shape = {}, .bytes = sizeof(number)});
  }
  return inputs;
}

std::vector<TensorView> Trainer::sum_views() const {
  std::vector<TensorView> views;
  for (size_t i = 0; i < step_.sums.size(); ++i) {
    const ir::TensorType& type = step_.sums[i].type;
    views.push_back({.data = part_->states().memory()[i],
                     .dtype = type.dtype,
                     .shape = type.shape,
                     .bytes = type.bytes()});
  }
  return views;
}

Status Trainer::check_batch(std::span<const TensorView> batch) const {
  if (batch.size() == batch_.size()) return {};
  return {Code::kInvalidArgument,
          fmt::format("batch: expected {} tensors, found {}", batch_.size(), batch.size())};
}

// The sums over all micro-batches, from +0.
Status Trainer::add_parts(const MicroBatches& batches, StepResult& result) {
  for (size_t i = 0; i < step_.sums.size(); ++i) PYC_TRY(part_->states().clear(i));
  const runtime::IoSpec& loss = part_->outputs()[0];
  const TensorView out{
      .data = results_[0].data(), .dtype = loss.dtype, .shape = loss.shape, .bytes = loss.bytes};
  for (int64_t i = 0; i < spec_.accumulate; ++i) {
    const std::span<const TensorView> batch = batches(i);
    PYC_TRY(check_batch(batch));
    runtime::RunStats stats;
    int64_t number = steps_done() * spec_.accumulate + i;
    PYC_TRY(part_->run(part_inputs(batch, number), {&out, 1}, &stats)
                .with_context(fmt::format("micro-batch {}", i + 1)));
    result.copied_bytes += stats.copied_bytes;
  }
  return {};
}

Result<StepResult> Trainer::run(const MicroBatches& batches) {
  StepResult result;
  std::vector<TensorView> inputs;
  if (part_) {
    PYC_TRY(add_parts(batches, result));
    inputs = sum_views();
  } else {
    const std::span<const TensorView> batch = batches(0);
    PYC_TRY(check_batch(batch));
    inputs.assign(batch.begin(), batch.end());
  }
  std::vector<TensorView> outputs;
  const std::vector<runtime::IoSpec>& specs = program_->outputs();
  for (size_t i = 0; i < Step::kResults; ++i) {
    outputs.push_back({.data = results_[i].data(),
                       .dtype = specs[i].dtype,
                       .shape = specs[i].shape,
                       .bytes = specs[i].bytes});
  }
  runtime::RunStats stats;
  PYC_TRY(program_->run(inputs, outputs, &stats));
  result.copied_bytes += stats.copied_bytes;
  result.loss = number_in(results_[0], specs[0].dtype);
  result.norm = number_in(results_[1], specs[1].dtype);
  return result;
}

Result<StepResult> Trainer::step(std::span<const TensorView> batch) {
  const auto parts = static_cast<size_t>(spec_.accumulate);
  if (batch.size() != parts * batch_.size()) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("batch: expected {} tensors{}, found {}", parts * batch_.size(),
                    parts == 1 ? "" : fmt::format(" of {} micro-batches", parts), batch.size()));
  }
  return step([&](int64_t i) {
    return batch.subspan(static_cast<size_t>(i) * batch_.size(), batch_.size());
  });
}

// The graph itself keeps the state where loss or norm is not finite; whether the step counts tells
// what it made of that.
Result<StepResult> Trainer::step(const MicroBatches& batches) {
  const int64_t before = steps_done();
  auto result = run(batches);
  if (!result.ok()) {
    // Everything else is written behind all that can fail.
    PYC_TRY(set(counter_index(), std::as_bytes(std::span(&before, 1))));
    return result;
  }
  if (std::isfinite(result->loss) && std::isfinite(result->norm)) return result;
  if (steps_done() == before) return not_finite(*result, batches);
  result->skipped = true;
  return result;
}

Status Trainer::not_finite(const StepResult& result, const MicroBatches& batches) const {
  const std::string maker = maker_of_nan(batches);
  return {
      Code::kRuntimeFailed,
      fmt::format("step {}: the loss is {} and the norm of its gradients {}; parameters "
                  "and optimizer are as before it{}{}",
                  steps_done() + 1, result.loss, result.norm, maker.empty() ? "" : "; ", maker)};
}

std::string Trainer::maker_of_nan(const MicroBatches& batches) const {
  const auto of_graph = [&](const ir::VerifiedGraph& graph, std::vector<TensorView> inputs,
                            const std::vector<TensorView>& state) {
    inputs.insert(inputs.end(), state.begin(), state.end());
    return trace_not_finite(graph, inputs, options_);
  };
  std::vector<TensorView> state;
  for (size_t i = 0; i < step_.state.size(); ++i) state.push_back(state_view(i));
  if (!part_) {
    const auto batch = batches(0);
    return of_graph(step_.graph, {batch.begin(), batch.end()}, state);
  }
  // Sums of zeros stand for those of the micro-batches before.
  for (size_t i = 0; i < step_.sums.size(); ++i) {
    if (!part_->states().clear(i).ok()) return "";
  }
  for (int64_t i = 0; i < spec_.accumulate; ++i) {
    int64_t number = steps_done() * spec_.accumulate + i;
    const std::string made = of_graph(*step_.part, part_inputs(batches(i), number), sum_views());
    if (!made.empty()) return fmt::format("micro-batch {}: {}", i + 1, made);
  }
  return "";
}

Result<double> Trainer::evaluate(std::span<const TensorView> batch) {
  PYC_TRY(check_batch(batch));
  if (forward_ == nullptr) {
    PYC_ASSIGN(forward_, session::compile(step_.forward, options_));
  }
  std::vector<TensorView> inputs(batch.begin(), batch.end());
  const std::vector<TensorView> parameters = views_of(StateValue::Role::kParameter);
  inputs.insert(inputs.end(), parameters.begin(), parameters.end());
  const runtime::IoSpec& loss = forward_->outputs()[0];
  const TensorView out{
      .data = results_[0].data(), .dtype = loss.dtype, .shape = loss.shape, .bytes = loss.bytes};
  PYC_TRY(forward_->run(inputs, {&out, 1}));
  return number_in(results_[0], loss.dtype);
}

Result<ir::Graph> Trainer::trained() const {
  std::vector<SharedBytes> copies;
  for (size_t i = 0; i < step_.state.size(); ++i) {
    copies.emplace_back(std::vector<std::byte>(bytes(i).begin(), bytes(i).end()));
  }
  return with_parameters(model_, step_.state, copies);
}

}  // namespace pyc::train
