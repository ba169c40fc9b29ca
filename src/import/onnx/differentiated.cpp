#include "import/onnx/differentiated.h"

#include <algorithm>
#include <unordered_map>

namespace pyc::onnx {
namespace {

using open::kAbsentId;
using open::OpenGraph;
using open::OpenId;
using open::OpenNode;

// Nodes of one graph as nodes of a region inside of it.
class RegionOf {
 public:
  explicit RegionOf(const OpenGraph& from) : from_(from) {}

  void input(OpenId outer) { region_.inputs.push_back(define(outer)); }

  void copy(const OpenNode& node) {
    OpenNode made = node;
    for (OpenId& id : made.inputs) id = id == kAbsentId ? id : read(id);
    for (auto& [name, attr] : made.attrs) {
      auto* region = std::get_if<std::shared_ptr<const OpenGraph>>(&attr);
      if (region == nullptr) continue;
      auto moved = std::make_shared<OpenGraph>(**region);
      for (OpenGraph::Capture& c : moved->captures) c.outer = read(c.outer);
      *region = std::move(moved);
    }
    // An output that is given is an input of the region and no longer the node's.
    for (OpenId& id : made.outputs) {
      id = id == kAbsentId || ids_.contains(id) ? kAbsentId : define(id);
    }
    region_.nodes.push_back(std::move(made));
  }

  OpenGraph finish(OpenId y) && {
    region_.outputs = {read(y)};
    return std::move(region_);
  }

 private:
  OpenId define(OpenId outer) {
    const auto made = static_cast<OpenId>(region_.values.size());
    region_.values.push_back(from_.values[outer]);
    region_.values.back().constant.reset();
    ids_[outer] = made;
    return made;
  }

  OpenId read(OpenId outer) {
    const auto known = ids_.find(outer);
    if (known != ids_.end()) return known->second;
    const OpenId made = define(outer);
    region_.values[made].constant = from_.values[outer].constant;
    if (!from_.values[outer].constant) region_.captures.push_back({outer, made});
    return made;
  }

  const OpenGraph& from_;
  OpenGraph region_;
  std::unordered_map<OpenId, OpenId> ids_;  // by value of the graph: what it is in the region
};

}  // namespace

Result<std::shared_ptr<const OpenGraph>> differentiated_region(
    const OpenGraph& graph, std::span<const OpenId> given, OpenId y,
    const std::function<Status(const OpenNode&)>& charge) {
  std::vector<bool> is_given(graph.values.size());
  for (const OpenId v : given) is_given[v] = true;
  std::vector<bool> depends = is_given;
  std::vector<bool> depending(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::vector<OpenId> reads = open::reads_of(graph.nodes[n]);
    depending[n] = std::any_of(reads.begin(), reads.end(), [&](OpenId v) { return depends[v]; });
    if (!depending[n]) continue;
    for (const OpenId v : graph.nodes[n].outputs) {
      if (v != kAbsentId) depends[v] = true;
    }
  }
  std::vector<bool> needed(graph.values.size());
  needed[y] = true;
  std::vector<bool> inside(graph.nodes.size());
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const OpenNode& node = graph.nodes[n];
    inside[n] = depending[n] &&
                std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](OpenId v) { return v != kAbsentId && needed[v] && !is_given[v]; });
    if (!inside[n]) continue;
    for (const OpenId v : open::reads_of(node)) needed[v] = true;
  }
  RegionOf region(graph);
  for (const OpenId v : given) region.input(v);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!inside[n]) continue;
    PYC_TRY(charge(graph.nodes[n]));
    region.copy(graph.nodes[n]);
  }
  return std::make_shared<const OpenGraph>(std::move(region).finish(y));
}

}  // namespace pyc::onnx
