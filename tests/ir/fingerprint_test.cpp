#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "ir/graph.h"
#include "ir/random_graph.h"

namespace pyc::ir {
namespace {

using testing::must;
using testing::random_graph;
using testing::sample_graph;
using testing::test_ops;

constexpr std::string_view kText = R"(graph @g(%x: f32[4,4], %z: f32[4,4]) -> (%y, %s) {
  %w = const f32[4,4] random(seed=7, lo=-0.5, hi=0.5)
  %h = matmul(%x, %w)
  %b = add(%h, %z)
  %t = tag(%b) {alpha=0.25, note="n", sizes=[1, 2], weights=[0.5, 1.5]}
  %s, %r = split(%t) {axis=0, keep=true}
  %c = cast(%r) {to=f32}
  %y = relu(%c)
})";

// The text with the first `from` replaced by `to`.
std::string with(std::string_view from, std::string_view to) {
  std::string text(kText);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Graph graph_of(std::string_view text) { return must(parse(text, test_ops())); }

TEST(Fingerprint, ChangesWithEverythingThatMatters) {
  const std::string changed[] = {
      std::string(kText),
      with("= relu(", "= tag("),        // op
      with("= add(", "= mul("),         // op of equal signature
      with("alpha=0.25", "alpha=0.5"),  // attributes of every kind
      with("alpha=0.25", "alpha=-0.25"),
      with("alpha=0.25", "alpha=nan"),
      with("note=\"n\"", "note=\"m\""),
      with("sizes=[1, 2]", "sizes=[2, 1]"),
      with("sizes=[1, 2]", "sizes=[1]"),
      with("weights=[0.5, 1.5]", "weights=[0.5]"),
      with("weights=[0.5, 1.5]", "weights=[0.0]"),
      with("weights=[0.5, 1.5]", "weights=[-0.0]"),
      with("axis=0", "axis=1"),
      with("keep=true", "keep=false"),
      with("to=f32", "to=f64"),
      with("%z: f32[4,4]", "%z: f32[1,4]"),  // shape
      with("%z: f32[4,4]", "%z: f32[4]"),
      with("add(%h, %z)", "add(%z, %h)"),  // edges
      with("add(%h, %z)", "add(%h, %x)"),
      with("add(%h, %z)", "add(%h, %h)"),
      with("add(%h, %z)", "add(%h, %w)"),
      with("cast(%r)", "cast(%s)"),
      with("seed=7", "seed=8"),  // constants
      with("hi=0.5", "hi=0.25"),
      with("%x: f32[4,4], %z: f32[4,4]", "%z: f32[4,4], %x: f32[4,4]"),  // order of inputs
      with("(%y, %s)", "(%s, %y)"),                                      // outputs
      with("(%y, %s)", "(%y)"),
      with("(%y, %s)", "(%y, %s, %s)"),
      with("(%y, %s)", "(%y, %w)"),
      with("(%y, %s)", "(%y, %x)"),
      with("-> (%y, %s)", "-> (%s)"),
  };
  std::set<Digest> digests;
  std::set<std::string> keys;
  for (const std::string& text : changed) {
    EXPECT_TRUE(digests.insert(fingerprint(graph_of(text))).second) << text;
    EXPECT_TRUE(keys.insert(fingerprint_key(graph_of(text))).second) << text;
  }
}

TEST(Fingerprint, ChangesWithTypes) {
  std::set<Digest> digests;
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto name = std::string(dtype_name(static_cast<DType>(t)));
    const auto text = "graph @g(%x: " + name + "[2]) -> (%y) { %y = relu(%x) }";
    EXPECT_TRUE(digests.insert(fingerprint(graph_of(text))).second) << name;
  }
  for (const char* shape : {"[2,1]", "[1,2]", "[]", "[3]", "[0]"}) {
    const auto text = std::string("graph @g(%x: f32") + shape + ") -> (%y) { %y = relu(%x) }";
    EXPECT_TRUE(digests.insert(fingerprint(graph_of(text))).second) << shape;
  }
}

TEST(Fingerprint, ChangesWithNamesOfInputsAndOutputs) {
  const Graph graph = graph_of(kText);
  const Digest before = fingerprint(graph);
  for (const ValueId id : {graph.inputs[0], graph.inputs[1], graph.outputs[0], graph.outputs[1]}) {
    Graph renamed = graph;
    renamed.values[id].name += "2";
    EXPECT_NE(fingerprint(renamed), before) << graph.values[id].name;
  }
}

TEST(Fingerprint, IgnoresWhatCannotMatter) {
  const Graph graph = graph_of(kText);
  const std::string before = fingerprint_key(graph);
  Graph other = graph;
  other.name = "other";
  for (Node& node : other.nodes) node.loc = "elsewhere";
  for (const char* name : {"w", "h", "b", "t", "r", "c"}) {
    for (Value& value : other.values) {
      if (value.name == name) value.name = std::string("inner_") + name;
    }
  }
  EXPECT_EQ(fingerprint_key(other), before);
  // An unread constant, and how a constant is written.
  EXPECT_EQ(fingerprint_key(graph_of(with("%h = ", "%unread = const i8[1] splat(1)\n %h = "))),
            before);
  for (Value& value : other.values) {
    if (value.kind == ValueKind::kConstant) value.constant = dense_data(value.constant->bytes);
  }
  EXPECT_EQ(fingerprint_key(other), before);
}

TEST(Fingerprint, SurvivesTheTextForm) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = random_graph(seed);
    EXPECT_EQ(fingerprint(must(parse(print(graph), test_ops()))), fingerprint(graph)) << seed;
  }
}

TEST(Fingerprint, EveryByteOfAConstantCounts) {
  Graph graph = graph_of("graph @g() -> (%c) { %c = const u8[16] splat(3) }");
  std::set<Digest> digests = {fingerprint(graph)};
  const std::vector<std::byte> bytes = graph.values[0].constant->bytes.copy();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> changed = bytes;
    changed[i] ^= std::byte{1};
    graph.values[0].constant = dense_data(changed);
    EXPECT_TRUE(digests.insert(fingerprint(graph)).second) << i;
  }
}

// Digests of large constants are kept: never longer than the constant, never for another one.
TEST(Fingerprint, LargeConstantsAreToldApartWhereverTheyLie) {
  Graph graph = graph_of("graph @g() -> (%c) { %c = const u8[8192] splat(3) }");
  const Digest first = fingerprint(graph);
  const std::vector<std::byte> bytes = graph.values[0].constant->bytes.copy();
  std::set<Digest> digests = {first};
  for (size_t i = 0; i < 3000; ++i) {
    std::vector<std::byte> changed = bytes;
    changed[i] ^= std::byte{1};
    graph.values[0].constant = dense_data(changed);  // the old one is gone, its memory free
    ASSERT_TRUE(digests.insert(fingerprint(graph)).second) << i;
    ASSERT_TRUE(digests.contains(fingerprint(graph)));
  }
  graph.values[0].constant = dense_data(bytes);
  EXPECT_EQ(fingerprint(graph), first);
}

// What entries with equal hashes are told apart by (the store's own test plants such entries).
TEST(FingerprintKey, IsEqualForEqualGraphsAlone) {
  std::set<std::string> keys;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_TRUE(keys.insert(fingerprint_key(random_graph(seed))).second) << seed;
    EXPECT_TRUE(keys.contains(fingerprint_key(random_graph(seed)))) << seed;
  }
}

// Stored compile results are found by it: it must not change unnoticed.
TEST(Fingerprint, IsStable) {
  EXPECT_EQ(fingerprint(sample_graph()).hex(), "e766ab8ceaea86c6f7c5aa2a6a684725");
}

}  // namespace
}  // namespace pyc::ir
