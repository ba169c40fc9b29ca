#include "lower/lower.h"

#include <fmt/format.h>

#include "base/escape.h"
#include "ir/literal.h"
#include "loop/verify.h"
#include "lower/groups.h"
#include "lower/kernel_builder.h"

namespace pyc::lower {

Result<LoweredGraph> lower_graph(const ir::VerifiedGraph& graph, const LowerOptions& options) {
  Grouping grouping = form_groups(*graph, options);
  LoweredGraph out{.graph = graph, .groups = {}, .output_values = {}, .decisions = {}};
  out.decisions = std::move(grouping.decisions);
  out.output_values = grouping.output_values;
  for (const GroupPlan& plan : grouping.groups) {
    Group group = build_group(*graph, grouping, plan);
    group.name = fmt::format("g{}", out.groups.size());
    group.kernel.name = group.name;
    std::string why_not;
    if (plan.shape != GroupShape::kKernel) {
      group.contraction = find_contraction(group.kernel, &why_not);
    }
    if (group.contraction) group.kind = GroupKind::kContraction;
    if (plan.lane_reduction) {
      out.decisions.push_back({.what = "contraction:" + group.name,
                               .chosen = group.contraction ? "matrix product" : "generic loops",
                               .reason = group.contraction ? "linear_operands" : why_not,
                               .detail = "",
                               .alternatives = {}});
    }
    if (Status s = loop::verify_kernel(group.kernel); !s.ok()) {
      return std::move(s).with_context("kernel of group " + group.name);
    }
    out.groups.push_back(std::move(group));
  }
  return out;
}

std::string print_groups(const LoweredGraph& lowered) {
  const ir::Graph& g = *lowered.graph;
  std::string text;
  for (const Group& group : lowered.groups) {
    text += fmt::format("group {} {} {{\n", group.name,
                        group.kind == GroupKind::kContraction ? "contraction" : "loop");
    for (size_t i = 0; i < group.members.size(); ++i) {
      const ir::Node& node = g.nodes[group.members[i]];
      text += fmt::format("  %{} = {} [{}]\n", ir::format_name(g.value(node.outputs[0]).name),
                          node.op->name, group.reasons[i]);
    }
    for (size_t i = 0; i < group.buffer_values.size(); ++i) {
      const loop::Buffer& b = group.kernel.buffers[i];
      const char* access = b.access == loop::Access::kRead    ? "read"
                           : b.access == loop::Access::kWrite ? "write"
                                                              : "scratch";
      text += fmt::format("  b{}: {} {} {}[{}]\n", i, access, printable(b.name),
                          dtype_name(b.dtype), b.elements);
    }
    if (group.contraction) {
      const Contraction& c = *group.contraction;
      text += fmt::format("  product batch {} m {} n {} k {} segment {}\n", c.batch_size(), c.m,
                          c.n, c.k, c.segment);
    }
    text += "}\n";
  }
  return text;
}

}  // namespace pyc::lower
