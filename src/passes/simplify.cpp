#include "passes/look.h"

namespace pyc::passes {

Result<bool> simplify(ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, context.ops);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    const ir::NodeView node = patch.node(n);
    if (node.op().traits.moves_data) continue;
    patch.at(n);
    const auto done = apply_rules(patch, node, context);
    if (!done.ok()) return done.status();
  }
  return patch.apply();
}

}  // namespace pyc::passes
