#include "train/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "autograd/gradient.h"
#include "train/compose.h"

namespace pyc::train {
namespace {

using ir::Graph;
using ir::ValueKind;

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool may_be_parameter(const ir::Value& value) {
  return value.kind == ValueKind::kConstant && !value.type.shape.empty() &&
         (value.type.dtype == DType::kF32 || value.type.dtype == DType::kF64);
}

// Constants that a node reads as something to learn.
std::vector<bool> is_learnt(const Graph& g) {
  std::vector<bool> learnt(g.values.size(), false);
  for (const ir::Node& node : g.nodes) {
    const auto count = static_cast<size_t>(node.op->traits.learnt_inputs);
    for (size_t i = 0; i < std::min(count, node.inputs.size()); ++i) learnt[node.inputs[i]] = true;
  }
  return learnt;
}

Result<std::vector<ValueId>> find_parameters(const Graph& g, const StepSpec& spec) {
  const std::vector<bool> learnt = is_learnt(g);
  std::vector<ValueId> found;
  std::set<std::string_view> unmet(spec.frozen.begin(), spec.frozen.end());
  for (ValueId v = 0; v < g.values.size(); ++v) {
    if (!may_be_parameter(g.value(v))) continue;
    bool frozen = false;
    for (const std::string& pattern : spec.frozen) {
      if (!matches(pattern, g.value(v).name)) continue;
      frozen = true;
      unmet.erase(pattern);
    }
    if (!frozen && learnt[v]) found.push_back(v);
  }
  if (!unmet.empty()) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("frozen '{}': no float constant of the model has that name", *unmet.begin()));
  }
  if (found.empty()) {
    return Status(Code::kInvalidArgument,
                  "the model has nothing to train: no constant of f32 or f64 with one dim or more "
                  "that is not frozen");
  }
  return found;
}

std::string free_name(const Graph& g, std::string name) {
  const auto taken = [&](const ir::Value& v) { return v.name == name; };
  while (std::any_of(g.values.begin(), g.values.end(), taken)) name += '_';
  return name;
}

// The model with its parameters as inputs behind its own, and the loss as the only output.
Result<ir::VerifiedGraph> with_loss(const Graph& model, const std::vector<ValueId>& parameters,
                                    const StepSpec& spec, const ir::OpSet& ops) {
  if (model.outputs.empty()) return Status(Code::kInvalidArgument, "the model has no output");
  Graph g = model;
  const ValueId prediction = g.outputs[0];
  g.outputs.clear();
  for (const ValueId v : parameters) {
    g.values[v].kind = ValueKind::kInput;
    g.values[v].constant = nullptr;
  }
  const std::string target_name = free_name(g, "target");
  const ir::TensorType output = g.type(prediction);
  ir::GraphBuilder builder(ops, std::move(g));
  StepComposer c(builder);
  ValueId target = ir::kNoId;
  if (spec.loss != Loss::kOutput) {
    PYC_ASSIGN(ir::TensorType type, target_type(spec.loss, output));
    target = c.input(target_name, std::move(type));
  } else if (!is_float(output.dtype) || output.elements() != 1) {
    return Status(Code::kInvalidArgument,
                  fmt::format("output '{}' is {}: a loss is a float of one element; choose a loss "
                              "that compares it with a target",
                              model.value(prediction).name, output.to_string()))
        .with_node(model.value(prediction).name);
  }
  const ValueId loss = loss_of(c, spec.loss, prediction, target);
  PYC_TRY(c.status());
  PYC_TRY(builder.output(loss));
  Graph made = std::move(builder).take();
  made.inputs.insert(made.inputs.end(), parameters.begin(), parameters.end());
  return ir::verify_graph(std::move(made));
}

// Of all gradients: sqrt of their sums of squares, added in order.
ValueId norm_of(StepComposer& c, const std::vector<ValueId>& gradients) {
  const bool wide = std::all_of(gradients.begin(), gradients.end(),
                                [&](ValueId g) { return c.type(g).dtype == DType::kF64; });
  ValueId sum = ir::kNoId;
  for (const ValueId g : gradients) {
    const ValueId part = c.cast(c.sum(c.mul(g, g)), wide ? DType::kF64 : DType::kF32);
    sum = sum == ir::kNoId ? part : c.add(sum, part);
  }
  return c.op("sqrt", {sum});
}

// Clips in place; returns the norm between the two ways of clipping.
ValueId clip(StepComposer& c, const StepSpec& spec, std::vector<ValueId>& gradients) {
  if (spec.clip_value > 0.0) {
    for (ValueId& g : gradients) {
      g = c.op("clip", {g, c.scalar_like(g, -spec.clip_value), c.scalar_like(g, spec.clip_value)});
    }
  }
  const ValueId norm = norm_of(c, gradients);
  if (spec.clip_norm > 0.0) {
    const ValueId most = c.scalar_like(norm, spec.clip_norm);
    const ValueId factor = c.div(most, c.op("max", {norm, most}));
    for (ValueId& g : gradients) g = c.mul(g, c.cast(factor, c.type(g).dtype));
  }
  return norm;
}

Status check(const StepSpec& spec) {
  PYC_TRY(check(spec.optimizer));
  PYC_TRY(check(spec.schedule));
  for (const double bound : {spec.clip_value, spec.clip_norm}) {
    if (!(bound >= 0.0)) {
      return {Code::kInvalidArgument, fmt::format("clipping: expected 0 or more, found {}", bound)};
    }
  }
  return {};
}

// Builds the second half: what follows loss and gradients.
class Updates {
 public:
  Updates(ir::GraphBuilder& builder, const Graph& model, const StepSpec& spec)
      : builder_(builder), c_(builder), model_(model), spec_(spec) {}

  Status build(const std::vector<ValueId>& parameters, std::vector<ValueId> gradients) {
    norm = clip(c_, spec_, gradients);
    const ir::TensorType counter{DType::kI64, {}};
    const ValueId done = add_state("step", StateValue::Role::kStep, counter, 0.0);
    const ValueId wide = c_.cast(done, DType::kF64);
    const ValueId rate = rate_of(c_, spec_.schedule, wide);
    const ValueId number = c_.shift(wide, 1.0);
    new_state.push_back(c_.shift(done, 1.0));
    for (size_t i = 0; i < parameters.size(); ++i) {
      update_one(parameters[i], gradients[i], rate, number);
    }
    return c_.status();
  }

  ValueId norm = ir::kNoId;
  std::vector<StateValue> state;
  std::vector<ValueId> inputs;     // of the state
  std::vector<ValueId> new_state;  // its outputs

 private:
  ValueId add_state(std::string name, StateValue::Role role, const ir::TensorType& type,
                    double initial) {
    name = free_name(builder_.graph(), std::move(name));
    state.push_back({name, role, type, ir::splat_data(type, initial)});
    inputs.push_back(c_.input(std::move(name), type));
    return inputs.back();
  }

  void update_one(ValueId parameter, ValueId gradient, ValueId rate, ValueId number) {
    const ir::Value& value = model_.value(parameter);
    state.push_back({value.name, StateValue::Role::kParameter, value.type, value.constant});
    inputs.push_back(parameter);
    std::vector<ValueId> kept;
    for (const std::string_view suffix : kept_values(spec_.optimizer.rule)) {
      kept.push_back(add_state(fmt::format("{}.{}", value.name, suffix),
                               StateValue::Role::kOptimizer, value.type, 0.0));
    }
    if (!c_.status().ok()) return;
    for (const ValueId v : update(c_, spec_.optimizer, parameter, gradient, kept, rate, number)) {
      new_state.push_back(v);
    }
  }

  ir::GraphBuilder& builder_;
  StepComposer c_;
  const Graph& model_;
  const StepSpec& spec_;
};

}  // namespace

Result<Step> make_step(const ir::VerifiedGraph& model, const StepSpec& spec, const ir::OpSet& ops) {
  PYC_TRY(check(spec));
  PYC_ASSIGN(const std::vector<ValueId> parameters, find_parameters(*model, spec));
  PYC_ASSIGN(const ir::VerifiedGraph forward, with_loss(*model, parameters, spec, ops));
  const ValueId loss = forward->outputs[0];
  PYC_ASSIGN(
      const ir::VerifiedGraph both,
      autograd::differentiate(forward, loss, parameters, ops, {.allow_unused = spec.allow_unused}));
  Graph g = *both;
  const std::vector<ValueId> gradients(g.outputs.begin() + 1, g.outputs.end());
  const size_t data_inputs = g.inputs.size() - parameters.size();
  g.inputs.resize(data_inputs);
  g.outputs.clear();
  ir::GraphBuilder builder(ops, std::move(g));
  Updates updates(builder, *model, spec);
  PYC_TRY(updates.build(parameters, gradients));
  Graph made = std::move(builder).take();
  made.inputs.resize(data_inputs);
  made.inputs.insert(made.inputs.end(), updates.inputs.begin(), updates.inputs.end());
  made.outputs = {loss, updates.norm};
  made.outputs.insert(made.outputs.end(), updates.new_state.begin(), updates.new_state.end());
  PYC_ASSIGN(ir::VerifiedGraph verified, ir::verify_graph(std::move(made), &both));
  return Step{std::move(verified), data_inputs, std::move(updates.state)};
}

Result<ir::Graph> with_parameters(const ir::Graph& model, const std::vector<StateValue>& state,
                                  const std::vector<SharedBytes>& bytes) {
  Graph g = model;
  for (size_t i = 0; i < state.size(); ++i) {
    if (state[i].role != StateValue::Role::kParameter) continue;
    const auto found = std::find_if(g.values.begin(), g.values.end(), [&](const ir::Value& v) {
      return v.kind == ValueKind::kConstant && v.name == state[i].name;
    });
    if (found == g.values.end() || !(found->type == state[i].type)) {
      return Status(Code::kInvalidArgument, fmt::format("the model has no constant '{}' of {}",
                                                        state[i].name, state[i].type.to_string()));
    }
    found->constant = ir::dense_data(bytes[i]);
  }
  return g;
}

}  // namespace pyc::train
