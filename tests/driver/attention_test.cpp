// The CPU's kernel of attention has the bits of the reference, around every edge of its tiles,
// blocks and tasks.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "driver/compile.h"
#include "session/model.h"
#include "support/verified.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

struct AttentionShape {
  int64_t batch;
  int64_t groups;
  int64_t shared;  // query heads of a key head
  int64_t queries;
  int64_t keys;
  int64_t depth;
  int64_t columns;
  const char* mask = "";  // its dims behind the dtype, or ""
  const char* attrs = "";
};

constexpr AttentionShape kAttentionShapes[] = {
    {1, 1, 1, 8, 128, 64, 64},
    {1, 2, 1, 9, 128, 64, 64},
    {2, 1, 2, 1, 5, 8, 6},
    {1, 1, 1, 7, 1, 4, 4},
    {1, 1, 1, 16, 127, 3, 1},
    {1, 1, 2, 17, 129, 16, 8, "", ", causal=true"},
    {1, 1, 1, 3, 64, 5, 70},
    {1, 1, 1, 11, 65, 1, 9, "", ", softcap=1.5"},
    {1, 3, 1, 8, 256, 80, 16, "f32[1,1,1,256]"},
    {2, 1, 1, 10, 300, 8, 12, "bool[10,300]"},
    {1, 1, 1, 24, 257, 256, 32, "f32[24,257]", ", causal=true, left_window=40"},
};

std::string attention_text(const AttentionShape& s) {
  const bool masked = s.mask[0] != '\0';
  return fmt::format(
      "graph @g(%x: f32[{0},{4},{6}], %k: f32[{0},{1},{5},{2}], %v: f32[{0},{1},{5},{3}]{7}) -> "
      "(%y) {{\n"
      "  %r = reshape(%x) {{shape=[{0},{4},{8},{2}]}}\n"
      "  %q = transpose(%r) {{perm=[0,2,1,3]}}\n"
      "  %y, %a, %b, %c = attention(%q, %k, %v{9}) {{{10}scale=0.3{11}}}\n"
      "}}\n",
      s.batch, s.groups, s.depth, s.columns, s.queries, s.keys, s.groups * s.shared * s.depth,
      masked ? fmt::format(", %m: {}", s.mask) : "", s.groups * s.shared, masked ? ", %m" : "",
      masked ? "with=\"mask\", " : "", s.attrs);
}

struct AttentionRun {
  std::string digest;
  std::string kernel;  // of the group that is the attention
};

AttentionRun run_attention(const std::string& text, const CompileOptions& options) {
  auto graph = parse_model(text);
  if (!graph.ok()) return {graph.status().to_string(), ""};
  auto model = session::compile(std::move(*graph), options);
  if (!model.ok()) return {model.status().to_string(), ""};
  const auto seeded = tooling::SeededRun::create(**model, 1);
  if (!seeded.ok()) return {seeded.status().to_string(), ""};
  const Status status = (*model)->run(seeded->inputs(), seeded->outputs());
  if (!status.ok()) return {status.to_string(), ""};
  AttentionRun out{seeded->digest(0).hex(), ""};
  for (const Decision& d : (*model)->decisions()) {
    if (d.what.starts_with("kernel:") && d.chosen.starts_with("f32_attention"))
      out.kernel = d.chosen;
  }
  return out;
}

// By the kernel of attention, with the reference's bits.
void expect_attention(const std::string& text, std::initializer_list<int> lanes) {
  CompileOptions options;
  options.device = "reference";
  const std::string expected = run_attention(text, options).digest;
  options.device = "cpu";
  options.kernels = {"loop_generic", "loop_pairs"};
  for (const int l : lanes) {
    for (const int threads : {1, 3}) {
      options.lanes = l;
      options.threads = threads;
      const AttentionRun ran = run_attention(text, options);
      EXPECT_EQ(ran.digest, expected) << text << l << " lanes, " << threads << " threads";
      EXPECT_TRUE(ran.kernel.starts_with("f32_attention__")) << text;
    }
  }
}

TEST(CpuAttention, HasTheBitsOfTheReference) {
  for (const AttentionShape& shape : kAttentionShapes) {
    expect_attention(attention_text(shape), {4, 8, 16});
  }
}

// Tasks of sixteen and more queries on AVX-512, which find maxima and sums of eight rows side by
// side: blocks that fill no 64 scores, no vector, and less than one; a last task that begins among
// the rows of the one before.
TEST(CpuAttention, ManyQueries) {
  constexpr AttentionShape kShapes[] = {
      {1, 1, 2, 64, 128, 8, 16},
      {1, 1, 1, 70, 15, 4, 5},
      {1, 2, 1, 65, 92, 6, 40, "", ", causal=true"},
      {1, 1, 1, 81, 231, 4, 33, "bool[81,231]"},
      {1, 1, 1, 1030, 20, 4, 64, "", ", causal=true"},
      {1, 1, 1, 1024, 130, 3, 65},
  };
  for (const AttentionShape& shape : kShapes) expect_attention(attention_text(shape), {16});
}

// Scores that are NaN, infinite, of either zero, and rows that may attend to nothing.
TEST(CpuAttention, ScoresThatAreNoNumbers) {
  constexpr int64_t kQueries = 66;
  for (const int64_t keys : {64, 131}) {
    std::string mask;
    for (int64_t i = 0; i < kQueries; ++i) {
      for (int64_t j = 0; j < keys; ++j) {
        const bool here = j == i * 7 % keys;
        const char* odd[] = {"nan", "inf", "-inf", "-0.0", "0.5"};
        const char* other = i % 6 == 5 ? "-inf" : "0.0";
        mask += fmt::format("{}{}", mask.empty() ? "" : ", ", here ? odd[i % 5] : other);
      }
    }
    expect_attention(
        fmt::format("graph @g(%q: f32[1,1,{0},4], %k: f32[1,1,{1},4], %v: f32[1,1,{1},9]) -> "
                    "(%y) {{\n"
                    "  %m = const f32[{0},{1}] dense({2})\n"
                    "  %y, %a, %b, %c = attention(%q, %k, %v, %m) {{with=\"mask\", scale=0.3}}\n"
                    "}}\n",
                    kQueries, keys, mask),
        {4, 16});
  }
}

// q, k and v as parts of one projection, in blocks of which the last is not full: what a reshape
// makes of a key's number must not hide its stride.
TEST(CpuAttention, TakesPartsOfOneProjectionInAnyNumberOfKeys) {
  for (const int64_t keys : {1, 5, 127, 129, 197, 300}) {
    const std::string text = fmt::format(
        "graph @g(%x: f32[{0},24], %m: bool[{0}]) -> (%y) {{\n"
        "  %q0 = slice(%x) {{starts=[0,0], ends=[{0},8]}}\n"
        "  %q1 = reshape(%q0) {{shape=[{0},2,4]}}\n"
        "  %q2 = transpose(%q1) {{perm=[1,0,2]}}\n"
        "  %q = reshape(%q2) {{shape=[1,2,{0},4]}}\n"
        "  %k0 = slice(%x) {{starts=[0,8], ends=[{0},16]}}\n"
        "  %k1 = reshape(%k0) {{shape=[{0},2,4]}}\n"
        "  %k2 = transpose(%k1) {{perm=[1,0,2]}}\n"
        "  %k = reshape(%k2) {{shape=[1,2,{0},4]}}\n"
        "  %v0 = slice(%x) {{starts=[0,16], ends=[{0},24]}}\n"
        "  %v1 = reshape(%v0) {{shape=[{0},2,4]}}\n"
        "  %v2 = transpose(%v1) {{perm=[1,0,2]}}\n"
        "  %v = reshape(%v2) {{shape=[1,2,{0},4]}}\n"
        "  %y, %a, %b, %c = attention(%q, %k, %v, %m) {{with=\"mask\", scale=0.3}}\n"
        "}}\n",
        keys);
    CompileOptions options;
    options.device = "reference";
    const std::string expected = run_attention(text, options).digest;
    options.device = "cpu";
    options.kernels = {"loop_generic", "loop_pairs"};
    const AttentionRun ran = run_attention(text, options);
    EXPECT_EQ(ran.digest, expected) << text;
    EXPECT_TRUE(ran.kernel.starts_with("f32_attention__")) << text << ran.digest;
    const auto loops = dump(test::verified(*parse_model(text)), {}, "loop");
    ASSERT_TRUE(loops.ok()) << loops.status().to_string();
    EXPECT_EQ(loops->find('%'), std::string::npos) << *loops;
    EXPECT_EQ(loops->find("check"), std::string::npos) << *loops;
  }
}

// What is computed for an operand is computed once, not at every read of it.
TEST(CpuAttention, ReadsWhatWasComputedBehindAMove) {
  const char* const text =
      "graph @g(%x: f32[1,16,32], %b: f32[32], %k: f32[1,4,16,8], %v: f32[1,4,16,8]) -> (%y) {\n"
      "  %s = add(%x, %b)\n"
      "  %r = reshape(%s) {shape=[1,16,4,8]}\n"
      "  %q = transpose(%r) {perm=[0,2,1,3]}\n"
      "  %y, %p, %w, %c = attention(%q, %k, %v)\n"
      "}\n";
  const auto groups = dump(test::verified(*parse_model(text)), {}, "groups");
  ASSERT_TRUE(groups.ok()) << groups.status().to_string();
  EXPECT_NE(groups->find("%q = transpose [moves_data]"), std::string::npos) << *groups;
  EXPECT_EQ(groups->find("%s = add [single_use]"), std::string::npos) << *groups;
}

// Scores that are asked for are computed apart.
TEST(CpuAttention, KeepsItsBitsWhenScoresAreAskedFor) {
  const std::string plain = attention_text(kAttentionShapes[9]);
  std::string with_scores = plain;
  with_scores.replace(with_scores.find("-> (%y)"), 7, "-> (%y, %c)");
  EXPECT_EQ(run_attention(with_scores, {}).digest, run_attention(plain, {}).digest);
}

}  // namespace
}  // namespace pyc::driver
