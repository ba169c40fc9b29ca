#include "driver/folded.h"

#include <algorithm>
#include <string>
#include <vector>

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

std::shared_ptr<eval::Evaluators> make_evaluators() { return passes::make_evaluators(); }

Result<std::optional<std::vector<SharedBytes>>> folded_outputs(const ir::VerifiedGraph& graph,
                                                               eval::Evaluators* evaluators) {
  for (const ir::ValueId v : graph->outputs) {
    if (is_float(graph->type(v).dtype)) return std::optional<std::vector<SharedBytes>>();
  }
  const FpStateGuard fp_state;  // constants do not depend on the caller's
  DecisionLog log;
  const passes::PassOptions options{.evaluators = evaluators};
  // Without floats, what the other passes do keeps every bit, and takes longer than folding.
  const bool floats = std::ranges::any_of(
      graph->values, [](const ir::Value& value) { return is_float(value.type.dtype); });
  static const std::vector<std::string> kFolding{"decompose", "fold_constants"};
  PYC_ASSIGN(const ir::VerifiedGraph canonical,
             floats ? passes::run_pipeline(graph, ops::all_ops(), options, &log)
                    : passes::run_passes(graph, ops::all_ops(), kFolding, options, &log));
  std::vector<SharedBytes> bytes;
  for (const ir::ValueId v : canonical->outputs) {
    const ir::Value* constant = constant_of(*canonical, v);
    if (constant == nullptr) return std::optional<std::vector<SharedBytes>>();
    bytes.push_back(constant->constant->bytes);
  }
  return std::optional(std::move(bytes));
}

}  // namespace pyc::driver
