// Rows that are packed before a product begins: its result lies where they were.

#include <gtest/gtest.h>

#include <algorithm>

#include "driver/assemble.h"
#include "driver/compile.h"
#include "driver/front.h"
#include "session/model.h"
#include "support/verified.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

// %t has k apart and is packed at run time on every target; %h, %p and the packed rows have as many
// bytes, and nothing else is in the arena.
constexpr std::string_view kTransposed =
    R"(graph @transposed(%x: f32[272,8]) -> (%y) {
  %w0 = const f32[8,16] random(seed=1, lo=-0.5, hi=0.5)
  %w1 = const f32[272,272] random(seed=2, lo=-0.1, hi=0.1)
  %w2 = const f32[272,8] random(seed=3, lo=-0.1, hi=0.1)
  %s = matmul(%x, %w0)
  %h = relu(%s)
  %t = transpose(%h) {perm=[1,0]}
  %q = matmul(%t, %w1)
  %p = relu(%q)
  %y = matmul(%p, %w2)
}
)";
constexpr int64_t kValueBytes = 16 * 272 * 4;

// Long rows, which one thread packs on aarch64.
constexpr std::string_view kLongRows =
    R"(graph @long_rows(%x: f32[16,8]) -> (%y) {
  %w0 = const f32[8,2048] random(seed=1, lo=-0.5, hi=0.5)
  %w1 = const f32[2048,2048] random(seed=2, lo=-0.1, hi=0.1)
  %w2 = const f32[2048,8] random(seed=3, lo=-0.1, hi=0.1)
  %h = matmul(%x, %w0)
  %p = matmul(%h, %w1)
  %y = matmul(%p, %w2)
}
)";
constexpr int64_t kLongRowsBytes = 16 * 2048 * 4;

// Keys are packed at run time, and values read where they lie.
constexpr std::string_view kAttention =
    R"(graph @attention(%x: f32[1,128,8]) -> (%y) {
  %wq = const f32[8,64] random(seed=1, lo=-0.5, hi=0.5)
  %wk = const f32[8,64] random(seed=2, lo=-0.5, hi=0.5)
  %wv = const f32[8,64] random(seed=3, lo=-0.5, hi=0.5)
  %wo = const f32[64,8] random(seed=4, lo=-0.1, hi=0.1)
  %q0 = matmul(%x, %wq)
  %q1 = reshape(%q0) {shape=[1,128,4,16]}
  %q = transpose(%q1) {perm=[0,2,1,3]}
  %k0 = matmul(%x, %wk)
  %k1 = reshape(%k0) {shape=[1,128,4,16]}
  %k = transpose(%k1) {perm=[0,2,1,3]}
  %v0 = matmul(%x, %wv)
  %v1 = reshape(%v0) {shape=[1,128,4,16]}
  %v = transpose(%v1) {perm=[0,2,1,3]}
  %c, %e, %f, %g = attention(%q, %k, %v) {scale=0.25}
  %t = transpose(%c) {perm=[0,2,1,3]}
  %r = reshape(%t) {shape=[1,128,64]}
  %y = matmul(%r, %wo)
}
)";

// Row-major, so that no choice of layouts takes the case away.
CompileOptions one_thread() {
  CompileOptions options;
  options.threads = 1;
  options.layouts = false;
  return options;
}

std::unique_ptr<runtime::Model> must_compile(std::string_view text, const CompileOptions& options) {
  auto model = session::compile(parse_model(text).value(), options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return std::move(*model);
}

std::string digest(runtime::Model& model) {
  auto data = tooling::SeededRun::create(model, 1);
  EXPECT_TRUE(data.ok());
  const Status status = model.run(data->inputs(), data->outputs());
  EXPECT_TRUE(status.ok()) << status.to_string();
  return data->digest(0).hex();
}

// The plan for one target: which operands are packed differs between them.
plan::PlanMetrics planned_for_aarch64(std::string_view text,
                                      CompileOptions options = one_thread()) {
  options.target = "aarch64_neon";
  const auto front =
      plan_graph(test::verified(parse_model(text).value()), options, TimeLimit(options));
  EXPECT_TRUE(front.ok()) << front.status().to_string();
  return front.ok() ? front->plan.host() : plan::PlanMetrics();
}

TEST(ReadFirst, AResultLiesWhereItsRowsWereAndNoBitChanges) {
  CompileOptions reference;
  reference.device = "reference";
  for (const int threads : {1, 2}) {
    SCOPED_TRACE(threads);
    CompileOptions options = one_thread();
    options.threads = threads;
    const auto model = must_compile(kTransposed, options);
    EXPECT_EQ(model->memory().arena_bytes, 2 * kValueBytes);
    EXPECT_EQ(digest(*model), digest(*must_compile(kTransposed, reference)));
    options.reuse = false;
    const auto apart = must_compile(kTransposed, options);
    EXPECT_EQ(apart->memory().arena_bytes, 3 * kValueBytes);
    EXPECT_EQ(digest(*model), digest(*apart));
  }
}

TEST(ReadFirst, AttentionLiesWhereItsKeysWere) {
  constexpr int64_t kBytes = 128 * 64 * 4;
  CompileOptions reference;
  reference.device = "reference";
  for (const int threads : {1, 2}) {
    SCOPED_TRACE(threads);
    CompileOptions options = one_thread();
    options.threads = threads;
    // Queries, keys, values, packed keys.
    EXPECT_EQ(planned_for_aarch64(kAttention, options).arena_bytes, 4 * kBytes);
    EXPECT_EQ(digest(*must_compile(kAttention, options)),
              digest(*must_compile(kAttention, reference)));
  }
}

// Values whose rows lie far apart are packed, but for the mode that has less memory.
TEST(ReadFirst, MemoryFirstReadsValuesWhereTheyLie) {
  std::string text(kAttention);
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  };
  replace("f32[8,64]", "f32[8,128]");
  replace("f32[64,8]", "f32[128,8]");
  replace("[1,128,4,16]", "[1,128,8,16]");
  replace("[1,128,64]", "[1,128,128]");
  constexpr int64_t kBytes = 128 * 128 * 4;
  const CompileOptions balanced = one_thread();
  CompileOptions lean = one_thread();
  lean.mode = "memory_first";
  EXPECT_EQ(planned_for_aarch64(text, balanced).arena_bytes, 5 * kBytes);
  EXPECT_EQ(planned_for_aarch64(text, lean).arena_bytes, 4 * kBytes);
  EXPECT_EQ(digest(*must_compile(text, balanced)), digest(*must_compile(text, lean)));
}

TEST(ReadFirst, LongRowsOfOneThreadTakeTwoValues) {
  const plan::PlanMetrics planned = planned_for_aarch64(kLongRows);
  EXPECT_EQ(planned.arena_bytes, 2 * kLongRowsBytes);
  EXPECT_EQ(planned.in_place, 1);
}

TEST(ReadFirst, RowsThatAreReadAgainStay) {
  std::string text(kLongRows);
  constexpr std::string_view kProduct = "%p = matmul(%h, %w1)";
  text.replace(text.find(kProduct), kProduct.size(), "%q = matmul(%h, %w1)\n  %p = add(%q, %h)");
  const plan::PlanMetrics planned = planned_for_aarch64(text);
  EXPECT_EQ(planned.arena_bytes, 3 * kLongRowsBytes);
  EXPECT_EQ(planned.in_place, 0);
}

// A backend that says so and yet names the rows when it writes the result.
TEST(ReadFirst, IsSeenInTheCompiledSteps) {
  const CompileOptions options = one_thread();
  const auto front =
      plan_graph(test::verified(parse_model(kTransposed).value()), options, TimeLimit(options));
  ASSERT_TRUE(front.ok()) << front.status().to_string();
  backends::CompileStats stats;
  auto groups = front->backend->compile(front->lowered, front->selection.chosen,
                                        front->backend_options, &stats);
  ASSERT_TRUE(groups.ok()) << groups.status().to_string();
  const auto assembled = [&] {
    return assemble(*front->given, front->lowered, front->plan, *groups,
                    {.backend = std::string(front->backend->name()), .target = options.target})
        .status();
  };
  EXPECT_TRUE(assembled().ok()) << assembled().to_string();
  const auto packing = std::ranges::find_if(
      *groups, [](const backends::CompiledGroup& g) { return g.steps.size() == 2; });
  ASSERT_NE(packing, groups->end());
  packing->steps[1].operands.push_back(packing->steps[0].operands[0]);
  EXPECT_EQ(assembled().message(),
            "[false_in_place] g1 names 'h' when 'p' is written in its memory");
}

}  // namespace
}  // namespace pyc::driver
