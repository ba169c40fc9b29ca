#include "driver/host_call.h"

#include <fmt/format.h>

namespace pyc::driver {

using ir::OpenGraph;
using ir::OpenId;

const DynValue& NodeCall::input(size_t i) const {
  const OpenId id = i < node_.inputs.size() ? node_.inputs[i] : ir::kAbsentId;
  return id == ir::kAbsentId ? absent_ : *state_.values[id];
}

void NodeCall::set_output(size_t i, DynValue value) {
  if (i < outputs_.size()) outputs_[i] = std::move(value);
}

Result<std::vector<DynValue>> NodeCall::run_region(std::string_view attr_name,
                                                   std::vector<DynValue> inputs) {
  const auto* region = attr<std::shared_ptr<const OpenGraph>>(attr_name);
  if (region == nullptr || *region == nullptr) {
    return Status(Code::kInvalidArgument, fmt::format("attribute '{}' is no graph", attr_name));
  }
  std::vector<DynValue> captured;
  for (const OpenGraph::Capture& c : (*region)->captures) {
    captured.push_back(*state_.values[c.outer]);
  }
  return run_(**region, std::move(inputs), captured);
}

Result<std::vector<DynValue>> NodeCall::run_node(std::vector<DynValue> inputs) {
  if (inputs.size() != node_.inputs.size()) {
    return Status(Code::kInvalidArgument, "a node is run with as many inputs as it has");
  }
  std::vector<DynValue> present;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node_.inputs[i] != ir::kAbsentId) present.push_back(std::move(inputs[i]));
  }
  PYC_ASSIGN(std::vector<DynValue> given, run_(alone_(), std::move(present), {}));
  std::vector<DynValue> outputs(node_.outputs.size());
  auto next = given.begin();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node_.outputs[i] != ir::kAbsentId) outputs[i] = std::move(*next++);
  }
  return outputs;
}

OpenGraph graph_of_node(const ir::OpenNode& node) {
  OpenGraph graph;
  graph.name = "alone";
  graph.nodes.push_back(node);
  const auto rename = [&](std::vector<OpenId>& ids, std::vector<OpenId>& ends) {
    for (OpenId& id : ids) {
      if (id == ir::kAbsentId) continue;
      id = static_cast<OpenId>(graph.values.size());
      graph.values.emplace_back();
      ends.push_back(id);
    }
  };
  rename(graph.nodes[0].inputs, graph.inputs);
  rename(graph.nodes[0].outputs, graph.outputs);
  return graph;
}

}  // namespace pyc::driver
