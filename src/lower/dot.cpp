#include "lower/dot.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/escape.h"

namespace pyc::lower {
namespace {

// Text inside of quotes; \n of `text` begins a line of the label.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : printable(text, true)) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

class DotWriter {
 public:
  DotWriter(const LoweredGraph& lowered, std::span<const std::string> kernels)
      : lowered_(lowered), graph_(*lowered.graph), kernels_(kernels) {}

  std::string write() && {
    out_ = fmt::format("digraph {} {{\n", quoted(graph_.name));
    out_ += "  node [shape=box, fontname=\"monospace\"];\n";
    for (const ir::ValueId input : graph_.inputs) {
      leaf(fmt::format("v{}", input), value_text(input), "ellipse");
    }
    for (size_t g = 0; g < lowered_.groups.size(); ++g) group(g);
    for (size_t g = 0; g < lowered_.groups.size(); ++g) edges_of(g);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const std::string name = fmt::format("out{}", i);
      leaf(name, "%" + graph_.value(graph_.outputs[i]).name, "ellipse");
      edge(graph_.outputs[i], lowered_.groups.size(), name);
    }
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  std::string value_text(ir::ValueId v) const {
    return fmt::format("%{}\n{}", graph_.value(v).name, graph_.type(v).to_string());
  }

  void leaf(const std::string& name, const std::string& label, const char* shape) {
    out_ += fmt::format("  {} [label={}, shape={}];\n", name, quoted(label), shape);
  }

  // A node that several groups compute for themselves is drawn in each.
  static std::string node_name(size_t g, ir::NodeId n) { return fmt::format("g{}_n{}", g, n); }

  void group(size_t g) {
    const Group& group = lowered_.groups[g];
    out_ += fmt::format("  subgraph cluster_{} {{\n    label={};\n", g,
                        quoted(fmt::format("{} {}", group.name, kernels_[g])));
    for (const ir::NodeId n : group.members) {
      const ir::Node& node = graph_.nodes[n];
      out_ += fmt::format("    {} [label={}];\n", node_name(g, n),
                          quoted(fmt::format("{} {}", node.op->name, value_text(node.outputs[0]))));
      computed_by_[n].insert(g);
    }
    out_ += "  }\n";
  }

  void edges_of(size_t g) {
    for (const ir::NodeId n : lowered_.groups[g].members) {
      for (const ir::ValueId v : graph_.nodes[n].inputs) edge(v, g, node_name(g, n));
    }
  }

  // From where `v` is computed, in group `g` if it is there, to the drawn node `to`.
  void edge(ir::ValueId v, size_t g, const std::string& to) {
    const ir::Value& value = graph_.value(v);
    std::string from = fmt::format("v{}", v);
    if (value.kind == ir::ValueKind::kConstant && constants_.insert(v).second) {
      leaf(from, value_text(v), "note");
    }
    if (value.kind == ir::ValueKind::kResult) {
      const auto groups = computed_by_.find(value.producer);
      if (groups == computed_by_.end()) {
        alone(value.producer);
        from = fmt::format("n{}", value.producer);
      } else {
        from = node_name(groups->second.contains(g) ? g : *groups->second.begin(), value.producer);
      }
    }
    out_ += fmt::format("  {} -> {};\n", from, to);
  }

  // A node that no group computes: another shape of a value, read where that lies.
  void alone(ir::NodeId n) {
    if (!alone_.insert(n).second) return;
    const ir::Node& node = graph_.nodes[n];
    const std::string name = fmt::format("n{}", n);
    leaf(name, fmt::format("{} {}", node.op->name, value_text(node.outputs[0])), "box");
    for (const ir::ValueId v : node.inputs) edge(v, lowered_.groups.size(), name);
  }

  const LoweredGraph& lowered_;
  const ir::Graph& graph_;
  std::span<const std::string> kernels_;
  std::string out_;
  std::map<ir::NodeId, std::set<size_t>> computed_by_;
  std::set<ir::ValueId> constants_;  // drawn
  std::set<ir::NodeId> alone_;       // drawn
};

}  // namespace

std::string print_dot(const LoweredGraph& lowered, std::span<const std::string> kernels) {
  return DotWriter(lowered, kernels).write();
}

}  // namespace pyc::lower
