#include <set>

#include "passes/passes.h"

namespace pyc::passes {

Result<bool> isolate_outputs(ir::Graph& graph, const PassContext& context) {
  std::set<ir::ValueId> taken;
  std::set<std::string, std::less<>> names;
  for (const ir::Value& value : graph.values) names.insert(value.name);
  bool changed = false;
  for (ir::ValueId& output : graph.outputs) {
    const ir::Value source = graph.value(output);
    if (source.kind == ir::ValueKind::kResult && taken.insert(output).second) continue;
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
    taken.insert(id);
    output = id;
    changed = true;
  }
  return changed;
}

}  // namespace pyc::passes
