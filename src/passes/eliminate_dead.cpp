#include "ir/patch.h"
#include "passes/passes.h"

namespace pyc::passes {

Result<bool> eliminate_dead(ir::Graph& graph, const PassContext& context) {
  return ir::Patch(graph, context.ops).apply();
}

}  // namespace pyc::passes
