#include <fmt/format.h>

#include <algorithm>

#include "autograd/gradient.h"
#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

// Inputs: rate, step number, then n tensors of each kind; outputs: the new ones of all kinds but
// the gradients.
template <Name Op>
Status optimizer(CloseContext& c, size_t kinds, Attrs attrs) {
  if (c.inputs() < 2 || (c.inputs() - 2) % kinds != 0) {
    return c.refused(Code::kInvalidArgument,
                     fmt::format("expected 2 + {}n inputs, found {}", kinds, c.inputs()));
  }
  attrs["norm_coefficient"] = c.attr_float("norm_coefficient", 0.0);
  const size_t n = (c.inputs() - 2) / kinds;
  for (size_t i = 0; i < n; ++i) {
    std::vector<ValueId> in{c.input(0), c.input(1)};
    for (size_t k = 0; k < kinds; ++k) in.push_back(c.input(2 + k * n + i));
    const ValueId first = c.op(Op.text, in, attrs);
    for (size_t k = 0; k + 1 < kinds && c.ok(); ++k) c.set(k * n + i, c.result(first, k));
  }
  return c.status();
}

Status adam(CloseContext& c) {
  return optimizer<"adam">(c, 4,
                           {{"alpha", c.attr_float("alpha", 0.9)},
                            {"beta", c.attr_float("beta", 0.999)},
                            {"epsilon", c.attr_float("epsilon", 0.0)},
                            {"norm_coefficient_post", c.attr_float("norm_coefficient_post", 0.0)}});
}

Status adagrad(CloseContext& c) {
  return optimizer<"adagrad">(c, 3,
                              {{"decay_factor", c.attr_float("decay_factor", 0.0)},
                               {"epsilon", c.attr_float("epsilon", 0.0)}});
}

Status momentum(CloseContext& c) {
  return optimizer<"momentum">(c, 3,
                               {{"alpha", c.attr_float("alpha", 0.9)},
                                {"beta", c.attr_float("beta", 1.0)},
                                {"mode", c.attr_string("mode", "standard")}});
}

// Graphs over this size are not differentiated: what a gradient of gradients takes multiplies.
constexpr size_t kMaxDifferentiatedNodes = size_t{1} << 17;

// Names the point where x is differentiated, for messages.
std::string point_name(const ir::Graph& graph, const std::string& x) {
  std::string name = "at." + x;
  const auto taken = [&](const ir::Value& v) { return v.name == name; };
  while (std::ranges::any_of(graph.values, taken)) name += '_';
  return name;
}

// The gradient of y in each of xs. The importer has put what makes y of xs and zs into a region
// (differentiated_region); the node's inputs are the values it is differentiated at, which need not
// be the model's xs. Where they are, the passes join the region with the model's own nodes. Of a y
// with several elements it is the gradient of their sum.
Status gradient(CloseContext& c) {
  const open::OpenGraph* body = c.attr_graph("body");
  const std::vector<std::string>* xs = c.attr_strings("xs");
  if (!c.ok()) return c.status();
  if (body == nullptr || xs == nullptr || body->outputs.size() != 1) {
    return c.refused(Code::kInvalidArgument, "attributes 'xs' and 'y' are needed");
  }
  if (xs->size() > c.inputs() || c.outputs() > xs->size()) {
    return c.refused(Code::kInvalidArgument,
                     fmt::format("expected an input and at most one output for each of {} tensors "
                                 "in xs, found {} and {}",
                                 xs->size(), c.inputs(), c.outputs()));
  }
  std::vector<ValueId> at = c.all_inputs();
  std::vector<ValueId> wanted;
  for (size_t i = 0; i < xs->size() && c.ok(); ++i) {
    // A value of its own: what else reads the input is no function of x.
    const std::string name = point_name(c.builder().graph(), (*xs)[i]);
    auto own = c.builder().op("identity", {at[i]}, {}, name, c.node().name);
    PYC_TRY(own.status());
    at[i] = *own;
    if (c.wants(i)) wanted.push_back(*own);
  }
  const std::vector<ValueId> results = c.region(*body, at);
  if (!c.ok()) return c.status();
  ValueId y = results[0];
  if (c.type(y).elements() != 1) {
    y = c.op("reduce_sum", {y}, {{"axes", Ints{}}, {"keepdims", false}});
  }
  if (!c.ok()) return c.status();
  const size_t nodes = c.builder().graph().nodes.size();
  if (nodes > kMaxDifferentiatedNodes) {
    return c.refused(Code::kBudgetExceeded,
                     fmt::format("{} nodes are too many to differentiate, the most is {}", nodes,
                                 kMaxDifferentiatedNodes));
  }
  PYC_ASSIGN(const std::vector<ValueId> grads, autograd::append_gradients(c.builder(), y, wanted));
  size_t next = 0;
  for (size_t i = 0; i < c.outputs(); ++i) {
    if (c.wants(i)) c.set(i, grads[next++]);
  }
  return c.status();
}

constexpr std::string_view kTraining = "ai.onnx.preview.training";

constexpr Rule kTrainingRules[] = {
    {"Adagrad", adagrad, nullptr, 1, kTraining},
    {"Adam", adam, nullptr, 1, kTraining},
    {"Gradient", gradient, nullptr, 1, kTraining},
    {"Momentum", momentum, nullptr, 1, kTraining},
};

}  // namespace

Rules training_rules() { return kTrainingRules; }

}  // namespace pyc::onnx
