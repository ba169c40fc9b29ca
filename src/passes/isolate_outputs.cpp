#include <set>
#include <string>
#include <vector>

#include "passes/passes.h"

namespace pyc::passes {

Result<bool> isolate_outputs(ir::Graph& graph, const PassContext& context) {
  std::vector<bool> taken(graph.values.size());
  std::set<std::string, std::less<>> names;  // all, once one is needed
  bool changed = false;
  for (ir::ValueId& output : graph.outputs) {
    if (graph.value(output).kind == ir::ValueKind::kResult && !taken[output]) {
      taken[output] = true;
      continue;
    }
    if (names.empty()) {
      for (const ir::Value& value : graph.values) names.insert(value.name);
    }
    const ir::Value source = graph.value(output);
    const auto id = static_cast<ir::ValueId>(graph.values.size());
    std::string name = source.name + ".out";
    while (!names.insert(name).second) name += "_";
    graph.nodes.push_back({.op = context.ops.find("identity"),
                           .inputs = {output},
                           .outputs = {id},
                           .attrs = {},
                           .loc = source.name});
    graph.values.push_back({.name = std::move(name),
                            .type = source.type,
                            .kind = ir::ValueKind::kResult,
                            .producer = static_cast<ir::NodeId>(graph.nodes.size() - 1),
                            .constant = nullptr});
    context.count("copied_output");
    taken.push_back(true);
    output = id;
    changed = true;
  }
  return changed;
}

}  // namespace pyc::passes
