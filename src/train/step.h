#pragma once

// One training step as a graph: the model, its loss, the gradients of its parameters and the
// optimizer's update, in one ordinary Graph IR graph before any pass.
//
// Meaning. The parameters (float constants of the model) become inputs; beside them stand the
// optimizer's values and the number of steps done. All of these are *state*: an input and an output
// of one type, so that the output of one step is the input of the next. Inputs are the model's,
// then the target where the loss takes one, then the state; outputs are the loss, the norm of all
// gradients, then the state, in the same order. The rate of a step follows from the number of steps
// done, inside of the graph, so that a step is a function of its inputs alone.
//
// A step whose loss or norm is not finite leaves parameters and optimizer as they were: each new
// value is chosen by that in the graph, so the state can be written over where it lies.
//
// Random nodes. Those of the model draw other numbers in every step and micro-batch: each goes on
// in its sequence by the number of those before. `forward`, which evaluates, draws as the first
// step.
//
// Micro-batches. With `accumulate` n over 1 a step is n runs of `part`, each of which adds the
// gradients of its batch to sums that begin as +0, and one of `graph`, which divides the sums by n
// and does the rest: loss and gradients are means over the micro-batches, added in their order.
//
// Scaling. With `loss_scale` the loss is multiplied by a power of two before it is differentiated,
// and the gradients divided by it behind. A step whose loss is finite and whose gradients are not
// is skipped and halves the scale, down to 1; `loss_scale_every` good ones in a row double it.
//
// Arithmetic. Gradients as autograd/gradient.h says. The norm is the root of the parameters' sums
// of squares, added in the order of the parameters in f32 (f64 where all parameters are f64),
// behind clip_value and before clip_norm. Updates are computed in the parameter's dtype; rates and
// bias corrections in f64, rounded once to it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace pyc::train {

// With p the model's first output and y the target; the mean over all elements or rows.
enum class Loss : uint8_t {
  kOutput,        // the model's first output is the loss, a float of one element; no target
  kMse,           // (p - y)²
  kL1,            // |p - y|
  kHuber,         // d²/2 where |d| ≤ 1, else |d| - 1/2; d = p - y
  kCrossEntropy,  // of softmax(p) over axis 1; y: i64 class numbers, p's shape without axis 1
  kBce,           // of sigmoid(p), y in [0, 1]
};

enum class Rule : uint8_t { kSgd, kMomentum, kNesterov, kAdam, kAdamW, kAdagrad, kRmsprop, kLion };

// g: the gradient, after clipping. p: the parameter. Values start at 0.
struct Optimizer {
  Rule rule = Rule::kSgd;
  double momentum = 0.9;  // momentum, nesterov: b = momentum·b + g
  double beta1 = 0.9;     // adam, adamw, lion: the average of g
  double beta2 = 0.999;   // adam, adamw: of g²; lion: what the average keeps; rmsprop: of g²
  double epsilon = 1e-8;
  // adamw, lion: p is first multiplied by 1 - rate·decay; the others: g + decay·p is taken for g.
  double decay = 0.0;
};

enum class Curve : uint8_t { kConstant, kLinear, kCosine, kSteps };

// The rate of step s = 0, 1, …: `rate` times (s + 1) / warmup while s < warmup, then along the
// curve.
struct Schedule {
  Curve curve = Curve::kConstant;
  double rate = 0.01;
  int64_t warmup = 0;
  int64_t total = 0;    // linear, cosine: the step at which `floor` is reached
  double floor = 0.0;   // linear, cosine
  int64_t every = 0;    // steps: rate · factor^⌊s / every⌋
  double factor = 0.1;  // steps
};

// What becomes of a step whose loss or norm of gradients is no finite number. Not of the graph: the
// trainer goes by it.
enum class OnNan : uint8_t {
  kStop,  // the step is refused, and the state stays as it was before it
  kSkip,  // parameters and optimizer stay, the step counts as done
};

struct StepSpec {
  Loss loss = Loss::kOutput;
  Optimizer optimizer;
  Schedule schedule;
  double clip_value = 0.0;  // each element of a gradient to [-clip_value, clip_value]; 0: not
  // Gradients are multiplied by clip_norm / norm where their norm is above; 0: not. After
  // clip_value.
  double clip_norm = 0.0;
  // Names of constants that stay as they are; a * at the end stands for anything.
  std::vector<std::string> frozen;
  bool allow_unused = false;  // parameters that the loss does not depend on stay as they are
  OnNan on_nan = OnNan::kStop;
  int64_t accumulate = 1;      // micro-batches of a step
  double loss_scale = 0.0;     // at first; 0: the loss is not scaled
  int64_t scale_every = 2000;  // good steps that double the scale; 0: it never grows
};

struct StateValue {
  enum class Role : uint8_t { kParameter, kOptimizer, kStep, kScale };
  // The parameter's; "NAME.first", "NAME.second"; "step"; "loss_scale", "loss_scale.good".
  std::string name;
  Role role = Role::kParameter;
  ir::TensorType type;
  std::shared_ptr<const ir::ConstData> initial;
};

struct Step {
  static constexpr size_t kResults = 2;  // the loss and the norm
  // Inputs: those of `first_inputs`, then the state; outputs: kResults, then the state.
  ir::VerifiedGraph graph;
  // The loss alone. Inputs: data, then the parameters.
  ir::VerifiedGraph forward;
  // Of a micro-batch, where there are several. Inputs: data, parameters, the scale if there is one,
  // its number if it draws, sums; outputs: the loss, then the sums.
  std::optional<ir::VerifiedGraph> part = std::nullopt;
  size_t data_inputs = 0;  // of the model, and the target
  bool draws = false;      // `part` takes how many micro-batches of all steps came before it
  std::vector<StateValue> state = {};
  std::vector<StateValue> sums = {};  // of a step in parts: of the loss, then of each gradient

  // How many inputs of `graph` come before the state: data, or the sums.
  size_t first_inputs() const { return part ? sums.size() : data_inputs; }
};

// Refuses, naming the value: kInvalidArgument for a model without parameters, a loss that does not
// fit its output, a parameter that the loss does not depend on, a frozen name that nothing has,
// numbers that make no sense; kUnsupported for what cannot be differentiated.
Result<Step> make_step(const ir::VerifiedGraph& model, const StepSpec& spec, const ir::OpSet& ops);

// The trained model: the given one with these parameters' bytes (by name) instead of its own.
Result<ir::Graph> with_parameters(const ir::Graph& model, const std::vector<StateValue>& state,
                                  const std::vector<SharedBytes>& bytes);

}  // namespace pyc::train
