// Random graphs: leaving out any bit-preserving pass, or all of them, changes no bit of any output,
// -0, infinities and NaN included. PYC_RANDOM_GRAPHS sets how many, PYC_RANDOM_SEED where to start.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/sanitizers.h"
#include "passes/run_text.h"
#include "support/draw.h"

namespace pyc::passes {
namespace {

using test::draw_graph;
using test::DrawnGraph;
using test::DrawOptions;
using test::Pair;

int setting(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : fallback;
}

// What passes look for: neutral constants, chains of casts, transposes around elementwise ops,
// equal nodes, nodes over constants.
DrawOptions rewritten_ops() {
  static constexpr std::string_view kOps[] = {
      "abs", "add", "cast",       "div",  "expand",  "identity", "less", "max",       "min",
      "mul", "neg", "reduce_max", "relu", "reshape", "sqrt",     "sub",  "transpose", "where"};
  static constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kI32, DType::kU8};
  DrawOptions options;
  options.max_nodes = 20;
  for (const Pair& pair : test::all_pairs()) {
    const bool known = std::count(std::begin(kOps), std::end(kOps), pair.op->name) > 0;
    const bool usual = std::count(std::begin(kTypes), std::end(kTypes), pair.dtype) > 0;
    if (known && usual) options.pairs.push_back(pair);
  }
  return options;
}

// The passes to leave out, one list after the other: each alone, then none. Value-changing ones are
// always left out.
std::vector<std::vector<std::string>> settings() {
  std::vector<std::string> value_changing;
  for (const Pass& pass : pipeline()) {
    if (pass.value_changing) value_changing.emplace_back(pass.name);
  }
  std::vector<std::vector<std::string>> lists;
  for (const Pass& pass : pipeline()) {
    if (pass.required || pass.value_changing) continue;
    lists.push_back(value_changing);
    lists.back().emplace_back(pass.name);
  }
  lists.push_back(value_changing);
  return lists;
}

// How many of the settings changed the graph.
size_t check(const DrawnGraph& drawn, uint64_t seed) {
  const Outcome plain = run_graph(drawn.graph, optional_passes(), drawn.inputs);
  EXPECT_EQ(plain.error, "") << "seed " << seed << "\n" << ir::print(drawn.graph);
  size_t changed = 0;
  for (const std::vector<std::string>& off : settings()) {
    const Outcome optimized = run_graph(drawn.graph, off, drawn.inputs);
    EXPECT_EQ(optimized.error, "") << "seed " << seed << "\n" << ir::print(drawn.graph);
    EXPECT_EQ(plain.outputs, optimized.outputs)
        << "seed " << seed << ", without " << fmt::format("{}", fmt::join(off, " ")) << "\n"
        << ir::print(drawn.graph) << plain.canonical << optimized.canonical;
    changed += optimized.canonical != plain.canonical ? 1 : 0;
  }
  return changed;
}

void check_all(const DrawOptions& options, int count) {
  const int first = setting("PYC_RANDOM_SEED", 1);
  size_t changed = 0;
  for (int seed = first; seed < first + setting("PYC_RANDOM_GRAPHS", count); ++seed) {
    const auto s = static_cast<uint64_t>(seed);
    changed += check(draw_graph(s, options), s);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  EXPECT_GT(changed, 0U);
}

TEST(RandomGraphs, PassesKeepEveryBit) { check_all(rewritten_ops(), kSanitized ? 30 : 100); }

TEST(RandomGraphs, PassesKeepEveryBitOfAllOps) { check_all({}, kSanitized ? 30 : 150); }

}  // namespace
}  // namespace pyc::passes
