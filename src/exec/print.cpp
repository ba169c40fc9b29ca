#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "exec/executor.h"
#include "exec/stage.h"
#include "ir/literal.h"

namespace pyc::exec {

using open::OpenGraph;

namespace {

void line(std::string& out, size_t depth, std::string_view text) {
  out += std::string(2 * depth, ' ') + std::string(text) + "\n";
}

void lines(std::string& out, size_t depth, const std::string& text) {
  std::istringstream in(text);
  for (std::string one; std::getline(in, one);) line(out, depth, one);
}

std::string name_of(const OpenGraph& graph, OpenId v) {
  const std::string& name = graph.values[v].name;
  return "%" + (name.empty() ? fmt::format("v{}", v) : ir::format_name(name));
}

// Elements of a small tensor; of a larger one its type.
std::string content_text(const DynValue& value) {
  constexpr int64_t kMaxShown = 8;
  if (!value.is_tensor() || value.elements() > kMaxShown) return value.to_string();
  std::string text;
  const auto size = static_cast<size_t>(dtype_size(value.dtype));
  for (size_t i = 0; i < static_cast<size_t>(value.elements()); ++i) {
    if (i > 0) text += ", ";
    ir::append_element(text, load_word(value.bytes.data() + i * size, value.dtype), value.dtype);
  }
  return text;
}

}  // namespace

void Executor::print_stage(const OpenGraph& g, const Stage& stage, size_t depth,
                           std::string& out) const {
  for (auto it = stage.programs().rbegin(); it != stage.programs().rend(); ++it) {
    const StageProgram& program = **it;
    if (program.condition != StageProgram::Condition::kReady) continue;
    line(out, depth, "for " + describe(g, program.signature));
    for (const auto& [v, content] : program.pinned) {
      line(out, depth, fmt::format("with {} = {}", name_of(g, v), content_text(content)));
    }
    lines(out, depth + 1, program.text);
    for (const auto& [v, constant] : program.segment.constants) {
      line(out, depth + 1, fmt::format("{} is {}", name_of(g, v), content_text(constant)));
    }
    for (const auto& [v, same] : program.segment.aliases) {
      line(out, depth + 1, fmt::format("{} is {}", name_of(g, v), name_of(g, same)));
    }
    for (const open::Break& b : program.segment.breaks) {
      const open::OpenNode& node = g.nodes[b.node];
      line(out, depth + 1,
           fmt::format("{} '{}': {}{}{}", node.op->name, node.name, open::reason_name(b.reason),
                       b.detail.empty() ? "" : " ", b.detail));
    }
    if (program.next->programs().empty()) continue;
    line(out, depth + 1, "then");
    print_stage(g, *program.next, depth + 1, out);
  }
}

// The graph's own stages, then those of the regions inside.
void Executor::print_graph(const OpenGraph& g, size_t depth, std::string& out) const {
  const auto root = roots_.find(&g);
  if (root != roots_.end()) print_stage(g, *root->second->stage, depth, out);
  for (const open::OpenNode& node : g.nodes) {
    for (const auto& [name, attr] : node.attrs) {
      const auto* const region = std::get_if<std::shared_ptr<const OpenGraph>>(&attr);
      if (region == nullptr || *region == nullptr || !roots_.contains(region->get())) continue;
      line(out, depth, fmt::format("{} of {} '{}':", name, node.op->name, node.name));
      print_graph(**region, depth + 1, out);
    }
  }
}

std::string Executor::print() const {
  const std::scoped_lock lock(mutex_);
  std::string out;
  print_graph(graph_, 0, out);
  return out;
}

}  // namespace pyc::exec
