#include <gtest/gtest.h>

#include <map>

#include "ir/check.h"
#include "ir/graph.h"
#include "ir/random_graph.h"

namespace pyc::ir {
namespace {

using testing::Random;
using testing::random_graph;

// Each corruption breaks a rule whatever the graph was; it gives false where it does not apply.
using Corruption = bool (*)(Random&, Graph&);

size_t pick_node(Random& random, const Graph& g) { return random.below(g.nodes.size()); }
ValueId pick_value(Random& random, const Graph& g) {
  return static_cast<ValueId>(random.below(g.values.size()));
}
ValueId bad_id(Random& random, const Graph& g) {
  const auto size = static_cast<ValueId>(g.values.size());
  return random.pick<ValueId>({size, size + 1, kNoId, kNoId - 1, 0x80000000u});
}
Value* pick_kind(Random& random, Graph& g, ValueKind kind) {
  std::vector<Value*> found;
  for (Value& value : g.values) {
    if (value.kind == kind) found.push_back(&value);
  }
  return found.empty() ? nullptr : found[random.below(found.size())];
}
// An index into the node's inputs, or false when it reads nothing.
bool pick_operand(Random& random, Graph& g, ValueId*& operand, size_t& node) {
  node = pick_node(random, g);
  if (g.nodes[node].inputs.empty()) return false;
  operand = &g.nodes[node].inputs[random.below(g.nodes[node].inputs.size())];
  return true;
}

bool operand_out_of_range(Random& random, Graph& g) {
  ValueId* operand = nullptr;
  size_t node = 0;
  if (!pick_operand(random, g, operand, node)) return false;
  *operand = bad_id(random, g);
  return true;
}

bool operand_from_later(Random& random, Graph& g) {
  ValueId* operand = nullptr;
  size_t node = 0;
  if (!pick_operand(random, g, operand, node)) return false;
  const size_t later = node + random.below(g.nodes.size() - node);
  *operand = g.nodes[later].outputs[random.below(g.nodes[later].outputs.size())];
  return true;
}

bool result_out_of_range(Random& random, Graph& g) {
  Node& node = g.nodes[pick_node(random, g)];
  node.outputs[random.below(node.outputs.size())] = bad_id(random, g);
  return true;
}

bool result_of_another(Random& random, Graph& g) {
  Node& node = g.nodes[pick_node(random, g)];
  ValueId& output = node.outputs[random.below(node.outputs.size())];
  const ValueId other = pick_value(random, g);
  if (other == output) return false;
  output = other;  // whoever made `other` still does, or it is an input or constant
  return true;
}

bool result_added(Random& random, Graph& g) {
  g.nodes[pick_node(random, g)].outputs.push_back(pick_value(random, g));
  return true;
}

bool result_dropped(Random& random, Graph& g) {
  g.nodes[pick_node(random, g)].outputs.pop_back();
  return true;
}

bool node_dropped(Random& random, Graph& g) {
  g.nodes.erase(g.nodes.begin() + static_cast<ptrdiff_t>(pick_node(random, g)));
  return true;
}

bool node_doubled(Random& random, Graph& g) {
  const Node copy = g.nodes[pick_node(random, g)];
  g.nodes.insert(g.nodes.begin() + static_cast<ptrdiff_t>(pick_node(random, g)), copy);
  return true;
}

bool nodes_swapped(Random& random, Graph& g) {
  const size_t a = pick_node(random, g);
  const size_t b = pick_node(random, g);
  if (a == b) return false;
  std::swap(g.nodes[a], g.nodes[b]);  // the producers no longer fit
  return true;
}

// A node is moved before one that it reads from, with all producers kept right.
bool dependent_nodes_swapped(Random& random, Graph& g) {
  ValueId* operand = nullptr;
  size_t node = 0;
  if (!pick_operand(random, g, operand, node)) return false;
  const Value& read = g.values[*operand];
  if (read.kind != ValueKind::kResult) return false;
  std::swap(g.nodes[node], g.nodes[read.producer]);
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    for (const ValueId id : g.nodes[i].outputs) g.values[id].producer = static_cast<NodeId>(i);
  }
  return true;
}

bool op_missing(Random& random, Graph& g) {
  g.nodes[pick_node(random, g)].op = nullptr;
  return true;
}

bool op_with_other_attrs(Random& random, Graph& g) {
  Node& node = g.nodes[pick_node(random, g)];
  const OpDef* other = testing::test_ops().all()[random.below(testing::test_ops().all().size())];
  if (other->attrs.size() == node.op->attrs.size()) return false;
  node.op = other;
  return true;
}

bool input_count(Random& random, Graph& g) {
  Node& node = g.nodes[pick_node(random, g)];
  if (node.op->max_inputs >= kVariadic) {
    node.inputs.clear();
  } else if (random.chance(2)) {
    node.inputs.push_back(node.inputs[0]);
  } else {
    node.inputs.pop_back();
  }
  return true;
}

bool attr_unknown(Random& random, Graph& g) {
  g.nodes[pick_node(random, g)].attrs["no_such_attr"] = int64_t{1};
  return true;
}

bool attr_missing(Random& random, Graph& g) {
  Attrs& attrs = g.nodes[pick_node(random, g)].attrs;
  if (attrs.empty()) return false;
  attrs.erase(std::next(attrs.begin(), static_cast<ptrdiff_t>(random.below(attrs.size()))));
  return true;
}

bool attr_of_other_kind(Random& random, Graph& g) {
  Attrs& attrs = g.nodes[pick_node(random, g)].attrs;
  if (attrs.empty()) return false;
  Attr& attr = std::next(attrs.begin(), static_cast<ptrdiff_t>(random.below(attrs.size())))->second;
  const Attr other = random.pick<Attr>({int64_t{0}, 0.5, true, std::string("x"), DType::kF32,
                                        std::vector<int64_t>{1}, std::vector<double>{1}});
  if (other.index() == attr.index()) return false;
  attr = other;
  return true;
}

bool result_type(Random& random, Graph& g) {
  Value* value = pick_kind(random, g, ValueKind::kResult);
  if (random.chance(2)) {
    value->type.dtype = static_cast<DType>((static_cast<int>(value->type.dtype) + 1) % kDTypeCount);
  } else {
    value->type.shape.push_back(1);
  }
  return true;
}

bool bad_dims(Random& random, Graph& g) {
  Shape& shape = g.values[pick_value(random, g)].type.shape;
  switch (random.below(3)) {
    case 0:
      shape.assign(kMaxRank + 1 + random.below(100), 1);
      break;
    case 1:
      shape.push_back(random.pick<int64_t>({-1, INT64_MIN, -4}));
      break;
    default:
      shape.insert(shape.begin(), {INT64_MAX, int64_t{1} << 41});
  }
  return true;
}

bool unknown_enums(Random& random, Graph& g) {
  Value& value = g.values[pick_value(random, g)];
  if (random.chance(2)) {
    value.type.dtype = static_cast<DType>(kDTypeCount + random.below(200));
  } else {
    value.kind = static_cast<ValueKind>(3 + random.below(250));
  }
  return true;
}

bool kind_changed(Random& random, Graph& g) {
  Value& value = g.values[pick_value(random, g)];
  value.kind = static_cast<ValueKind>((static_cast<int>(value.kind) + 1 + random.below(2)) % 3);
  return true;
}

bool producer_changed(Random& random, Graph& g) {
  Value& value = g.values[pick_value(random, g)];
  const auto producer = static_cast<NodeId>(random.below(g.nodes.size() + 1));
  if (value.producer == producer) return false;
  value.producer = producer;
  return true;
}

bool name_taken(Random& random, Graph& g) {
  const ValueId a = pick_value(random, g);
  const ValueId b = pick_value(random, g);
  if (a == b) return false;
  g.values[a].name = g.values[b].name;
  return true;
}

bool name_missing(Random& random, Graph& g) {
  g.values[pick_value(random, g)].name.clear();
  return true;
}

bool constant_bytes(Random& random, Graph& g) {
  Value* value = pick_kind(random, g, ValueKind::kConstant);
  auto data = std::make_shared<ConstData>(*value->constant);
  std::vector<std::byte> bytes = data->bytes.copy();
  if (random.chance(2) && !bytes.empty()) {
    bytes.pop_back();
  } else {
    bytes.push_back(std::byte{0});
  }
  data->bytes = std::move(bytes);
  value->constant = data;
  return true;
}

bool constant_missing(Random& random, Graph& g) {
  pick_kind(random, g, ValueKind::kConstant)->constant = nullptr;
  return true;
}

bool constant_form(Random& random, Graph& g) {
  Value* value = pick_kind(random, g, ValueKind::kConstant);
  auto data = std::make_shared<ConstData>(*value->constant);
  data->form = static_cast<ConstData::Form>(3 + random.below(250));
  value->constant = data;
  return true;
}

bool data_on_others(Random& random, Graph& g) {
  Value* value = pick_kind(random, g, random.chance(2) ? ValueKind::kInput : ValueKind::kResult);
  value->constant = dense_data({});
  return true;
}

bool outputs_gone(Random&, Graph& g) {
  g.outputs.clear();
  return true;
}

bool output_out_of_range(Random& random, Graph& g) {
  g.outputs[random.below(g.outputs.size())] = bad_id(random, g);
  return true;
}

bool inputs_list(Random& random, Graph& g) {
  switch (random.below(4)) {
    case 0:
      g.inputs.pop_back();
      break;
    case 1:
      g.inputs.push_back(g.inputs[0]);
      break;
    case 2:
      g.inputs.push_back(bad_id(random, g));
      break;
    default:
      g.inputs.push_back(g.nodes[0].outputs[0]);
  }
  return true;
}

// Ids of results point nowhere, or at the wrong values, afterwards.
bool result_value_gone(Random& random, Graph& g) {
  Value* value = pick_kind(random, g, ValueKind::kResult);
  g.values.erase(g.values.begin() + (value - g.values.data()));
  return true;
}

constexpr std::pair<const char*, Corruption> kCorruptions[] = {
    {"operand_out_of_range", operand_out_of_range},
    {"operand_from_later", operand_from_later},
    {"result_out_of_range", result_out_of_range},
    {"result_of_another", result_of_another},
    {"result_added", result_added},
    {"result_dropped", result_dropped},
    {"node_dropped", node_dropped},
    {"node_doubled", node_doubled},
    {"nodes_swapped", nodes_swapped},
    {"dependent_nodes_swapped", dependent_nodes_swapped},
    {"op_missing", op_missing},
    {"op_with_other_attrs", op_with_other_attrs},
    {"input_count", input_count},
    {"attr_unknown", attr_unknown},
    {"attr_missing", attr_missing},
    {"attr_of_other_kind", attr_of_other_kind},
    {"result_type", result_type},
    {"bad_dims", bad_dims},
    {"unknown_enums", unknown_enums},
    {"kind_changed", kind_changed},
    {"producer_changed", producer_changed},
    {"name_taken", name_taken},
    {"name_missing", name_missing},
    {"constant_bytes", constant_bytes},
    {"constant_missing", constant_missing},
    {"constant_form", constant_form},
    {"data_on_others", data_on_others},
    {"outputs_gone", outputs_gone},
    {"output_out_of_range", output_out_of_range},
    {"inputs_list", inputs_list},
    {"result_value_gone", result_value_gone},
};

TEST(VerifyMutation, EveryCorruptionIsRefused) {
  constexpr int kPerCorruption = 120;
  int total = 0;
  uint64_t seed = 0;
  for (const auto& [name, corrupt] : kCorruptions) {
    int applied = 0;
    for (int tries = 0; applied < kPerCorruption && tries < 50 * kPerCorruption; ++tries) {
      Random random(++seed);
      Graph graph = random_graph(seed);
      if (graph.nodes.empty()) continue;
      const std::string before = print(graph);
      ASSERT_TRUE(check_structure(graph).ok());
      if (!corrupt(random, graph)) continue;
      ++applied;
      const auto result = verify_graph(graph);
      ASSERT_FALSE(result.ok()) << name << ", seed " << seed << "\n"
                                << before << "became\n"
                                << print(graph);
      EXPECT_TRUE(result.status().message().starts_with("[")) << result.status().to_string();
      // Broken graphs can still be shown and hashed.
      EXPECT_FALSE(print(graph).empty());
      EXPECT_FALSE(fingerprint_key(graph).empty());
    }
    EXPECT_EQ(applied, kPerCorruption) << name;
    total += applied;
  }
  EXPECT_GE(total, 2000);
}

// Several random corruptions on top of each other, which may even undo each other: no crash.
TEST(VerifyMutation, PiledUpCorruptionsDoNotCrash) {
  int refused = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    Graph graph = random_graph(seed);
    for (int i = 0; i < 4; ++i) {
      // What corruptions rely on may be gone by now.
      if (graph.nodes.empty() || graph.inputs.empty() || graph.outputs.empty()) break;
      bool intact = true;
      for (const Node& node : graph.nodes) {
        intact &= node.op != nullptr && !node.inputs.empty() && !node.outputs.empty();
        for (const ValueId id : node.inputs) intact &= id < graph.values.size();
        for (const ValueId id : node.outputs) intact &= id < graph.values.size();
      }
      bool kinds[3] = {};
      for (const Value& value : graph.values) {
        if (static_cast<int>(value.kind) < 3) kinds[static_cast<int>(value.kind)] = true;
        intact &= value.kind != ValueKind::kConstant || value.constant != nullptr;
        intact &= value.kind != ValueKind::kResult || value.producer < graph.nodes.size();
      }
      if (!intact || !kinds[0] || !kinds[1] || !kinds[2]) break;
      kCorruptions[random.below(std::size(kCorruptions))].second(random, graph);
    }
    refused += verify_graph(graph).ok() ? 0 : 1;
    EXPECT_FALSE(print(graph).empty());
    EXPECT_FALSE(fingerprint_key(graph).empty());
  }
  EXPECT_GT(refused, 1900);
}

}  // namespace
}  // namespace pyc::ir
