#include "autograd/gradient.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "autograd/join.h"
#include "autograd/prune.h"

namespace pyc::autograd {
namespace {

using ir::kNoId;
using ir::NodeId;
using ir::ValueId;

// What a message calls a node.
std::string shown(const ir::Graph& graph, const ir::Node& node) {
  const std::string& result = graph.value(node.outputs[0]).name;
  const std::string from = node.loc.empty() ? "" : fmt::format(" from '{}'", node.loc);
  return fmt::format("op '{}' of %{}{}", node.op->name, result, from);
}

// One differentiation. Nodes are appended to the builder while earlier ones are walked, so nodes
// and types are copied before anything is built.
class ReverseWalk {
 public:
  explicit ReverseWalk(ir::GraphBuilder& builder) : builder_(builder) {}

  const ir::Graph& graph() const { return builder_.graph(); }

  void want(ValueId v) {
    grow();
    depends_[v] = true;
  }

  // Sets the gradient of the loss to 1 and walks all nodes there are.
  Status run(ValueId loss) {
    const ir::TensorType type = builder_.type(loss);
    PYC_ASSIGN(const ValueId one, builder_.constant(type, ir::splat_data(type, 1.0)));
    const auto nodes = static_cast<NodeId>(graph().nodes.size());
    mark_dependent(0, nodes);
    if (!depends_[loss]) return {};
    grads_[loss] = one;
    return walk(0, nodes);
  }

  Result<ValueId> gradient(ValueId v) {
    PYC_TRY(settle(v));
    return grads_[v];
  }

  Result<ValueId> zeros(ValueId v) {
    const ir::TensorType type = builder_.type(v);
    PYC_ASSIGN(const ValueId zero, builder_.scalar(type.dtype, 0.0));
    return builder_.op("expand", {zero}, {{"shape", type.shape}});
  }

  // Gradients are named after their values where the name is free.
  void name_gradients(ir::Graph& graph, size_t forward_values) {
    std::set<std::string, std::less<>> taken;
    for (const ir::Value& value : graph.values) taken.insert(value.name);
    for (ValueId v = 0; v < forward_values; ++v) {
      if (grads_[v] == kNoId || grads_[v] < forward_values || named_.contains(grads_[v])) continue;
      const std::string name = "grad." + graph.values[v].name;
      if (!taken.insert(name).second) continue;
      named_.insert(grads_[v]);
      graph.values[grads_[v]].name = name;
    }
  }

 private:
  void grow() {
    depends_.resize(graph().values.size(), false);
    grads_.resize(graph().values.size(), kNoId);
  }

  // A float depends on a wanted value if its node reads one that does.
  void mark_dependent(NodeId begin, NodeId end) {
    grow();
    for (NodeId n = begin; n < end; ++n) {
      const ir::Node& node = graph().nodes[n];
      bool any = false;
      for (ValueId v : node.inputs) any = any || depends_[v];
      if (!any) continue;
      for (ValueId v : node.outputs) {
        if (is_float(graph().type(v).dtype)) depends_[v] = true;
      }
    }
  }

  Status walk(NodeId begin, NodeId end) {
    for (NodeId n = end; n-- > begin;) {
      const ir::Node node = graph().nodes[n];
      std::vector<ValueId> grads;
      bool any = false;
      for (ValueId v : node.outputs) {
        PYC_TRY(settle(v));
        grads.push_back(depends_[v] ? grads_[v] : kNoId);
        any = any || grads.back() != kNoId;
      }
      if (any) PYC_TRY(send_back(node, grads));
    }
    return {};
  }

  // Adds what `node` sends to its inputs.
  Status send_back(const ir::Node& node, const std::vector<ValueId>& grads) {
    const ir::OpDef& op = *node.op;
    if (!op.no_gradient.empty()) return refuse(node, std::string(op.no_gradient));
    if (op.gradient != nullptr) return by_rule(node, grads);
    const auto form = op.gradient_form != nullptr ? op.gradient_form : op.decompose;
    if (form == nullptr) return refuse(node, "it has no rule");
    return by_form(node, grads, form);
  }

  Status by_rule(const ir::Node& node, const std::vector<ValueId>& grads) {
    auto made = node.op->gradient(builder_, node, grads);
    grow();
    if (!made.ok()) return std::move(made).status().with_context(shown(graph(), node));
    PYC_CHECK(made->size() == node.inputs.size(), "a gradient rule gave another number of inputs");
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (!depends_[input]) continue;
      if ((*made)[i] == kNoId) return refuse(node, fmt::format("it has none in input {}", i));
      PYC_CHECK(graph().type((*made)[i]) == graph().type(input),
                "a gradient rule gave another type than the input's");
      PYC_TRY(add(input, (*made)[i]));
    }
    return {};
  }

  // The same through the ops that `form` makes of the node.
  Status by_form(const ir::Node& node, const std::vector<ValueId>& grads,
                 decltype(ir::OpDef::decompose) form) {
    const auto begin = static_cast<NodeId>(graph().nodes.size());
    ir::Node named = node;
    if (named.loc.empty()) named.loc = graph().value(node.outputs[0]).name;
    auto results = form(builder_, named);
    if (!results.ok()) return std::move(results).status().with_context(shown(graph(), node));
    PYC_CHECK(results->size() == node.outputs.size(), "a form gave another number of outputs");
    const auto end = static_cast<NodeId>(graph().nodes.size());
    mark_dependent(begin, end);
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i] != kNoId && depends_[(*results)[i]]) PYC_TRY(add((*results)[i], grads[i]));
    }
    return walk(begin, end);
  }

  // What can be joined with others of its kind waits for the next one.
  Status add(ValueId v, ValueId grad) {
    const Summand kind = summand(graph(), grad);
    const auto found = waiting_.find(v);
    if (found != waiting_.end() && kind != summand(graph(), found->second[0])) {
      PYC_TRY(settle(v));
    }
    if (kind == Summand::kPlain) return add_to_sum(v, grad);
    waiting_[v].push_back(grad);
    return {};
  }

  Status add_to_sum(ValueId v, ValueId grad) {
    if (grads_[v] == kNoId) {
      grads_[v] = grad;
      return {};
    }
    PYC_ASSIGN(grads_[v], builder_.op("add", {grads_[v], grad}));
    grow();
    return {};
  }

  // Adds what waits.
  Status settle(ValueId v) {
    const auto found = waiting_.find(v);
    if (found == waiting_.end()) return {};
    const std::vector<ValueId> summands = std::move(found->second);
    waiting_.erase(found);
    ValueId sum = summands[0];
    if (summands.size() > 1) {
      PYC_ASSIGN(sum, joined(builder_, summands));
    }
    grow();
    return add_to_sum(v, sum);
  }

  Status refuse(const ir::Node& node, const std::string& why) const {
    return Status(Code::kUnsupported,
                  fmt::format("{} has no gradient: {}", shown(graph(), node), why))
        .with_node(graph().value(node.outputs[0]).name);
  }

  ir::GraphBuilder& builder_;
  std::vector<bool> depends_;   // by value: on a wanted one, as a float
  std::vector<ValueId> grads_;  // by value: what was sent back so far, or kNoId
  // By value: summands of one kind, sent one after the other.
  std::map<ValueId, std::vector<ValueId>> waiting_;
  std::set<ValueId> named_;
};

Status check_loss(const ir::Graph& graph, ValueId loss) {
  if (loss >= graph.values.size()) {
    return {Code::kInvalidArgument, fmt::format("the loss must be a value id under {}, found {}",
                                                graph.values.size(), loss)};
  }
  const ir::TensorType& type = graph.type(loss);
  if (is_float(type.dtype) && type.elements() == 1) return {};
  return Status(Code::kInvalidArgument,
                fmt::format("the loss %{} must be a float of one element, found {}",
                            graph.value(loss).name, type.to_string()))
      .with_node(graph.value(loss).name);
}

Status check_wanted(const ir::Graph& graph, ValueId v) {
  if (v >= graph.values.size()) {
    return {Code::kInvalidArgument,
            fmt::format("expected a value id under {}, found {}", graph.values.size(), v)};
  }
  if (is_float(graph.type(v).dtype)) return {};
  return Status(Code::kInvalidArgument,
                fmt::format("%{} must be a float to have a gradient, found {}", graph.value(v).name,
                            graph.type(v).to_string()))
      .with_node(graph.value(v).name);
}

// d loss / d value for each wanted value, appended to what `backward` builds.
Result<std::vector<ValueId>> all_gradients(ReverseWalk& backward, ValueId loss,
                                           std::span<const ValueId> wanted,
                                           const GradientOptions& options) {
  PYC_TRY(check_loss(backward.graph(), loss));
  for (ValueId v : wanted) PYC_TRY(check_wanted(backward.graph(), v));
  for (ValueId v : wanted) backward.want(v);
  PYC_TRY(backward.run(loss));
  std::vector<ValueId> grads;
  for (ValueId v : wanted) {
    PYC_ASSIGN(ValueId grad, backward.gradient(v));
    if (grad == kNoId && !options.allow_unused) {
      const ir::Graph& graph = backward.graph();
      return Status(Code::kInvalidArgument,
                    fmt::format("the loss %{} does not depend on %{}", graph.value(loss).name,
                                graph.value(v).name))
          .with_node(graph.value(v).name);
    }
    if (grad == kNoId) {
      PYC_ASSIGN(grad, backward.zeros(v));
    }
    grads.push_back(grad);
  }
  return grads;
}

}  // namespace

Result<std::vector<ValueId>> append_gradients(ir::GraphBuilder& builder, ValueId loss,
                                              std::span<const ValueId> wanted,
                                              const GradientOptions& options) {
  ReverseWalk backward(builder);
  return all_gradients(backward, loss, wanted, options);
}

Result<ir::VerifiedGraph> differentiate(const ir::VerifiedGraph& graph, ValueId loss,
                                        std::span<const ValueId> wanted, const ir::OpSet& ops,
                                        const GradientOptions& options) {
  ir::GraphBuilder builder(ops, *graph);
  ReverseWalk backward(builder);
  PYC_ASSIGN(const std::vector<ValueId> grads, all_gradients(backward, loss, wanted, options));
  for (const ValueId grad : grads) PYC_TRY(builder.output(grad));
  ir::Graph joined = std::move(builder).take();
  backward.name_gradients(joined, graph->values.size());
  joined = without_unused(std::move(joined), graph->nodes.size(), graph->values.size());
  return ir::verify_graph(std::move(joined), &graph);
}

}  // namespace pyc::autograd
