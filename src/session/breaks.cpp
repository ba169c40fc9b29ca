#include "session/breaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace pyc::session {
namespace {

using open::Break;
using open::BreakReason;

constexpr const char* kUnknownOp = "unknown";

// Whether the node runs on the host, or not at all, because of this break.
bool is_not_compiled(const open::OpenNode& node, const Break& why) {
  if (why.reason != BreakReason::kWaitsForValue) return true;
  return node.op->host != nullptr && !open::regions_of(node).empty();
}

std::string summary_of(const BreakReport& report) {
  if (report.open_shapes) {
    return fmt::format("{} nodes, shapes are open: how many compile is not known before a run",
                       report.nodes) +
           (report.breaks == 0 ? "" : fmt::format("; certain breaks: {}", report.breaks));
  }
  if (report.breaks == 0) {
    return fmt::format("all {} nodes compile as one segment", report.nodes);
  }
  std::string ops;
  for (const auto& [op, count] : report.ops) {
    ops += fmt::format("{}{}×{}", ops.empty() ? "" : ", ", count, op);
  }
  return fmt::format("{} of {} nodes compile; breaks at {} ({}), the first is {} '{}': {}",
                     report.compiled, report.nodes, report.breaks, ops, report.first_op,
                     report.first_node, report.first_reason);
}

// The input of the model that is called so.
bool is_input(const open::OpenGraph& graph, const std::string& name) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(),
                     [&](open::OpenId v) { return graph.values[v].name == name; });
}

}  // namespace

double BreakReport::compilability_score() const {
  if (open_shapes) return std::numeric_limits<double>::quiet_NaN();
  return nodes == 0 ? 1.0 : static_cast<double>(compiled) / static_cast<double>(nodes);
}

Decision BreakReport::decision() const {
  return {.what = "graph_breaks",
          .chosen = open_shapes
                        ? fmt::format("score not known, certain breaks: {}", breaks)
                        : fmt::format("score {:.4f}, breaks: {}", compilability_score(), breaks),
          .reason = breaks > 0    ? first_reason
                    : open_shapes ? "open_shapes"
                                  : "compiled_whole",
          .detail = summary,
          .alternatives = {}};
}

BreakReport report_breaks(const open::OpenGraph& graph, const Breaks& breaks, bool open_shapes) {
  BreakReport report{.open_shapes = open_shapes};
  const std::vector<bool> done = open::initial_state(graph).done;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (done[n]) continue;
    const open::OpenNode& node = graph.nodes[n];
    ++report.nodes;
    const auto it = breaks.find(n);
    if (it == breaks.end()) {
      ++report.compiled;
      continue;
    }
    if (!is_not_compiled(node, it->second)) ++report.compiled;
    const std::string op = node.op == nullptr ? kUnknownOp : node.op->name;
    ++report.ops[op];
    if (report.breaks++ > 0) continue;
    report.first_node = node.name;
    report.first_op = op;
    report.first_reason = std::string(open::reason_name(it->second.reason));
  }
  report.summary = summary_of(report);
  return report;
}

BreakReport report_whole(int64_t nodes) {
  BreakReport report{.nodes = nodes, .compiled = nodes};
  report.summary = summary_of(report);
  return report;
}

Breaks certain_breaks(const open::OpenGraph& graph) {
  Breaks breaks;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const open::OpenOp* op = graph.nodes[n].op;
    if (op != nullptr && op->close != nullptr) continue;
    breaks[n] = {.node = n,
                 .reason = op == nullptr ? BreakReason::kNoRule : BreakReason::kHostFunction};
  }
  return breaks;
}

Breaks breaks_of(const open::OpenGraph& graph, const std::vector<Break>& found) {
  Breaks breaks = certain_breaks(graph);
  for (const Break& b : found) {
    if (b.reason == BreakReason::kWaitsForNode) continue;
    if (b.reason == BreakReason::kWaitsForValue && is_input(graph, b.detail)) continue;
    breaks.emplace(b.node, b);
  }
  return breaks;
}

}  // namespace pyc::session
