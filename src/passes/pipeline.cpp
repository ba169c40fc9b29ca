#include "passes/pipeline.h"

#include <fmt/format.h>

#include "passes/passes.h"

namespace pyc::passes {

std::span<const Pass> pipeline() {
  static constexpr Pass kPasses[] = {
      {"decompose", false, decompose},
      {"isolate_outputs", false, isolate_outputs},
      {"eliminate_dead", false, eliminate_dead},
  };
  return kPasses;
}

Result<ir::VerifiedGraph> run_pipeline(ir::VerifiedGraph graph, const ir::OpSet& ops,
                                       DecisionLog* log) {
  for (const Pass& pass : pipeline()) {
    ir::Graph work = *graph;
    const size_t before = work.nodes.size();
    PYC_ASSIGN(const bool changed, pass.run(work, ops));
    log->push_back({.what = fmt::format("pass:{}", pass.name),
                    .chosen = changed ? "changed" : "unchanged",
                    .reason = pass.value_changing ? "value_changing" : "bit_preserving",
                    .detail = fmt::format("{} -> {} nodes", before, work.nodes.size()),
                    .alternatives = {}});
    if (!changed) continue;
    auto verified = ir::verify_graph(std::move(work));
    if (!verified.ok()) {
      return std::move(verified).status().with_context(fmt::format("after pass {}", pass.name));
    }
    graph = std::move(*verified);
  }
  return graph;
}

}  // namespace pyc::passes
