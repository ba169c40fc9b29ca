#include "train/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "autograd/gradient.h"
#include "ir/patch.h"
#include "train/compose.h"

namespace pyc::train {
namespace {

using ir::Graph;
using ir::ValueKind;

constexpr double kMaxScale = 1 << 24;

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
  if (spec.accumulate < 1) {
    return {Code::kInvalidArgument,
            fmt::format("accumulate: expected 1 or more micro-batches, found {}", spec.accumulate)};
  }
  int exponent = 0;
  const bool power = std::frexp(spec.loss_scale, &exponent) == 0.5;
  if (spec.loss_scale != 0.0 &&
      !(power && spec.loss_scale >= 1.0 && spec.loss_scale <= kMaxScale)) {
    return {Code::kInvalidArgument,
            fmt::format("loss_scale: expected 0 or a power of two from 1 to {}, found {}",
                        kMaxScale, spec.loss_scale)};
  }
  return {};
}

// A parameter as the graph that updates it has it.
struct Updated {
  const ir::Value& of_model;
  ValueId value;
  ValueId gradient;
};

// Builds the second half: what follows loss and gradients.
class Updates {
 public:
  Updates(ir::GraphBuilder& builder, const StepSpec& spec)
      : builder_(builder), c_(builder), spec_(spec) {}

  // `scale` is the state of that name, or none.
  Status build(ValueId loss, ValueId scale, std::vector<Updated> parameters) {
    std::vector<ValueId> gradients;
    for (const Updated& p : parameters) gradients.push_back(unscaled(p.gradient, scale));
    norm = clip(c_, spec_, gradients);
    const ValueId loss_is_good = finite(loss);
    good_ = c_.op("logical_and", {loss_is_good, finite(norm)});
    const ir::TensorType counter{DType::kI64, {}};
    done = add_state("step", StateValue::Role::kStep, counter, 0.0);
    const ValueId wide = c_.cast(done, DType::kF64);
    const ValueId rate = rate_of(c_, spec_.schedule, wide);
    const ValueId number = c_.shift(wide, 1.0);
    new_state.push_back(counted(loss_is_good, scale));
    if (scale != ir::kNoId) change_scale(scale, loss_is_good);
    for (size_t i = 0; i < parameters.size(); ++i) {
      update_one(parameters[i], gradients[i], rate, number);
    }
    return c_.status();
  }

  ValueId norm = ir::kNoId;
  ValueId done = ir::kNoId;  // the number of steps before this one
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

  // The scale is a power of two: nothing is rounded but what gets subnormal.
  ValueId unscaled(ValueId gradient, ValueId scale) {
    if (scale == ir::kNoId) return gradient;
    return c_.div(gradient, c_.cast(scale, c_.type(gradient).dtype));
  }

  ValueId finite(ValueId x) {
    const ValueId one = c_.reshape(x, {});
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return c_.op("less", {c_.op("abs", {one}), c_.scalar_like(one, kInfinity)});
  }

  ValueId if_good(ValueId changed, ValueId before) {
    return c_.op("where", {good_, changed, before});
  }

  // The number of steps, one more if this one is done or skipped.
  ValueId counted(ValueId loss_is_good, ValueId scale) {
    const ValueId next = c_.shift(done, 1.0);
    if (spec_.on_nan == OnNan::kSkip) return next;
    if (scale == ir::kNoId) return if_good(next, done);
    const ValueId above = c_.op("greater", {scale, c_.scalar_like(scale, 1.0)});
    const ValueId overflow = c_.op("logical_and", {loss_is_good, above});
    return c_.op("where", {c_.op("logical_or", {good_, overflow}), next, done});
  }

  void change_scale(ValueId scale, ValueId loss_is_good) {
    const ir::TensorType type = c_.type(scale);
    state.push_back({builder_.graph().value(scale).name, StateValue::Role::kScale, type,
                     ir::splat_data(type, spec_.loss_scale)});
    inputs.push_back(scale);
    const ValueId row =
        add_state("loss_scale.good", StateValue::Role::kScale, {DType::kI64, {}}, 0.0);
    const ValueId more = c_.shift(row, 1.0);
    const ValueId none = c_.scalar_like(row, 0.0);
    const ValueId halved = c_.op("max", {c_.scale(scale, 0.5), c_.scalar_like(scale, 1.0)});
    const ValueId smaller = c_.op("where", {loss_is_good, halved, scale});
    if (spec_.scale_every == 0) {
      new_state.push_back(if_good(scale, smaller));
      new_state.push_back(if_good(more, none));
      return;
    }
    const auto every = static_cast<double>(spec_.scale_every);
    const ValueId grows = c_.op("greater_equal", {more, c_.scalar_like(more, every)});
    const ValueId doubled = c_.op("min", {c_.scale(scale, 2.0), c_.scalar_like(scale, kMaxScale)});
    new_state.push_back(if_good(c_.op("where", {grows, doubled, scale}), smaller));
    new_state.push_back(if_good(c_.op("where", {grows, none, more}), none));
  }

  void update_one(const Updated& p, ValueId gradient, ValueId rate, ValueId number) {
    const ir::Value& of_model = p.of_model;
    state.push_back(
        {of_model.name, StateValue::Role::kParameter, of_model.type, of_model.constant});
    inputs.push_back(p.value);
    std::vector<ValueId> before = {p.value};
    for (const std::string_view suffix : kept_values(spec_.optimizer.rule)) {
      before.push_back(add_state(fmt::format("{}.{}", of_model.name, suffix),
                                 StateValue::Role::kOptimizer, of_model.type, 0.0));
    }
    if (!c_.status().ok()) return;
    // So that nothing of the update is computed before the norm is known, and then all of it at
    // once: gradient, parameter and kept values are read one time.
    gradient = if_good(gradient, c_.scalar_like(gradient, 0.0));
    const std::vector<ValueId> kept(before.begin() + 1, before.end());
    const auto changed = update(c_, spec_.optimizer, p.value, gradient, kept, rate, number);
    for (size_t i = 0; i < changed.size(); ++i) new_state.push_back(if_good(changed[i], before[i]));
  }

  ir::GraphBuilder& builder_;
  StepComposer c_;
  const StepSpec& spec_;
  ValueId good_ = ir::kNoId;  // whether the step is one to take
};

constexpr std::string_view kScaleName = "loss_scale";

// The forward graph with the gradients behind it: outputs are the loss, then the gradients. Where
// the loss is scaled, the scale is the last input, and the gradients are those of the scaled loss.
Result<ir::VerifiedGraph> with_gradients(const ir::VerifiedGraph& forward,
                                         const std::vector<ValueId>& parameters,
                                         const StepSpec& spec, const ir::OpSet& ops) {
  const ValueId loss = forward->outputs[0];
  const autograd::GradientOptions options{.allow_unused = spec.allow_unused};
  if (spec.loss_scale == 0.0) {
    return autograd::differentiate(forward, loss, parameters, ops, options);
  }
  ir::GraphBuilder builder(ops, *forward);
  StepComposer c(builder);
  const ValueId scale =
      c.input(free_name(builder.graph(), std::string(kScaleName)), {DType::kF32, {}});
  const ValueId scaled = c.mul(loss, c.cast(scale, c.type(loss).dtype));
  PYC_TRY(c.status());
  PYC_ASSIGN(const ir::VerifiedGraph graph, ir::verify_graph(std::move(builder).take(), &forward));
  return autograd::differentiate(graph, scaled, parameters, ops, options);
}

// What a step is made of besides the model.
struct Halves {
  const Graph& model;
  const std::vector<ValueId>& parameters;
  const ir::VerifiedGraph& both;  // with_gradients
  size_t data_inputs;
  ValueId scale;  // of `both`, or none
};

std::vector<Updated> updated(const Halves& h, std::span<const ValueId> values,
                             std::span<const ValueId> gradients) {
  std::vector<Updated> out;
  for (size_t i = 0; i < h.parameters.size(); ++i) {
    out.push_back({h.model.value(h.parameters[i]), values[i], gradients[i]});
  }
  return out;
}

bool is_random(const ir::Node& node) { return node.op->traits.random; }

// Random nodes go on in their sequences: `before` counts how often they were drawn.
void count_draws(Graph& g, ValueId before) {
  for (ir::Node& node : g.nodes) {
    if (is_random(node)) node.inputs.push_back(before);
  }
}

// Closes the graph of a step: inputs that come first, then the state.
Result<ir::VerifiedGraph> finished(ir::GraphBuilder builder, const Updates& updates, ValueId loss,
                                   size_t first_inputs, const ir::VerifiedGraph* before) {
  Graph made = std::move(builder).take();
  count_draws(made, updates.done);
  made.inputs.resize(first_inputs);
  made.inputs.insert(made.inputs.end(), updates.inputs.begin(), updates.inputs.end());
  made.outputs = {loss, updates.norm};
  made.outputs.insert(made.outputs.end(), updates.new_state.begin(), updates.new_state.end());
  return ir::verify_graph(std::move(made), before);
}

Status make_whole(const Halves& h, const StepSpec& spec, const ir::OpSet& ops, Step& step) {
  Graph g = *h.both;
  const ValueId loss = g.outputs[0];
  const std::vector<ValueId> gradients(g.outputs.begin() + 1, g.outputs.end());
  g.inputs.resize(h.data_inputs);
  g.outputs.clear();
  ir::GraphBuilder builder(ops, std::move(g));
  Updates updates(builder, spec);
  PYC_TRY(updates.build(loss, h.scale, updated(h, h.parameters, gradients)));
  step.state = updates.state;
  PYC_ASSIGN(step.graph, finished(std::move(builder), updates, loss, h.data_inputs, &h.both));
  return {};
}

// The graph of a micro-batch: what was differentiated, and its sums.
Status make_part(const Halves& h, const ir::OpSet& ops, Step& step) {
  Graph g = *h.both;
  const std::vector<ValueId> terms = g.outputs;  // the loss, then the gradients
  g.outputs.resize(1);
  step.draws = std::any_of(g.nodes.begin(), g.nodes.end(), is_random);
  ir::GraphBuilder builder(ops, std::move(g));
  StepComposer c(builder);
  ValueId number = ir::kNoId;
  if (step.draws) number = c.input(free_name(builder.graph(), "number"), {DType::kI64, {}});
  for (size_t i = 0; i < terms.size(); ++i) {
    const std::string of = i == 0 ? "loss" : h.model.value(h.parameters[i - 1]).name;
    const std::string name = free_name(builder.graph(), of + ".sum");
    const ir::TensorType type = c.type(terms[i]);
    step.sums.push_back({name, StateValue::Role::kOptimizer, type, ir::splat_data(type, 0.0)});
    const ValueId sum = c.add(c.input(name, type), terms[i]);
    PYC_TRY(c.status());
    PYC_TRY(builder.output(sum));
  }
  Graph made = std::move(builder).take();
  count_draws(made, number);
  PYC_ASSIGN(step.part, ir::verify_graph(std::move(made), &h.both));
  return {};
}

// The graph of a step behind its micro-batches.
Status make_end(const Halves& h, const StepSpec& spec, const ir::OpSet& ops, Step& step) {
  ir::GraphBuilder builder(ops, h.model.name);
  StepComposer c(builder);
  std::vector<ValueId> means;
  for (const StateValue& sum : step.sums) {
    const ValueId value = c.input(sum.name, sum.type);
    means.push_back(c.div(value, c.scalar_like(value, static_cast<double>(spec.accumulate))));
  }
  std::vector<ValueId> values;
  for (const ValueId v : h.parameters) {
    values.push_back(c.input(h.model.value(v).name, h.model.type(v)));
  }
  ValueId scale = ir::kNoId;
  if (h.scale != ir::kNoId) scale = c.input(h.both->value(h.scale).name, h.both->type(h.scale));
  PYC_TRY(c.status());
  Updates updates(builder, spec);
  PYC_TRY(updates.build(means[0], scale, updated(h, values, std::span(means).subspan(1))));
  step.state = updates.state;
  PYC_ASSIGN(step.graph,
             finished(std::move(builder), updates, means[0], step.sums.size(), nullptr));
  return {};
}

// The graph with the zeros around a convolution as a node of its own. Inside of it they are terms
// to skip, since a weight that is not finite would make more of them, and a convolution with
// weights that change could not be a product of matrices. Here such a weight may do that: it makes
// the step one that is not finite. Bits are the same for finite weights.
Result<ir::VerifiedGraph> with_zeros_apart(const ir::VerifiedGraph& graph, const ir::OpSet& ops) {
  Graph g = *graph;
  ir::Patch patch(g, ops);
  for (ir::NodeId n = 0; n < g.nodes.size(); ++n) {
    const ir::NodeView node = patch.node(n);
    if (!node.is("conv") || patch.constant(node.input(1)) != nullptr) continue;
    ir::Attrs attrs = node.attrs();
    const auto around = std::get<std::vector<int64_t>>(attrs.at("pads"));
    if (std::all_of(around.begin(), around.end(), [](int64_t p) { return p == 0; })) continue;
    const auto dims = static_cast<std::ptrdiff_t>(around.size() / 2);
    std::vector<int64_t> pads{0, 0};
    pads.insert(pads.end(), around.begin(), around.begin() + dims);
    pads.insert(pads.end(), {0, 0});
    pads.insert(pads.end(), around.begin() + dims, around.end());
    attrs["pads"] = std::vector<int64_t>{};
    patch.at(n);
    std::vector<ValueId> inputs = node.all_inputs();
    inputs[0] = patch.op("pad", {inputs[0]}, {{"pads", pads}});
    patch.replace(node.outputs()[0], patch.op("conv", std::move(inputs), std::move(attrs)));
  }
  if (patch.edits() == 0) return graph;
  PYC_TRY(patch.apply().status());
  return ir::verify_graph(std::move(g));
}

}  // namespace

Result<Step> make_step(const ir::VerifiedGraph& model, const StepSpec& spec, const ir::OpSet& ops) {
  PYC_TRY(check(spec));
  PYC_ASSIGN(const std::vector<ValueId> parameters, find_parameters(*model, spec));
  PYC_ASSIGN(const ir::VerifiedGraph forward, with_loss(*model, parameters, spec, ops));
  PYC_ASSIGN(const ir::VerifiedGraph both, with_gradients(forward, parameters, spec, ops));
  const size_t data_inputs = forward->inputs.size() - parameters.size();
  const Halves halves{.model = *model,
                      .parameters = parameters,
                      .both = both,
                      .data_inputs = data_inputs,
                      .scale = spec.loss_scale == 0.0 ? ir::kNoId : both->inputs.back()};
  Step step{.graph = forward, .forward = forward, .data_inputs = data_inputs};
  if (spec.accumulate == 1) {
    PYC_TRY(make_whole(halves, spec, ops, step));
  } else {
    PYC_TRY(make_part(halves, ops, step));
    PYC_TRY(make_end(halves, spec, ops, step));
    PYC_ASSIGN(step.part, with_zeros_apart(*step.part, ops));
  }
  PYC_ASSIGN(step.graph, with_zeros_apart(step.graph, ops));
  PYC_ASSIGN(step.forward, with_zeros_apart(step.forward, ops));
  return step;
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
