// Random graphs over the whole op table: whatever is fused, tiled, vectorized and cut among
// threads, the CPU must give the bits of the plain reference (one group per node).
// PYC_RANDOM_GRAPHS sets how many, PYC_RANDOM_SEED where to start; scripts/random_graphs runs many
// more.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "ops/registry.h"
#include "support/compare.h"

namespace pyc::test {
namespace {

int setting(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : fallback;
}

TEST(RandomGraphs, CpuGivesTheBitsOfTheUnfusedReference) {
  constexpr int kLanes[] = {4, 8, 16, 0};
  constexpr int kThreads[] = {1, 2, 7};
  constexpr const char* kEfforts[] = {"fast_dev", "balanced", "max_perf"};
  const int first = setting("PYC_RANDOM_SEED", 1);
  for (int seed = first; seed < first + setting("PYC_RANDOM_GRAPHS", 60); ++seed) {
    const DrawnGraph drawn = draw_graph(static_cast<uint64_t>(seed));
    driver::CompileOptions fused = plain_reference();
    fused.fuse = true;
    fused.reuse = true;
    fused.threads = 2;
    driver::CompileOptions cpu = cpu_options(kLanes[seed % 4], kThreads[seed % 3]);
    if (seed % 5 == 0) cpu.kernels = {"f32_matmul"};
    driver::CompileOptions other_effort = cpu;
    other_effort.effort = kEfforts[seed % 3];
    const std::string found = difference(drawn, {fused, cpu, other_effort});
    ASSERT_EQ(found, "") << "seed " << seed << "\n" << ir::print(drawn.graph);
  }
}

TEST(RandomGraphs, EveryOpCanBeDrawn) {
  std::vector<std::string> faults;
  std::set<std::string_view> drawn;
  for (const Pair& pair : all_pairs(&faults)) drawn.insert(pair.op->name);
  for (const std::string& fault : faults) ADD_FAILURE() << fault;
  for (const ir::OpDef* op : ops::all_ops().all()) {
    EXPECT_TRUE(op->draw.node != nullptr || op->traits.elementwise)
        << op->name << " is drawn as an elementwise op, which it is not: give it a draw.node";
    EXPECT_TRUE(drawn.contains(op->name))
        << op->name << " takes no dtype as it is drawn: say in its file how to (OpDef::draw)";
  }
}

TEST(RandomGraphs, EveryOpOccursWithEveryDtypeItTakes) {
  constexpr int kGraphs = 30000;
  std::set<Pair> missing(all_pairs().begin(), all_pairs().end());
  EXPECT_GT(missing.size(), 1500U);
  for (uint64_t seed = 1; seed <= kGraphs && !missing.empty(); ++seed) {
    for (const Pair& pair : draw_graph(seed).pairs) missing.erase(pair);
  }
  for (const Pair& pair : missing) {
    ADD_FAILURE() << pair.op->name << " never occurred with " << dtype_name(pair.dtype);
  }
}

// Text and back, and the same seed again.
TEST(RandomGraphs, AreTheSameEveryTimeAndAsText) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const DrawnGraph drawn = draw_graph(seed);
    const std::string text = ir::print(drawn.graph);
    const DrawnGraph again = draw_graph(seed);
    EXPECT_EQ(ir::print(again.graph), text) << "seed " << seed;
    EXPECT_EQ(again.inputs, drawn.inputs) << "seed " << seed;
    const auto parsed = ir::parse(text, ops::all_ops());
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string() << "\n" << text;
    EXPECT_EQ(ir::print(*parsed), text);
  }
}

}  // namespace
}  // namespace pyc::test
