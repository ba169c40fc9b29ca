#include "report/draw.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/escape.h"

namespace pyc::report {
namespace {

constexpr int kBoxHeight = 38;
constexpr int kSmallHeight = 24;  // of inputs and outputs
constexpr int kCharWidth = 8;     // of the page's small type, about
constexpr int kTextPadding = 20;
constexpr int kMinWidth = 64;
constexpr int kMaxWidth = 210;
constexpr int kGroupPadding = 12;
constexpr int kGroupTitle = 26;

Size text_box(size_t characters, int height) {
  const int wanted = static_cast<int>(std::min<size_t>(characters, 100)) * kCharWidth;
  return {std::clamp(wanted + kTextPadding, kMinWidth, kMaxWidth), height};
}

// A box reads a value that is made outside of it.
struct Reading {
  ir::ValueId value;
  uint32_t box;
};

std::vector<Edge> each_once(std::vector<Edge> edges) {
  std::set<std::pair<uint32_t, uint32_t>> seen;
  std::erase_if(
      edges, [&](const Edge& e) { return e.from == e.to || !seen.emplace(e.from, e.to).second; });
  return edges;
}

// Boxes of a drawing, and who makes and reads each value.
class Drawing {
 public:
  Drawing(GraphPart& part, const ir::Graph& graph) : part_(part), graph_(graph) {}

  uint32_t add(BoxKind kind, uint32_t item, uint32_t parent, Size size) {
    part_.boxes.push_back(
        {.kind = kind, .item = item, .parent = parent, .corner = {}, .size = size});
    return static_cast<uint32_t>(part_.boxes.size() - 1);
  }
  uint32_t add_value(BoxKind kind, uint32_t value) {
    return add(kind, value, kNone, text_box(part_.values[value].name.size(), kSmallHeight));
  }
  uint32_t add_node(uint32_t node, uint32_t parent) {
    const NodeRow& row = part_.nodes[node];
    size_t characters = row.op.size();
    if (!row.outputs.empty()) {
      characters = std::max(characters, part_.values[row.outputs[0]].type.size());
    }
    return add(BoxKind::kNode, node, parent, text_box(characters, kBoxHeight));
  }

  // A group with its members inside; `readings` gets what they read of others.
  uint32_t add_group(uint32_t number, const GroupRow& group, std::vector<Reading>& readings) {
    const uint32_t box = add(BoxKind::kGroup, number, kNone, {});
    std::vector<uint32_t> members;
    std::map<ir::ValueId, uint32_t> made_here;
    for (const uint32_t node : group.members) {
      members.push_back(add_node(node, box));
      for (const ir::ValueId output : graph_.nodes[node].outputs) {
        made_here.emplace(output, members.back());
      }
    }
    std::vector<Edge> edges;
    for (size_t i = 0; i < members.size(); ++i) {
      for (const ir::ValueId input : graph_.nodes[group.members[i]].inputs) {
        const auto made = made_here.find(input);
        if (made == made_here.end()) {
          readings.push_back({input, box});
        } else {
          edges.push_back({made->second, members[i]});
        }
      }
    }
    const size_t first_edge = part_.edges.size();
    const Size inner =
        lay_out_boxes(members, each_once(std::move(edges)), {kGroupPadding, kGroupTitle});
    const Size title = text_box(group.name.size() + group.kernel.size() + 2, 0);
    const int width = std::max(inner.width + 2 * kGroupPadding, title.width);
    part_.boxes[box].size = {width, inner.height + kGroupTitle + kGroupPadding};
    const Point to_middle = {(width - inner.width) / 2 - kGroupPadding, 0};
    for (const uint32_t member : members) move(part_.boxes[member].corner, to_middle);
    for (size_t e = first_edge; e < part_.edges.size(); ++e) {
      for (Point& p : part_.edges[e].bends) move(p, to_middle);
    }
    return box;
  }

  // Lays out the boxes that stand by themselves, over edges between them, each pair once.
  void lay_out_top(std::vector<Edge> edges) {
    std::vector<uint32_t> boxes;
    for (size_t i = 0; i < part_.boxes.size(); ++i) {
      if (part_.boxes[i].parent == kNone) boxes.push_back(static_cast<uint32_t>(i));
    }
    part_.size = lay_out_boxes(boxes, std::move(edges), {0, 0});
  }
  // The same for some boxes, the first corner at `origin`.
  Size lay_out_boxes(const std::vector<uint32_t>& boxes, std::vector<Edge> edges, Point origin) {
    std::vector<Size> sizes;
    sizes.reserve(boxes.size());
    for (const uint32_t box : boxes) {
      number_.resize(std::max<size_t>(number_.size(), size_t{box} + 1), kNone);
      number_[box] = static_cast<uint32_t>(sizes.size());
      sizes.push_back(part_.boxes[box].size);
    }
    for (Edge& e : edges) e = {number_[e.from], number_[e.to]};
    const Layout layout = lay_out(sizes, edges);
    for (size_t i = 0; i < boxes.size(); ++i) {
      part_.boxes[boxes[i]].corner = {origin.x + layout.corners[i].x,
                                      origin.y + layout.corners[i].y};
    }
    for (size_t i = 0; i < edges.size(); ++i) {
      EdgeRow row{.from = boxes[edges[i].from], .to = boxes[edges[i].to], .bends = layout.bends[i]};
      for (Point& p : row.bends) p = {origin.x + p.x, origin.y + p.y};
      part_.edges.push_back(std::move(row));
    }
    return layout.size;
  }
  // Moves what lies in groups, whose places are relative to their group, to where the group is.
  void move_members() {
    for (BoxRow& box : part_.boxes) {
      if (box.parent != kNone) move(box.corner, part_.boxes[box.parent].corner);
    }
    for (EdgeRow& edge : part_.edges) {
      const uint32_t parent = part_.boxes[edge.from].parent;
      if (parent == kNone) continue;
      for (Point& p : edge.bends) move(p, part_.boxes[parent].corner);
    }
  }

  const ir::Graph& graph() const { return graph_; }

 private:
  static void move(Point& p, Point by) { p = {p.x + by.x, p.y + by.y}; }

  GraphPart& part_;
  const ir::Graph& graph_;
  std::vector<uint32_t> number_;
};

std::string attributes_of(const ir::Node& node) {
  std::string text;
  for (const auto& [name, value] : node.attrs) {
    text += (text.empty() ? "" : ", ") + name + "=" + ir::attr_to_string(value);
  }
  return shown(text);
}

std::vector<Edge> edges_of(const std::vector<uint32_t>& made_in,
                           const std::vector<Reading>& readings) {
  std::vector<Edge> edges;
  for (const Reading& r : readings) {
    if (made_in[r.value] != kNone) edges.push_back({made_in[r.value], r.box});
  }
  return edges;
}

// Boxes for inputs; in which box each value is made.
std::vector<uint32_t> draw_inputs(Drawing& drawing) {
  std::vector<uint32_t> made_in(drawing.graph().values.size(), kNone);
  for (const ir::ValueId input : drawing.graph().inputs) {
    made_in[input] = drawing.add_value(BoxKind::kInput, input);
  }
  return made_in;
}

void draw_outputs(Drawing& drawing, const std::vector<uint32_t>& made_in,
                  std::vector<Edge>& edges) {
  for (const ir::ValueId output : drawing.graph().outputs) {
    const uint32_t box = drawing.add_value(BoxKind::kOutput, output);
    if (made_in[output] != kNone) edges.push_back({made_in[output], box});
  }
}

}  // namespace

std::string shown(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  size_t end = 0;
  while (true) {
    const size_t length = std::max<size_t>(utf8_length(text.substr(end)), 1);
    if (end + length > bytes) break;
    end += length;
  }
  return std::string(text.substr(0, end)) + "…";
}

GraphPart rows_of(const ir::Graph& graph) {
  GraphPart part;
  part.values.reserve(graph.values.size());
  for (const ir::Value& v : graph.values) {
    part.values.push_back(
        {.name = shown(v.name), .type = v.type.to_string(), .kind = static_cast<uint8_t>(v.kind)});
  }
  part.nodes.reserve(graph.nodes.size());
  for (const ir::Node& n : graph.nodes) {
    part.nodes.push_back({.op = std::string(n.op->name),
                          .inputs = n.inputs,
                          .outputs = n.outputs,
                          .attributes = attributes_of(n),
                          .location = shown(n.loc),
                          .groups = {}});
  }
  return part;
}

void draw_nodes(GraphPart& part, const ir::Graph& graph) { draw_groups(part, graph, {}); }

void draw_groups(GraphPart& part, const ir::Graph& graph, const std::vector<GroupRow>& groups) {
  Drawing drawing(part, graph);
  std::vector<uint32_t> made_in = draw_inputs(drawing);
  std::vector<Reading> readings;
  std::vector<bool> drawn(graph.nodes.size(), false);
  for (uint32_t g = 0; g < groups.size(); ++g) {
    const uint32_t box = drawing.add_group(g, groups[g], readings);
    for (const uint32_t value : groups[g].writes) made_in[value] = box;
    for (const uint32_t node : groups[g].members) drawn[node] = true;
  }
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (drawn[n]) continue;
    const uint32_t box = drawing.add_node(n, kNone);
    for (const ir::ValueId output : graph.nodes[n].outputs) made_in[output] = box;
    for (const ir::ValueId input : graph.nodes[n].inputs) readings.push_back({input, box});
  }
  std::vector<Edge> edges = edges_of(made_in, readings);
  draw_outputs(drawing, made_in, edges);
  drawing.lay_out_top(each_once(std::move(edges)));
  drawing.move_members();
}

}  // namespace pyc::report
