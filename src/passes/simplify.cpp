#include "ir/patch.h"
#include "passes/passes.h"

namespace pyc::passes {

Result<bool> simplify(ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, context.ops);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    const ir::NodeView node = patch.node(n);
    if (node.op().simplify == nullptr || node.op().traits.moves_data) continue;
    patch.at(n);
    const ir::ValueId by = node.op().simplify(patch, node);
    if (by != ir::kNoId) patch.replace(node.outputs()[0], by);
  }
  return patch.apply();
}

}  // namespace pyc::passes
