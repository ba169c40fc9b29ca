#include "driver/folded.h"

#include "base/fp_state.h"
#include "ops/registry.h"
#include "passes/pipeline.h"

namespace pyc::driver {
namespace {

// The constant that an output is, or is a copy of; null: it is none.
const ir::Value* constant_of(const ir::Graph& graph, ir::ValueId output) {
  const ir::Value* value = &graph.value(output);
  if (value->kind == ir::ValueKind::kResult) {
    const ir::Node& node = graph.nodes[value->producer];
    if (node.op->name != "identity") return nullptr;
    value = &graph.value(node.inputs[0]);
  }
  return value->kind == ir::ValueKind::kConstant ? value : nullptr;
}

}  // namespace

Result<std::optional<std::vector<SharedBytes>>> folded_outputs(const ir::VerifiedGraph& graph) {
  for (const ir::ValueId v : graph->outputs) {
    if (is_float(graph->type(v).dtype)) return std::optional<std::vector<SharedBytes>>();
  }
  const FpStateGuard fp_state;  // constants do not depend on the caller's
  DecisionLog log;
  PYC_ASSIGN(const ir::VerifiedGraph canonical,
             passes::run_pipeline(graph, ops::all_ops(), {}, &log));
  std::vector<SharedBytes> bytes;
  for (const ir::ValueId v : canonical->outputs) {
    const ir::Value* constant = constant_of(*canonical, v);
    if (constant == nullptr) return std::optional<std::vector<SharedBytes>>();
    bytes.push_back(constant->constant->bytes);
  }
  return std::optional(std::move(bytes));
}

}  // namespace pyc::driver
