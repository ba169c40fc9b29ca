// The log answers why a value was not fused: every group that was refused, and why what could be
// read through is stored.

#include <gtest/gtest.h>

#include "driver/compile.h"
#include "lower/lower.h"
#include "ops/registry.h"
#include "passes/pipeline.h"

namespace pyc::driver {
namespace {

// The decision about `what`, one line, or "" when there is none.
std::string decision(std::string_view text, std::string_view what) {
  auto graph = parse_model(text);
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  auto given = ir::verify_graph(std::move(*graph));
  EXPECT_TRUE(given.ok()) << given.status().to_string();
  DecisionLog log;
  auto canonical = passes::run_pipeline(std::move(*given), ops::all_ops(), {}, &log);
  EXPECT_TRUE(canonical.ok()) << canonical.status().to_string();
  const auto lowered = lower::lower_graph(*canonical, {});
  EXPECT_TRUE(lowered.ok()) << lowered.status().to_string();
  std::string found;
  for (const Decision& d : lowered->decisions) {
    if (d.what != what) continue;
    found = d.chosen + " [" + d.reason + "]";
    for (const Alternative& a : d.alternatives) found += "; not " + a.name + ": " + a.rejected;
  }
  return found;
}

constexpr std::string_view kCycle = R"(graph @g(%x: f32[4,4]) -> (%y) {
  %a = exp(%x)
  %t = transpose(%a) {perm=[1,0]}
  %s = softmax(%t) {axis=-1}
  %u = transpose(%s) {perm=[1,0]}
  %y = add(%a, %u)
}
)";

TEST(WhyNotFused, EveryRefusedGroupIsNamed) {
  EXPECT_EQ(decision(kCycle, "fusion:%y"),
            "new group [would_make_cycle]; not group of %t: other_index; "
            "not group of %a: would_make_cycle");
  EXPECT_EQ(decision(kCycle, "inline:%a"), "stored [several_uses]");
}

// What views of a value are read by reads the value, where it takes more than a few operations; of
// a value that is only moved those count that read all of it, not those that each take a part.
TEST(WhyNotFused, UsesAreCountedThroughViews) {
  constexpr std::string_view computed = R"(graph @g(%x: f32[4,6]) -> (%y, %z) {
  %a = gelu(%x)
  %v = reshape(%a) {shape=[24]}
  %y = reduce_max(%v)
  %z = reduce_min(%v)
}
)";
  EXPECT_EQ(decision(computed, "inline:%a"), "stored [several_uses]");
  std::string cheap(computed);
  cheap.replace(cheap.find("gelu"), 4, "relu");
  EXPECT_EQ(decision(cheap, "inline:%a"), "read through [single_use]");
  constexpr std::string_view moved = R"(graph @g(%x: f32[4,6]) -> (%y, %z) {
  %a = transpose(%x) {perm=[1, 0]}
  %v = reshape(%a) {shape=[24]}
  %y = reduce_max(%v)
  %z = reduce_min(%v)
}
)";
  EXPECT_EQ(decision(moved, "inline:%a"), "stored [several_uses]");
  constexpr std::string_view parts = R"(graph @g(%x: f32[4,6]) -> (%y, %z) {
  %a = transpose(%x) {perm=[1, 0]}
  %v = reshape(%a) {shape=[24]}
  %b = slice(%v) {starts=[0], ends=[12]}
  %c = slice(%v) {starts=[12], ends=[24]}
  %y = exp(%b)
  %z = exp(%c)
}
)";
  EXPECT_EQ(decision(parts, "inline:%a"), "read through [moves_data]");
}

TEST(WhyNotFused, ACopyForAProductHasAReasonOfItsOwn) {
  constexpr std::string_view text =
      R"(graph @g(%p: f32[2,4,5], %v: f32[2,5,3], %w: f32[6,8]) -> (%y) {
  %c = matmul(%p, %v)
  %t = transpose(%c) {perm=[1, 0, 2]}
  %joined = reshape(%t) {shape=[4, 6]}
  %y = matmul(%joined, %w)
}
)";
  EXPECT_EQ(decision(text, "inline:%t"), "stored [keeps_product_strides]");
  EXPECT_EQ(decision(text, "fusion:%t"),
            "new group [keeps_product_strides]; not group of %c: other_index");
}

TEST(WhyNotFused, WhatIsReadOftenOrByAWholeKernelIsStored) {
  constexpr std::string_view often = R"(graph @g(%x: f32[4,8], %w: f32[8,16]) -> (%y) {
  %e = exp(%x)
  %y = matmul(%e, %w)
}
)";
  EXPECT_EQ(decision(often, "inline:%e"), "stored [read_again]");
  constexpr std::string_view kernel = R"(graph @g(%x: f32[4,8]) -> (%y) {
  %e = exp(%x)
  %y = cumsum(%e) {axis=1}
}
)";
  EXPECT_EQ(decision(kernel, "inline:%e"), "stored [whole_kernel_reads_it]");
}

}  // namespace
}  // namespace pyc::driver
