#include "exec/host_call.h"

#include <fmt/format.h>

#include <algorithm>

namespace pyc::exec {

using open::BreakReason;
using open::OpenGraph;
using open::OpenId;

namespace {

// Whether a node that waits is closed once what it waits for is there. The host is for nodes that
// closing left to it, for other values than tensors, and for regions, which run as they are.
bool closes_later(const open::OpenNode& node, BreakReason why, const Frame& frame) {
  const bool waits = why == BreakReason::kWaitsForValue || why == BreakReason::kWaitsForNode;
  if (!waits || node.op->close == nullptr || !open::regions_of(node).empty()) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](OpenId v) { return v == open::kAbsentId || frame.find(v)->is_tensor(); });
}

}  // namespace

// The first complex tensor among the node's inputs, all of which are there; null: none.
const DynValue* complex_input(const open::OpenNode& node, const Frame& frame) {
  for (const OpenId v : node.inputs) {
    if (v == open::kAbsentId) continue;
    const DynValue* const value = frame.find(v);
    if (value->is_tensor() && is_complex(value->dtype)) return value;
  }
  return nullptr;
}

bool runs_on_host(const open::Break& why, const Frame& frame) {
  const open::OpenNode& node = frame.graph().nodes[why.node];
  if (!frame.reads_present(why.node)) return false;
  if (complex_input(node, frame) != nullptr) return true;
  return node.op->host != nullptr && !closes_later(node, why.reason, frame);
}

const DynValue& NodeCall::input(size_t i) const {
  const OpenId id = i < node_.inputs.size() ? node_.inputs[i] : open::kAbsentId;
  return id == open::kAbsentId ? absent_ : *frame_.find(id);
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
    captured.push_back(*frame_.find(c.outer));
  }
  return run_(**region, std::move(inputs), captured);
}

Result<std::vector<DynValue>> NodeCall::run_node(std::vector<DynValue> inputs) {
  if (inputs.size() != node_.inputs.size()) {
    return Status(Code::kInvalidArgument, "a node is run with as many inputs as it has");
  }
  std::vector<DynValue> present;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node_.inputs[i] != open::kAbsentId) present.push_back(std::move(inputs[i]));
  }
  PYC_ASSIGN(std::vector<DynValue> given, run_(alone_(), std::move(present), {}));
  std::vector<DynValue> outputs(node_.outputs.size());
  auto next = given.begin();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (node_.outputs[i] != open::kAbsentId) outputs[i] = std::move(*next++);
  }
  return outputs;
}

OpenGraph graph_of_node(const open::OpenNode& node) {
  OpenGraph graph;
  graph.name = "alone";
  graph.nodes.push_back(node);
  const auto rename = [&](std::vector<OpenId>& ids, std::vector<OpenId>& ends) {
    for (OpenId& id : ids) {
      if (id == open::kAbsentId) continue;
      id = static_cast<OpenId>(graph.values.size());
      graph.values.emplace_back();
      ends.push_back(id);
    }
  };
  rename(graph.nodes[0].inputs, graph.inputs);
  rename(graph.nodes[0].outputs, graph.outputs);
  return graph;
}

}  // namespace pyc::exec
