// Half precision: which nodes share a kernel decides no rounding. Random graphs of f16 and bf16, at
// the level balanced, have the bits of one group per node whatever is fused, read through or kept
// apart, canonical and in a named order. tests/configs/groups.conf runs programs so on the CPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/compare.h"
#include "support/round.h"
#include "support/run_groups.h"

namespace pyc::test {
namespace {

constexpr uint32_t kGroupings = 4;  // of each graph, at random

std::vector<Pair> half_pairs() {
  std::vector<Pair> pairs;
  for (const Pair& pair : all_pairs()) {
    if (is_half(pair.dtype)) pairs.push_back(pair);
  }
  return pairs;
}

// Graphs with products are the ones to look at: every other one is drawn of few ops.
std::vector<Pair> chain_pairs() {
  const std::set<std::string_view> names{"matmul", "gemm",    "conv",      "contract", "attention",
                                         "add",    "mul",     "relu",      "gelu",     "sigmoid",
                                         "neg",    "reshape", "transpose", "softmax",  "concat"};
  std::vector<Pair> pairs;
  for (const Pair& pair : half_pairs()) {
    if (names.contains(pair.op->name)) pairs.push_back(pair);
  }
  return pairs;
}

DrawnGraph draw_halves_graph(uint32_t seed) {
  static const std::vector<Pair> kAll = half_pairs();
  static const std::vector<Pair> kChains = chain_pairs();
  return draw_graph(seed, {.values = seed % 4 == 0 ? Values::kWild : Values::kTame,
                           .pairs = seed % 2 == 0 ? kAll : kChains,
                           .max_nodes = 8});
}

struct Counted {
  int cut = 0;    // groupings with more groups than the fused form has
  int named = 0;  // groups of a named order
  int other = 0;  // graphs whose bits the named order changes
};

// The graph lowered in all ways against one group per node.
std::string grouping_difference(const DrawnGraph& drawn, uint32_t seed, Counted& counted) {
  const ir::VerifiedGraph graph = canonical(drawn.graph);
  Outcome canonical_bits;
  for (const char* unit : {"", "sm90"}) {
    const Outcome expected = outcome_of(graph, drawn.inputs, {.fuse = false, .unit = unit});
    const auto fused = lower::lower_graph(graph, {.unit = unit});
    if (!fused.ok()) return fused.status().to_string();
    if (run_groups(*fused, drawn.inputs) != expected) return std::string("fused ") + unit;
    for (uint32_t i = 0; i < kGroupings; ++i) {
      const auto lowered = lower::lower_graph(
          graph, {.unit = unit, .keep_apart = any_groups(seed * kGroupings + i, 2 + i)});
      if (!lowered.ok()) return lowered.status().to_string();
      counted.cut += lowered->groups.size() > fused->groups.size() ? 1 : 0;
      if (run_groups(*lowered, drawn.inputs) != expected) {
        return std::string("grouping ") + std::to_string(i) + unit;
      }
    }
    for (const lower::Group& g : fused->groups) {
      counted.named += g.order != lower::kCanonicalOrder ? 1 : 0;
    }
    if (*unit == '\0') canonical_bits = expected;
    counted.other += canonical_bits == expected ? 0 : 1;
  }
  return "";
}

TEST(HalfGroupings, ChangeNoBit) {
  Counted counted;
  constexpr int kGraphs = kSanitized ? 75 : 300;
  for (uint32_t seed = 1; seed <= kGraphs; ++seed) {
    const DrawnGraph drawn = draw_halves_graph(seed);
    ASSERT_EQ(grouping_difference(drawn, seed, counted), "") << "seed " << seed << "\n"
                                                             << ir::print(drawn.graph);
  }
  EXPECT_GT(counted.cut, kGraphs);
  EXPECT_GT(counted.named, kGraphs / 6);
  EXPECT_GT(counted.other, kGraphs / 30);
}

// What such a comparison has to find: a cut that rounds what crosses it.
TEST(HalfGroupings, ACutThatRoundsIsSeen) {
  const auto of = [](const char* between) {
    return driver::parse_model(std::string("graph @g(%x: bf16[4,40], %w: bf16[40,6]) -> (%y) {\n"
                                           "  %p = matmul(%x, %w) {to=f32}\n") +
                               between + "  %y = cast(%r) {to=bf16}\n}\n");
  };
  const auto whole = of("  %r = exp(%p)\n");
  const auto cut = of("  %c = cast(%p) {to=bf16}\n  %d = cast(%c) {to=f32}\n  %r = exp(%d)\n");
  ASSERT_TRUE(whole.ok() && cut.ok());
  Draw d(3, Values::kTame);
  std::vector<std::vector<std::byte>> inputs;
  for (const ir::ValueId v : whole->inputs) {
    const ir::TensorType& type = whole->type(v);
    std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
    for (int64_t i = 0; i < type.elements(); ++i) {
      store_word(bytes.data() + 2 * i, type.dtype, word_from_double(d.real(-1.0, 1.0), type.dtype));
    }
    inputs.push_back(std::move(bytes));
  }
  const Outcome expected = outcome_of(canonical(*whole), inputs, {.fuse = false});
  EXPECT_TRUE(outcome_of(canonical(*whole), inputs, {.keep_apart = any_groups(1, 1)}) == expected);
  EXPECT_FALSE(outcome_of(canonical(*cut), inputs, {}) == expected);
}

// The modes of a compile, on both devices, in both orders.
std::vector<driver::CompileOptions> modes(uint32_t seed, const char* unit) {
  constexpr int kLanes[] = {4, 8, 16, 0};
  std::vector<driver::CompileOptions> out;
  for (const bool fuse : {true, false}) {
    driver::CompileOptions o = cpu_options(kLanes[seed % 4], seed % 2 == 0 ? 1 : 3);
    o.fuse = fuse;
    o.reuse = seed % 3 != 0;
    if (seed % 5 == 0) o.kernels = {"f32_matmul"};
    out.push_back(o);
  }
  driver::CompileOptions reference = plain_reference();
  reference.fuse = reference.reuse = true;
  out.push_back(reference);
  for (driver::CompileOptions& o : out) {
    o.determinism = driver::Determinism::kBalanced;
    o.matrix_unit = unit;
  }
  return out;
}

TEST(HalfGroupings, EveryModeHasTheBitsOfOneGroupPerNode) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    if (!has_its_turn(seed, 4)) continue;
    const DrawnGraph drawn = draw_halves_graph(seed);
    const char* const unit = seed % 4 < 2 ? "" : "sm90";
    driver::CompileOptions plain = plain_reference();
    plain.determinism = driver::Determinism::kBalanced;
    plain.matrix_unit = unit;
    ASSERT_EQ(difference(drawn, plain, modes(seed, unit)), "") << "seed " << seed << "\n"
                                                               << ir::print(drawn.graph);
  }
}

}  // namespace
}  // namespace pyc::test
