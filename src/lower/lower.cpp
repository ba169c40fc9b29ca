#include "lower/lower.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/escape.h"
#include "ir/literal.h"
#include "loop/rebase.h"
#include "loop/verify.h"
#include "lower/alike.h"
#include "lower/groups.h"
#include "lower/kernel_builder.h"

namespace pyc::lower {
namespace {

void log_layouts(const ir::Graph& graph, const Layouts& layouts, DecisionLog& log) {
  for (ir::ValueId v = 0; v < graph.values.size(); ++v) {
    if (layouts.is_row_major(v)) continue;
    log.push_back({.what = "layout:%" + graph.value(v).name,
                   .chosen = fmt::format("dims {}", fmt::join(layouts.of(v), " ")),
                   .reason = "chosen_layout",
                   .detail = "",
                   .alternatives = {}});
  }
}

Result<Layouts> layouts_of(const ir::Graph& graph, const LowerOptions& options, DecisionLog& log) {
  Layouts layouts;
  if (options.layout_chooser) {
    layouts = options.layout_chooser(graph, options.layout_facts);
    log_layouts(graph, layouts, log);
  } else {
    layouts = choose_layouts(graph, options.layout_facts, log, options.build_alike_once);
  }
  PYC_TRY(verify_layouts(graph, layouts));
  return layouts;
}

void log_order(const Group& group, DecisionLog& log) {
  if (group.order == kCanonicalOrder) return;
  log.push_back({.what = "order:" + group.name,
                 .chosen = group.order,
                 .reason = "unit_of_device_kind",
                 .detail = "",
                 .alternatives = {}});
}

// The same for the kernel that a contraction refers to. Whether its buffers are then the group's.
bool take_offsets_out(const loop::Kernel& kernel, std::span<const int64_t> offsets,
                      Contraction& c) {
  loop::Kernel cut = *c.kernel;
  std::vector<loop::ExprId*> others;
  for (Contraction::Operand* o : {&c.a, &c.b}) {
    for (loop::ExprId* e : {&o->value, &o->load, &o->byte, &o->zero}) others.push_back(e);
  }
  if (loop::rebase(cut, others) != std::vector<int64_t>(offsets.begin(), offsets.end())) {
    return false;
  }
  for (size_t b = 0; b < cut.buffers.size(); ++b) {
    if (cut.buffers[b].elements != kernel.buffers[b].elements) return false;
  }
  for (Contraction::Operand* o : {&c.a, &c.b}) {
    if (o->form == Contraction::Form::kLinear) o->base -= offsets[o->buffer];
  }
  c.kernel = std::make_shared<const loop::Kernel>(std::move(cut));
  return true;
}

// Where in its value a kernel's buffer begins is no part of the kernel. Attention names parts of
// its kernel, which stay as they are.
void take_offsets_out(Group& group) {
  if (group.contraction) {
    loop::Kernel kernel = group.kernel;
    Contraction contraction = *group.contraction;
    std::vector<int64_t> offsets = loop::rebase(kernel);
    if (!take_offsets_out(kernel, offsets, contraction)) return;  // seen differently: left alone
    group.kernel = std::move(kernel);
    group.contraction = std::move(contraction);
    group.buffer_offsets = std::move(offsets);
    return;
  }
  if (!group.attention) group.buffer_offsets = loop::rebase(group.kernel);
}

const char* operands_are(const Contraction& c) {
  switch (std::max(c.a.form, c.b.form)) {
    case Contraction::Form::kLinear:
      return "linear_operands";
    case Contraction::Form::kDigits:
      return "operands_by_digits";
    case Contraction::Form::kComputed:
      break;
  }
  return "computed_operands";
}

void add_group(const std::string& name, const GroupPlan& plan, Group group,
               const std::string& why_not, LoweredGraph& out) {
  group.name = name;
  group.kernel.name = name;
  if (group.contraction) group.kind = GroupKind::kContraction;
  log_order(group, out.decisions);
  if (plan.lane_reduction) {
    out.decisions.push_back(
        {.what = "contraction:" + name,
         .chosen = group.contraction ? "matrix product" : "generic loops",
         .reason = group.contraction ? operands_are(*group.contraction) : why_not,
         .detail = "",
         .alternatives = {}});
  }
  out.groups.push_back(std::move(group));
}

}  // namespace

Result<LoweredGraph> lower_graph(const ir::VerifiedGraph& canonical, const LowerOptions& options) {
  DecisionLog choices;
  PYC_ASSIGN(Layouts layouts, layouts_of(*canonical, options, choices));
  PYC_ASSIGN(const ir::VerifiedGraph graph, place_constants(canonical, layouts));
  Grouping grouping =
      form_groups(*graph, std::move(layouts), Orders(*graph, options.unit), options);
  LoweredGraph out{.graph = graph, .groups = {}, .output_values = {}, .decisions = {}};
  out.decisions = std::move(grouping.decisions);
  out.decisions.insert(out.decisions.begin(), std::move_iterator(choices.begin()),
                       std::move_iterator(choices.end()));
  out.output_values = grouping.output_values;
  BuiltGroups built(*graph, grouping, out.groups);
  for (const GroupPlan& plan : grouping.groups) {
    const std::string name = fmt::format("g{}", out.groups.size());
    auto alike = options.build_alike_once ? built.find(plan) : std::nullopt;
    if (alike) {
      add_group(name, plan, std::move(alike->group), alike->why_not, out);
      continue;
    }
    BuildNotes notes;
    Group group = build_group(*graph, grouping, plan, &notes);
    group.kernel.name = name;
    if (options.offsets_in_references) take_offsets_out(group);
    if (Status s = loop::verify_kernel(group.kernel); !s.ok()) {
      return std::move(s).with_context("kernel of group " + name);
    }
    add_group(name, plan, std::move(group), notes.why_not, out);
    if (options.observer) options.observer(out.groups.back());
    if (!notes.read_contents && out.groups.back().faults.empty()) {
      built.offer(plan, std::move(notes.why_not));
    }
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
      text += fmt::format("  b{}: {} {} {}[{}]", i, access, printable(b.name), dtype_name(b.dtype),
                          b.elements);
      if (group.buffer_offset(i) != 0) text += fmt::format(" from {}", group.buffer_offset(i));
      text += '\n';
    }
    if (group.order != kCanonicalOrder) text += fmt::format("  order {}\n", group.order);
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
