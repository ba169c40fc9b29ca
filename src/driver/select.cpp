#include "driver/select.h"

#include <fmt/format.h>

#include <algorithm>

namespace pyc::driver {
namespace {

// "f32_matmul__neon_8x8" is named by itself and by its family, "f32_matmul".
bool names_kernel(std::string_view text, std::string_view kernel) {
  return kernel.starts_with(text) &&
         (kernel.size() == text.size() || kernel.substr(text.size()).starts_with("__"));
}

}  // namespace

Result<Selection> select_kernels(const lower::LoweredGraph& lowered,
                                 const backends::Backend& backend,
                                 const backends::BackendOptions& options,
                                 std::span<const std::string> excluded, bool any_order) {
  Selection out;
  for (const lower::Group& group : lowered.groups) {
    std::vector<backends::Candidate> candidates =
        backend.candidates(*lowered.graph, group, options);
    Decision decision{.what = "kernel:" + group.name,
                      .chosen = "",
                      .reason = "least_cost",
                      .detail = "",
                      .alternatives = {}};
    backends::Candidate* best = nullptr;
    int applicable = 0;
    for (backends::Candidate& c : candidates) {
      if (std::any_of(excluded.begin(), excluded.end(),
                      [&](const std::string& e) { return names_kernel(e, c.name); })) {
        c.rejected = "excluded_by_caller";
      }
      if (c.rejected.empty() && c.order != group.order && !any_order) c.rejected = "other_order";
      decision.alternatives.push_back(
          {.name = c.name, .cost_ns = c.cost_ns, .rejected = c.rejected});
      if (!c.rejected.empty()) continue;
      ++applicable;
      if (best == nullptr || c.cost_ns < best->cost_ns) best = &c;
    }
    if (best == nullptr) {
      return Status(Code::kUnsupported,
                    fmt::format("group {}: no kernel of backend '{}' is left for it", group.name,
                                backend.name()));
    }
    decision.chosen = best->name;
    if (applicable == 1) decision.reason = "only_applicable";
    if (best->order != group.order) decision.detail = "order " + best->order;
    out.decisions.push_back(std::move(decision));
    out.needs.push_back(best->needs);
    out.chosen.push_back(std::move(*best));
  }
  return out;
}

void take_candidate(size_t alternative, const lower::LoweredGraph& lowered, size_t g,
                    const backends::Backend& backend, const backends::BackendOptions& options,
                    Selection& selection) {
  std::vector<backends::Candidate> again =
      backend.candidates(*lowered.graph, lowered.groups[g], options);
  Decision& decision = selection.decisions[g];
  PYC_CHECK(alternative < again.size() &&
                again[alternative].name == decision.alternatives[alternative].name,
            "a backend offers other candidates when it is asked again");
  decision.chosen = again[alternative].name;
  selection.needs[g] = again[alternative].needs;
  selection.chosen[g] = std::move(again[alternative]);
}

}  // namespace pyc::driver
