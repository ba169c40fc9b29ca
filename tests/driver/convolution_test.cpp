// Convolutions and other products of computed operands in register tiles have the bits of the
// reference: windows around every edge, groups, halves; and what is no such product says why.

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "driver/compile.h"
#include "session/model.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

struct ProductRun {
  std::string digest;
  std::vector<std::string> contractions;  // reasons
  std::vector<std::string> kernels;
};

ProductRun run_product(const std::string& text, const CompileOptions& options) {
  auto graph = parse_model(text);
  if (!graph.ok()) return {graph.status().to_string(), {}, {}};
  auto model = session::compile(std::move(*graph), options);
  if (!model.ok()) return {model.status().to_string(), {}, {}};
  const auto seeded = tooling::SeededRun::create(**model, 1);
  if (!seeded.ok()) return {seeded.status().to_string(), {}, {}};
  const Status status = (*model)->run(seeded->inputs(), seeded->outputs());
  if (!status.ok()) return {status.to_string(), {}, {}};
  ProductRun out{seeded->digest(0).hex(), {}, {}};
  for (const Decision& d : (*model)->decisions()) {
    if (d.what.starts_with("contraction:")) out.contractions.push_back(d.reason);
    if (d.what.starts_with("kernel:")) out.kernels.push_back(d.chosen);
  }
  return out;
}

std::string reference_digest(const std::string& text) {
  CompileOptions options;
  options.device = "reference";
  return run_product(text, options).digest;
}

// Every kernel is a tile's, and the bits are the reference's.
void expect_tiles(const std::string& text, std::initializer_list<int> lanes,
                  std::initializer_list<int> threads, const char* reason) {
  const std::string expected = reference_digest(text);
  CompileOptions options;
  options.device = "cpu";
  options.kernels = {"loop_generic", "loop_pairs"};
  for (const int l : lanes) {
    for (const int t : threads) {
      options.lanes = l;
      options.threads = t;
      const ProductRun ran = run_product(text, options);
      ASSERT_EQ(ran.digest, expected) << text << l << " lanes, " << t << " threads";
      ASSERT_EQ(ran.contractions, std::vector<std::string>{reason}) << text;
      ASSERT_EQ(ran.kernels.size(), 1u) << text;
      ASSERT_TRUE(ran.kernels[0].starts_with("f32_matmul__")) << text;
    }
  }
}

void expect_generic(const std::string& text, const char* reason) {
  const ProductRun ran = run_product(text, {});
  EXPECT_EQ(ran.digest, reference_digest(text)) << text;
  EXPECT_EQ(ran.contractions, std::vector<std::string>{reason}) << text;
}

struct ConvShape {
  int64_t batch = 1;
  int64_t groups = 1;
  int64_t in = 1;  // channels of a group
  int64_t out = 1;
  std::vector<int64_t> planes;
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;
  const char* dtype = "f32";
  bool constant = true;

  bool padded() const {
    return std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
  }
};

std::string conv_text(const ConvShape& s) {
  const std::string w =
      fmt::format("{}[{},{},{}]", s.dtype, s.groups * s.out, s.in, fmt::join(s.kernel, ","));
  return fmt::format(
      "graph @g(%x: {0}[{1},{2},{3}]{4}) -> (%y) {{\n{5}"
      "  %b = const {0}[{6}] random(seed=4, lo=-1, hi=1)\n"
      "  %c = conv(%x, %w, %b) {{group={7}, strides=[{8}], dilations=[{9}], pads=[{10}]}}\n"
      "  %y = relu(%c)\n}}\n",
      s.dtype, s.batch, s.groups * s.in, fmt::join(s.planes, ","),
      s.constant ? "" : fmt::format(", %w: {}", w),
      s.constant ? fmt::format("  %w = const {} random(seed=3, lo=-1, hi=1)\n", w) : "",
      s.groups * s.out, s.groups, fmt::join(s.strides, ","), fmt::join(s.dilations, ","),
      fmt::join(s.pads, ","));
}

// A convolution whose last plane has more than one element to be computed, so that it has columns.
ConvShape drawn_conv(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random() % static_cast<uint32_t>(hi - lo + 1));
  };
  ConvShape s;
  s.batch = pick(1, 3);
  s.groups = pick(0, 2) == 0 ? pick(2, 3) : 1;
  s.in = pick(1, 9);
  s.out = pick(2, 17);
  const int64_t dims = pick(1, 3);
  std::vector<int64_t> end;
  for (int64_t d = 0; d < dims; ++d) {
    s.kernel.push_back(pick(1, 4));
    s.strides.push_back(pick(1, 3));
    s.dilations.push_back(pick(1, 2));
    s.pads.push_back(pick(0, 3));
    end.push_back(pick(0, 3));
    const int64_t reach = (s.kernel.back() - 1) * s.dilations.back() + 1;
    s.planes.push_back(reach + s.strides.back() * pick(1, dims > 2 ? 4 : 12) + pick(0, 1));
  }
  s.pads.insert(s.pads.end(), end.begin(), end.end());
  return s;
}

TEST(CpuConvolution, DrawnOnesHaveTheBitsOfTheReference) {
  constexpr int kLanes[] = {4, 8, 16};
  constexpr int kThreads[] = {1, 2, 7};
  for (uint32_t seed = 1; seed <= 36; ++seed) {
    SCOPED_TRACE(seed);
    const ConvShape s = drawn_conv(seed);
    const std::string text = conv_text(s);
    CompileOptions options;
    options.device = "cpu";
    options.kernels = {"loop_generic", "loop_pairs"};
    options.lanes = kLanes[seed % 3];
    options.threads = kThreads[seed / 3 % 3];
    const ProductRun ran = run_product(text, options);
    ASSERT_EQ(ran.digest, reference_digest(text)) << text;
  }
}

TEST(CpuConvolution, EveryWidthAndThreadCount) {
  // Whole panels, rows of seven, a stride, and segments that end within a tap.
  const ConvShape shapes[] = {
      {1, 1, 16, 24, {16, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {2, 1, 40, 9, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {1, 1, 3, 8, {30, 31}, {7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
      {1, 2, 5, 6, {12, 9}, {2, 3}, {1, 2}, {2, 1}, {0, 2, 1, 0}},
  };
  for (const ConvShape& s : shapes) {
    expect_tiles(conv_text(s), {4, 8, 16}, {1, 2, 7}, "computed_operands");
  }
}

// Colours in planes of their own: the rows of a tile are evaluated as one vector where they lie a
// fixed distance apart, within and at the edges of the image.
TEST(CpuConvolution, PlanesOfFewChannels) {
  const ConvShape shapes[] = {
      {1, 1, 3, 8, {32, 32}, {7, 7}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
      {2, 1, 3, 40, {16, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {1, 1, 2, 17, {16, 48}, {5, 3}, {1, 3}, {1, 2}, {2, 2, 2, 2}},
  };
  for (const ConvShape& s : shapes) {
    expect_tiles(conv_text(s), {4, 8, 16}, {1, 2, 7}, "computed_operands");
  }
  const ConvShape patches{1, 1, 3, 24, {32, 64}, {4, 4}, {4, 4}, {1, 1}, {0, 0, 0, 0}};
  expect_tiles(conv_text(patches), {4, 8, 16}, {1, 2}, "operands_by_digits");
}

// Weights beyond the cache: windows are evaluated once, by threads that share the taps of a tile.
TEST(CpuConvolution, WindowsAreGatheredInParts) {
  const ConvShape s{1, 1, 256, 120, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
  expect_tiles(conv_text(s), {4, 16}, {1, 2, 7}, "computed_operands");
}

TEST(CpuConvolution, WithoutPaddingItsWeightsMayBeAnything) {
  ConvShape s{1, 1, 6, 10, {9, 10}, {3, 2}, {2, 1}, {1, 1}, {0, 0, 0, 0}};
  s.constant = false;
  expect_tiles(conv_text(s), {4, 16}, {2}, "operands_by_digits");
}

TEST(CpuConvolution, HalvesAreWidenedWhilePacking) {
  for (const char* dtype : {"f16", "bf16"}) {
    ConvShape s{1, 1, 6, 10, {9, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
    s.dtype = dtype;
    expect_tiles(conv_text(s), {4, 8}, {2}, "computed_operands");
    expect_tiles(fmt::format("graph @g(%x: {0}[9,70], %w: {0}[70,21]) -> (%y) {{\n"
                             "  %y = matmul(%x, %w)\n}}\n",
                             dtype),
                 {4, 16}, {1, 3}, "operands_by_digits");
  }
}

// A single element of each plane: the channels are the columns, the windows the rows.
TEST(CpuConvolution, OnePlaceHasItsWindowsAsRows) {
  const ConvShape s{5, 1, 7, 19, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
  expect_tiles(conv_text(s), {4, 8}, {1, 2}, "computed_operands");
}

// So many taps that AVX-512 takes tiles of one vector and many rows, of one height and of two,
// whose windows are evaluated for each tile and once.
TEST(CpuConvolution, LongWindowsHaveTallTiles) {
  const ConvShape shapes[] = {
      {30, 1, 168, 24, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {49, 1, 176, 72, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
  };
  for (const ConvShape& s : shapes) expect_tiles(conv_text(s), {16}, {1, 2}, "computed_operands");
}

// So many taps, in whole segments, that windows which are evaluated once go through the panels
// segment by segment on x86: tiles of one height and of two, groups of panels that are not alike.
TEST(CpuConvolution, LongWindowsGoBySegment) {
  const ConvShape shapes[] = {
      {30, 1, 256, 96, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {52, 1, 256, 330, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
  };
  for (const ConvShape& s : shapes)
    expect_tiles(conv_text(s), {8, 16}, {1, 2}, "computed_operands");
}

// Windows of so many pictures that they are not evaluated at once: tasks evaluate many tiles of
// them and then go by segments, with one thread and, of the second shape, with two.
TEST(CpuConvolution, WindowsOfManyPicturesGoBySegment) {
  const ConvShape shapes[] = {
      {260, 1, 256, 96, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {520, 1, 256, 20, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
  };
  for (const ConvShape& s : shapes)
    expect_tiles(conv_text(s), {8, 16}, {1, 2}, "computed_operands");
}

TEST(CpuConvolution, SkippedTermsNeedFiniteConstants) {
  ConvShape s{1, 1, 2, 4, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}};
  s.constant = false;
  expect_generic(conv_text(s), "skips_terms_of_a_factor_not_known_finite");
  expect_generic(
      "graph @g(%x: f32[1,1,6]) -> (%y) {\n"
      "  %w = const f32[2,1,3] dense(1, inf, 2, -1, 3, nan)\n"
      "  %y = conv(%x, %w) {pads=[1,1]}\n}\n",
      "skips_terms_of_a_factor_not_known_finite");
}

// Heads that share keys, and rows split and merged around a product. What is moved may be copied
// before.
TEST(CpuProducts, GroupedHeadsAndMergedRows) {
  const char* const texts[] = {
      "graph @g(%q: f32[6,40,64], %k: f32[2,64,48]) -> (%y) {\n"
      "  %r = reshape(%k) {shape=[2,1,64,48]}\n"
      "  %e = expand(%r) {shape=[2,3,64,48]}\n"
      "  %f = reshape(%e) {shape=[6,64,48]}\n"
      "  %y = matmul(%q, %f)\n}\n",
      "graph @g(%x: f32[2,3,4,6]) -> (%y) {\n"
      "  %w = const f32[24,10] random(seed=1, lo=-1, hi=1)\n"
      "  %t = transpose(%x) {perm=[0,2,1,3]}\n"
      "  %r = reshape(%t) {shape=[4,36]}\n"
      "  %s = reshape(%r) {shape=[6,24]}\n"
      "  %y = matmul(%s, %w)\n}\n",
      "graph @g(%x: f32[8,16,24]) -> (%y) {\n"
      "  %w = const f32[24,24] random(seed=1, lo=-1, hi=1)\n"
      "  %b = const f32[16,24] random(seed=2, lo=-1, hi=1)\n"
      "  %p = matmul(%x, %w)\n"
      "  %s = add(%p, %b)\n"
      "  %r = reshape(%s) {shape=[8,16,4,6]}\n"
      "  %y = transpose(%r) {perm=[0,2,1,3]}\n}\n",
  };
  for (const char* text : texts) {
    for (const int lanes : {4, 8}) {
      CompileOptions options;
      options.lanes = lanes;
      options.threads = lanes / 2;
      const ProductRun ran = run_product(text, options);
      EXPECT_EQ(ran.digest, reference_digest(text)) << text;
      EXPECT_EQ(ran.contractions.size(), 1u) << text;
      EXPECT_TRUE(std::any_of(ran.kernels.begin(), ran.kernels.end(), [](const std::string& k) {
        return k.starts_with("f32_matmul__");
      })) << text;
    }
  }
}

}  // namespace
}  // namespace pyc::driver
