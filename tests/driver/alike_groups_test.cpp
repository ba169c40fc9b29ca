// Groups that are alike are built once: what is made of another group is what it would be by
// itself, and nothing that makes a difference is taken for the same.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include "driver/compile.h"
#include "loop/loop.h"
#include "ops/registry.h"
#include "support/compare.h"
#include "support/run_groups.h"
#include "support/verified.h"

namespace pyc::test {
namespace {

struct Lowered {
  lower::LoweredGraph graph;
  size_t built = 0;
};

Lowered lower(const ir::VerifiedGraph& graph, bool once, const std::string& unit = "",
              bool fuse = true) {
  size_t built = 0;
  lower::LowerOptions options{.fuse = fuse, .unit = unit, .build_alike_once = once};
  options.observer = [&](const lower::Group&) { ++built; };
  auto lowered = lower::lower_graph(graph, options);
  EXPECT_TRUE(lowered.ok()) << lowered.status().to_string();
  return {std::move(*lowered), built};
}

std::string text_of(const lower::Contraction& c) {
  std::ostringstream out;
  for (const lower::Contraction::Operand* o : {&c.a, &c.b}) {
    out << static_cast<int>(o->form) << ' ' << o->value << ' ' << o->load << ' ' << o->buffer << ' '
        << o->base << ' ' << o->row_stride << ' ' << o->k_stride << '\n';
  }
  for (const loop::Buffer& b : c.kernel->buffers) out << b.name << ' ' << b.elements << '\n';
  return out.str() + loop::print(*c.kernel);
}

// All that is known of the groups.
std::string text_of(const lower::LoweredGraph& lowered) {
  std::ostringstream out;
  out << lower::print_groups(lowered);
  for (const lower::Group& g : lowered.groups) {
    out << g.name << ' ' << g.kernel.name << ' ' << g.flops << ' ' << g.bytes << ' ' << g.order;
    for (const ir::ValueId v : g.buffer_values) out << ' ' << v;
    for (const Fault& fault : g.faults) out << ' ' << fault.message << ' ' << fault.value;
    out << '\n' << loop::print(g.kernel);
    if (g.contraction) out << text_of(*g.contraction);
    if (g.attention) out << g.attention->queries << ' ' << g.attention->score << '\n';
  }
  for (const Decision& d : lowered.decisions) out << d.to_string() << '\n';
  return out.str();
}

// The same bytes, element by element from the last to the first.
std::shared_ptr<const ir::ConstData> turned_round(const ir::Value& value) {
  const std::vector<std::byte> bytes = value.constant->bytes.copy();
  std::vector<std::byte> turned;
  const auto size = static_cast<size_t>(dtype_size(value.type.dtype));
  for (size_t end = bytes.size(); end >= size; end -= size) {
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(end - size);
    turned.insert(turned.end(), at, at + static_cast<std::ptrdiff_t>(size));
  }
  return ir::dense_data(SharedBytes(std::move(turned)));
}

// The graph several times side by side, each with inputs of its own and every other one with
// other constants.
ir::Graph repeated(const ir::Graph& one, int times) {
  ir::Graph all{.name = "all", .values = {}, .nodes = {}, .inputs = {}, .outputs = {}};
  for (int copy = 0; copy < times; ++copy) {
    const auto values = static_cast<ir::ValueId>(all.values.size());
    const auto nodes = static_cast<ir::NodeId>(all.nodes.size());
    for (ir::Value value : one.values) {
      value.name += "." + std::to_string(copy);
      if (value.kind == ir::ValueKind::kResult) value.producer += nodes;
      if (value.constant != nullptr && copy % 2 == 1) value.constant = turned_round(value);
      all.values.push_back(std::move(value));
    }
    for (ir::Node node : one.nodes) {
      for (ir::ValueId& v : node.inputs) v += values;
      for (ir::ValueId& v : node.outputs) v += values;
      all.nodes.push_back(std::move(node));
    }
    for (const ir::ValueId v : one.inputs) all.inputs.push_back(v + values);
    for (const ir::ValueId v : one.outputs) all.outputs.push_back(v + values);
  }
  return all;
}

TEST(AlikeGroups, AreWhatTheyAreByThemselves) {
  size_t made = 0;
  for (uint32_t seed = 1; seed <= 250; ++seed) {
    const DrawnGraph drawn = draw_graph(seed, {.max_nodes = 6});
    const ir::VerifiedGraph graph = canonical(repeated(drawn.graph, 3));
    for (const char* unit : {"", "sm90"}) {
      const Lowered once = lower(graph, true, unit);
      const Lowered each = lower(graph, false, unit);
      EXPECT_EQ(each.built, each.graph.groups.size());
      made += once.graph.groups.size() - once.built;
      ASSERT_EQ(text_of(once.graph), text_of(each.graph)) << "seed " << seed << "\n"
                                                          << ir::print(*graph);
    }
  }
  EXPECT_GT(made, 1000U);
}

ir::VerifiedGraph parsed(const std::string& text) {
  auto graph = driver::parse_model(text);
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  return canonical(*graph);
}

TEST(AlikeGroups, LayersAreBuiltOnce) {
  std::string text = "graph @layers(%h0: f32[6,16]) -> (%h8) {\n";
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    text += "  %w" + n + " = const f32[16,16] random(seed=" + n + ", lo=-0.5, hi=0.5)\n" +  //
            "  %p" + n + " = matmul(%h" + n + ", %w" + n + ")\n" +                          //
            "  %s" + n + " = softmax(%p" + n + ") {axis=1}\n" +                             //
            "  %h" + std::to_string(i + 1) + " = add(%s" + n + ", %h" + n + ")\n";
  }
  const Lowered lowered = lower(parsed(text + "}\n"), true);
  EXPECT_GE(lowered.graph.groups.size(), 16U);
  // The first layer reads an input and the last one stores an output, which has one NaN.
  EXPECT_LE(lowered.built, 3 * lowered.graph.groups.size() / 8);
  EXPECT_EQ(lower(parsed(text + "}\n"), false).built, lowered.graph.groups.size());
}

// Whatever differs below makes another kernel.
TEST(AlikeGroups, NothingElseIsTakenForTheSame) {
  const std::map<std::string, std::string> pairs{
      {"  %c = const f32[] dense(1.5)\n  %d = const f32[] dense(2.5)\n"
       "  %p = add(%x, %c)\n  %q = add(%y, %d)\n",
       "a constant"},
      {"  %p = leaky_relu(%x) {alpha=0.1}\n  %q = leaky_relu(%y) {alpha=0.2}\n", "an attribute"},
      {"  %p = add(%x, %x)\n  %q = add(%y, %z)\n", "which values are the same"},
      {"  %p = exp(%x)\n  %r = exp(%y)\n  %q = relu(%r)\n", "what follows"},
  };
  for (const auto& [body, what] : pairs) {
    const ir::VerifiedGraph graph = parsed(
        "graph @two(%x: f32[4,4], %y: f32[4,4], %z: f32[4,4]) -> (%p, %q) {\n" + body + "}\n");
    const Lowered once = lower(graph, true);
    EXPECT_EQ(once.graph.groups.size(), once.built) << what;
    EXPECT_EQ(text_of(once.graph), text_of(lower(graph, false).graph)) << what;
  }
}

// Both exps read a value of the same type that is stored, but one of them is never positive.
TEST(AlikeGroups, WhatIsKnownOfAnInputIsLookedAt) {
  const ir::VerifiedGraph graph = parsed(R"(
graph @two(%x: f32[1,4], %y: f32[1,4], %z: f32[1,1]) -> (%p, %q) {
  %m = reduce_max(%x) {axes=[1]}
  %s = sub(%x, %m)
  %e = exp(%s)
  %t = sub(%y, %z)
  %f = exp(%t)
  %p = relu(%e)
  %q = relu(%f)
}
)");
  const Lowered once = lower(graph, true, "", false);
  EXPECT_EQ(text_of(once.graph), text_of(lower(graph, false, "", false).graph));
  const auto bytes_of = [](std::vector<float> v) {
    const auto bytes = std::as_bytes(std::span(v));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const Outcome outcome = run_groups(
      once.graph, {bytes_of({60, 61, 62, 63}), bytes_of({60, 61, 62, 63}), bytes_of({0})});
  ASSERT_EQ(outcome.outputs.size(), 2U);
  for (size_t i = 0; i < 4; ++i) {
    float p = 0;
    float q = 0;
    std::memcpy(&p, &outcome.outputs[0][4 * i], 4);
    std::memcpy(&q, &outcome.outputs[1][4 * i], 4);
    EXPECT_FLOAT_EQ(p, std::exp(static_cast<float>(i) - 3.0F));
    EXPECT_FLOAT_EQ(q, std::exp(static_cast<float>(i) + 60.0F));
  }
}

// A window that skips terms is a product only where its weights are known to be finite.
TEST(AlikeGroups, WhatConstantsHoldIsLookedAtForEach) {
  const ir::VerifiedGraph graph = parsed(R"(
graph @two(%x: f32[1,2,5,5], %y: f32[1,2,5,5]) -> (%p, %q) {
  %v = const f32[3,2,3,3] random(seed=1, lo=-1, hi=1)
  %w = const f32[3,2,3,3] splat(inf)
  %p = conv(%x, %v) {pads=[1,1,1,1]}
  %q = conv(%y, %w) {pads=[1,1,1,1]}
}
)");
  const Lowered lowered = lower(graph, true);
  ASSERT_EQ(lowered.graph.groups.size(), 2U);
  EXPECT_EQ(lowered.built, 2U);
  EXPECT_TRUE(lowered.graph.groups[0].contraction.has_value());
  EXPECT_FALSE(lowered.graph.groups[1].contraction.has_value());
}

}  // namespace
}  // namespace pyc::test
