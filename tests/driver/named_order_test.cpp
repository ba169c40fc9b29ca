// Products in a named order (docs/NUMERICS.md, matrix units): the generic kernel of a group, run by
// the interpreter and as machine code, has the bits that base/matrix_unit.h computes directly.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/convert.h"
#include "base/matrix_unit.h"
#include "driver/compile.h"
#include "session/model.h"
#include "support/compare.h"
#include "support/verified.h"

namespace pyc::test {
namespace {

using Bytes = std::vector<std::byte>;
using Halves = std::vector<uint16_t>;

constexpr std::string_view kUnit = "sm90";
constexpr int64_t kBlock = 16;
constexpr uint32_t kNaN = 0x7FC00000;

enum class Content : uint8_t {
  kNumbers,  // of like magnitude, so that nothing hides the small ones
  kSpread,   // of any exponent
  kBits,     // any at all: infinities, NaN, zeros, subnormals
};

uint16_t half_bits(DType type, double value) {
  return static_cast<uint16_t>(word_from_double(value, type));
}

Halves draw_halves(DType type, int64_t count, uint32_t seed, Content content) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-2.0, 2.0);
  std::uniform_int_distribution<int> exponent(-20, 4);
  Halves out;
  for (int64_t i = 0; i < count; ++i) {
    if (content == Content::kBits) {
      out.push_back(static_cast<uint16_t>(random()));
    } else {
      const double x = uniform(random);
      out.push_back(
          half_bits(type, content == Content::kSpread ? std::ldexp(x, exponent(random)) : x));
    }
  }
  return out;
}

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes out(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::vector<float> floats_of(const Bytes& bytes) {
  std::vector<float> out(bytes.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// As a model's output has it.
uint32_t output_bits(float x) { return x != x ? kNaN : std::bit_cast<uint32_t>(x); }

std::vector<uint32_t> output_bits(const std::vector<float>& values) {
  std::vector<uint32_t> out;
  for (const float x : values) out.push_back(output_bits(x));
  return out;
}

driver::CompileOptions in_order(const char* device, bool fuse, std::string_view unit = kUnit) {
  driver::CompileOptions o;
  o.device = device;
  o.fuse = fuse;
  o.threads = 2;
  o.cache = false;
  o.matrix_unit = unit;
  return o;
}

std::vector<Bytes> outputs_of(const std::string& text, std::vector<Bytes> inputs,
                              const driver::CompileOptions& options) {
  auto graph = driver::parse_model(text);
  EXPECT_TRUE(graph.ok()) << graph.status().to_string() << text;
  if (!graph.ok()) return {};
  const auto found = run_drawn({std::move(*graph), std::move(inputs), {}}, options);
  EXPECT_TRUE(found.ok()) << found.status().to_string() << text;
  return found.ok() ? *found : std::vector<Bytes>{};
}

// Output 0, f32, on both devices, fused and not.
void expect_floats(const std::string& text, const std::vector<Bytes>& inputs,
                   const std::vector<float>& expected) {
  for (const char* device : {"reference", "cpu"}) {
    for (const bool fuse : {false, true}) {
      const auto found = outputs_of(text, inputs, in_order(device, fuse));
      ASSERT_FALSE(found.empty());
      EXPECT_EQ(output_bits(floats_of(found[0])), output_bits(expected))
          << device << " fuse " << fuse << "\n"
          << text;
    }
  }
}

// A list of factors that grows.
struct Sum {
  DType type;
  std::vector<Factor> a = {};
  std::vector<Factor> b = {};

  void add(uint16_t x, uint16_t y) {
    a.push_back(Factor::from_bits(type, x));
    b.push_back(Factor::from_bits(type, y));
  }
  float total() const { return named_order_sum(*find_matrix_unit(kUnit, type), a, b); }
  // One segment that goes on from `acc`.
  float after(float acc) {
    const MatrixUnit unit = *find_matrix_unit(kUnit, type);
    while (a.size() % kBlock != 0) add(0, 0);
    for (size_t k = 0; k < a.size(); k += kBlock) {
      acc = unit.add_block(acc, std::span(a).subspan(k, kBlock), std::span(b).subspan(k, kBlock));
    }
    return acc;
  }
};

struct MatmulShape {
  int64_t m;
  int64_t n;
  int64_t k;
};

TEST(NamedOrder, ProductsHaveTheUnitsBits) {
  // One term, a block, one more, a segment, several and a rest, none.
  constexpr MatmulShape kShapes[] = {{3, 5, 1},    {2, 3, 16},   {4, 4, 17}, {2, 2, 1024},
                                     {1, 3, 1025}, {2, 1, 2100}, {2, 2, 0},  {1, 1, 33}};
  uint32_t seed = 1;
  for (const DType type : {DType::kBF16, DType::kF16}) {
    for (const MatmulShape& s : kShapes) {
      for (const Content content : {Content::kNumbers, Content::kSpread, Content::kBits}) {
        const Halves x = draw_halves(type, s.m * s.k, ++seed, content);
        const Halves w = draw_halves(type, s.k * s.n, ++seed, content);
        std::vector<float> expected;
        for (int64_t i = 0; i < s.m; ++i) {
          for (int64_t j = 0; j < s.n; ++j) {
            Sum sum{type};
            for (int64_t k = 0; k < s.k; ++k) {
              sum.add(x[static_cast<size_t>(i * s.k + k)], w[static_cast<size_t>(k * s.n + j)]);
            }
            expected.push_back(sum.total());
          }
        }
        const std::string text = fmt::format(
            "graph @g(%x: {0}[{1},{3}], %w: {0}[{3},{2}]) -> (%y) {{\n"
            "  %y = matmul(%x, %w) {{to=f32}}\n}}\n",
            dtype_name(type), s.m, s.n, s.k);
        expect_floats(text, {bytes_of(x), bytes_of(w)}, expected);
      }
    }
  }
}

// Of every element's block, however it lies among special ones.
TEST(NamedOrder, OneBlockOfAnyBits) {
  constexpr int64_t kRows = 2000;
  for (const DType type : {DType::kBF16, DType::kF16}) {
    for (const Content content : {Content::kSpread, Content::kBits}) {
      const Halves x = draw_halves(type, kRows * kBlock, 7, content);
      const Halves w = draw_halves(type, kBlock, 8, Content::kSpread);
      std::vector<float> expected;
      for (int64_t i = 0; i < kRows; ++i) {
        Sum sum{type};
        for (int64_t k = 0; k < kBlock; ++k) {
          sum.add(x[static_cast<size_t>(i * kBlock + k)], w[static_cast<size_t>(k)]);
        }
        expected.push_back(sum.total());
      }
      const std::string text = fmt::format(
          "graph @g(%x: {0}[{1},16], %w: {0}[16]) -> (%y) {{\n"
          "  %y = matmul(%x, %w) {{to=f32}}\n}}\n",
          dtype_name(type), kRows);
      expect_floats(text, {bytes_of(x), bytes_of(w)}, expected);
    }
  }
}

TEST(NamedOrder, ContractionsCountAllLetters) {
  const DType type = DType::kBF16;
  const Halves x = draw_halves(type, 3 * 5 * 7, 21, Content::kSpread);
  const Halves w = draw_halves(type, 7 * 5 * 2, 22, Content::kSpread);
  std::vector<float> expected;
  for (size_t i = 0; i < 3; ++i) {
    for (size_t l = 0; l < 2; ++l) {
      Sum sum{type};
      for (size_t j = 0; j < 5; ++j) {
        for (size_t k = 0; k < 7; ++k) sum.add(x[(i * 5 + j) * 7 + k], w[(k * 5 + j) * 2 + l]);
      }
      expected.push_back(sum.total());
    }
  }
  expect_floats(
      "graph @g(%x: bf16[3,5,7], %w: bf16[7,5,2]) -> (%y) {\n"
      "  %y = contract(%x, %w) {equation=\"ijk,kjl->il\", to=f32}\n}\n",
      {bytes_of(x), bytes_of(w)}, expected);
}

struct ConvShape {
  size_t channels;  // of x
  size_t group;
  size_t out;
};

// 5x5 planes, kernel 3, pads 1.
std::vector<float> convolved(DType type, const ConvShape& s, const Halves& x, const Halves& w) {
  constexpr size_t kPlane = 5;
  const size_t own = s.channels / s.group;
  const size_t padded = own < 16 ? own : (own + 15) / 16 * 16;
  std::vector<float> out;
  for (size_t o = 0; o < s.out; ++o) {
    const size_t first = o / (s.out / s.group) * own;
    for (size_t at = 0; at < kPlane * kPlane; ++at) {
      Sum sum{type};
      for (size_t tap = 0; tap < 9; ++tap) {
        const size_t row = at / kPlane + tap / 3;  // one more than in x
        const size_t column = at % kPlane + tap % 3;
        const bool inside = row > 0 && row <= kPlane && column > 0 && column <= kPlane;
        for (size_t c = 0; c < padded; ++c) {
          if (c >= own) {
            sum.add(0, 0);
            continue;
          }
          const uint16_t weight = w[(o * own + c) * 9 + tap];
          const size_t place = ((first + c) * kPlane + row - 1) * kPlane + column - 1;
          sum.add(inside ? x[place] : 0, weight);
        }
      }
      out.push_back(sum.total());
    }
  }
  return out;
}

std::string conv_text(DType type, const ConvShape& s) {
  return fmt::format(
      "graph @g(%x: {0}[1,{1},5,5], %w: {0}[{2},{3},3,3]) -> (%y) {{\n"
      "  %y = conv(%x, %w) {{pads=[1,1,1,1], group={4}, to=f32}}\n}}\n",
      dtype_name(type), s.channels, s.out, s.channels / s.group, s.group);
}

TEST(NamedOrder, ConvolutionsBeginEachTapWithABlock) {
  // Whole blocks, a rest that is filled, few channels counted densely, groups that fill a block.
  constexpr ConvShape kShapes[] = {{16, 1, 2}, {20, 1, 2}, {3, 1, 3}, {32, 2, 2}};
  uint32_t seed = 100;
  for (const DType type : {DType::kBF16, DType::kF16}) {
    for (const ConvShape& s : kShapes) {
      for (const Content content : {Content::kSpread, Content::kBits}) {
        const Halves x = draw_halves(type, static_cast<int64_t>(s.channels) * 25, ++seed, content);
        const Halves w = draw_halves(type, static_cast<int64_t>(s.out * s.channels / s.group) * 9,
                                     ++seed, content);
        expect_floats(conv_text(type, s), {bytes_of(x), bytes_of(w)}, convolved(type, s, x, w));
      }
    }
  }
}

// An infinite weight meets the +0 of a tap outside the input, which the canonical order leaves out.
TEST(NamedOrder, TapsOutsideAreZeros) {
  const ConvShape shape{16, 1, 1};
  Halves x = draw_halves(DType::kBF16, 16 * 25, 1, Content::kNumbers);
  Halves w(16 * 9, half_bits(DType::kBF16, 1.0));
  w[0] = half_bits(DType::kBF16, std::numeric_limits<double>::infinity());
  const std::vector<float> expected = convolved(DType::kBF16, shape, x, w);
  EXPECT_EQ(output_bits(expected[0]), kNaN);
  expect_floats(conv_text(DType::kBF16, shape), {bytes_of(x), bytes_of(w)}, expected);
}

// The canonical sum of at most 1024 numbers.
float tree_sum(const std::vector<float>& x) {
  std::vector<float> lanes(64, 0.0F);
  for (size_t i = 0; i < x.size(); ++i) lanes[i % 64] += x[i];
  for (size_t d = 32; d > 0; d /= 2) {
    for (size_t i = 0; i < d; ++i) lanes[i] += lanes[i + d];
  }
  return 0.0F + lanes[0];
}

struct AttendCase {
  DType type;
  size_t queries;
  size_t keys;
  size_t depth;
  size_t columns;
  const Halves& q;
  const Halves& k;
  const Halves& v;
};

// The row's formula for p.
float unit_weight(DType type, float s, float m) {
  constexpr float kStep = 0x1.743cfp-7F;
  constexpr float kRound = 0x1.8p23F - 127.0F;
  const float height = std::fma(s, kStep, std::fma(m, -kStep, 1.0F));
  const float z = height > 0.0F ? std::min(height, 1.0F) : 0.0F;
  const float sum = std::fma(z, 127.0F, kRound);
  const float r = std::fma(z, 127.0F, kRound - sum);
  std::vector<float> terms{0x1.c2a21cp-5F, 0x1.f00c5ep-3F, 0x1.62f5fcp-1F, 1.0F};
  if (type == DType::kF16) {
    terms = {0x1.3a02d2p-7F, 0x1.c9fc5p-5F, 0x1.ec0378p-3F, 0x1.62e12cp-1F, 1.0F};
  }
  float power = 0.0F;
  for (const float c : terms) power = std::fma(power, r, c);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(power) +
                              (std::bit_cast<uint32_t>(sum) << 23));
}

TEST(NamedOrder, WeightsOfAttentionAreNearExp) {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  for (const auto& [type, most] : {std::pair(DType::kBF16, 1.2e-4), {DType::kF16, 2e-5}}) {
    for (const float m : {0.0F, 3.7F, -20.3F}) {
      double worst = 0.0;
      for (int i = 0; i <= 870000; i += 7) {
        const float s = m - static_cast<float>(i) * 1e-4F;
        const double exact = std::exp(static_cast<double>(s) - static_cast<double>(m));
        const double found = unit_weight(type, s, m);
        worst = std::max(worst, std::abs(found / exact - 1.0));
      }
      EXPECT_LT(worst, most) << m;
    }
    EXPECT_EQ(unit_weight(type, 0.0F, 0.0F), 1.0F);
    EXPECT_EQ(unit_weight(type, -88.5F, 0.0F), 0.0F);
    EXPECT_EQ(unit_weight(type, kNothing, 1.0F), 0.0F);
    EXPECT_EQ(unit_weight(type, kNothing, kNothing), 0.0F);
  }
}

// One row of docs/NUMERICS.md, attention, with the products of the unit.
std::vector<float> attended(const AttendCase& c, size_t query, float scale) {
  std::vector<float> o(c.columns, 0.0F);
  float m = -std::numeric_limits<float>::infinity();
  float l = 0.0F;
  for (size_t begin = 0; begin < c.keys; begin += 128) {
    const size_t count = std::min<size_t>(128, c.keys - begin);
    std::vector<float> s;
    float top = m;
    for (size_t key = begin; key < begin + count; ++key) {
      Sum sum{c.type};
      for (size_t d = 0; d < c.depth; ++d) {
        sum.add(c.q[query * c.depth + d], c.k[key * c.depth + d]);
      }
      s.push_back(sum.total() * scale);
      top = std::max(top, s.back());
    }
    const float kept = m == top ? 1.0F : unit_weight(c.type, m, top);
    std::vector<float> p;
    for (const float x : s) p.push_back(unit_weight(c.type, x, top));
    l = l * kept + tree_sum(p);
    for (size_t e = 0; e < c.columns; ++e) {
      Sum sum{c.type};
      for (size_t u = 0; u < count; ++u) {
        sum.add(half_bits(c.type, static_cast<double>(p[u])), c.v[(begin + u) * c.columns + e]);
      }
      o[e] = sum.after(o[e] * kept);
    }
    m = top;
  }
  for (float& x : o) x = (x + 0.0F) / l;
  return o;
}

TEST(NamedOrder, AttentionAddsItsBlocksToTheSum) {
  constexpr float kScale = 0.25F;
  uint32_t seed = 500;
  for (const DType type : {DType::kBF16, DType::kF16}) {
    for (const int64_t keys : {1, 20, 128, 150, 300}) {
      const Halves q = draw_halves(type, 3 * 24, ++seed, Content::kNumbers);
      const Halves k = draw_halves(type, keys * 24, ++seed, Content::kNumbers);
      const Halves v = draw_halves(type, keys * 5, ++seed, Content::kSpread);
      const AttendCase c{type, 3, static_cast<size_t>(keys), 24, 5, q, k, v};
      std::vector<float> expected;
      for (size_t query = 0; query < 3; ++query) {
        const std::vector<float> row = attended(c, query, kScale);
        expected.insert(expected.end(), row.begin(), row.end());
      }
      const std::string text = fmt::format(
          "graph @g(%q: {0}[1,1,3,24], %k: {0}[1,1,{1},24], %v: {0}[1,1,{1},5]) -> (%y) {{\n"
          "  %y, %m, %l = attend(%q, %k, %v) {{scale={2}}}\n}}\n",
          dtype_name(type), keys, kScale);
      expect_floats(text, {bytes_of(q), bytes_of(k), bytes_of(v)}, expected);
    }
  }
}

// A product that is followed by others: what is stored where is no part of the order.
constexpr const char* kBlockOfModel =
    "graph @g(%x: bf16[8,40], %w: bf16[40,24], %b: bf16[24], %u: bf16[24,8]) -> (%y) {\n"
    "  %h = matmul(%x, %w)\n"
    "  %s = add(%h, %b)\n"
    "  %r = relu(%s)\n"
    "  %y = matmul(%r, %u) {to=f32}\n}\n";

std::vector<Bytes> block_inputs() {
  return {bytes_of(draw_halves(DType::kBF16, 8 * 40, 1, Content::kSpread)),
          bytes_of(draw_halves(DType::kBF16, 40 * 24, 2, Content::kSpread)),
          bytes_of(draw_halves(DType::kBF16, 24, 3, Content::kSpread)),
          bytes_of(draw_halves(DType::kBF16, 24 * 8, 4, Content::kSpread))};
}

TEST(NamedOrder, OnlyBalancedHasOne) {
  const std::vector<Bytes> inputs = block_inputs();
  driver::CompileOptions o = in_order("reference", true);
  const auto named = outputs_of(kBlockOfModel, inputs, o);
  o.determinism = driver::Determinism::kStrict;
  const auto strict = outputs_of(kBlockOfModel, inputs, o);
  o.determinism = driver::Determinism::kFast;
  const auto fast = outputs_of(kBlockOfModel, inputs, o);
  const auto none = outputs_of(kBlockOfModel, inputs, in_order("reference", true, "none"));
  const auto own = outputs_of(kBlockOfModel, inputs, in_order("reference", true, ""));
  EXPECT_NE(named, strict);
  EXPECT_EQ(fast, strict);
  EXPECT_EQ(none, strict);
  EXPECT_EQ(own, strict);  // the reference has no unit
}

TEST(NamedOrder, OtherTypesAndDepthwiseStayCanonical) {
  const std::string depthwise = conv_text(DType::kF16, {8, 2, 2});
  const std::vector<Bytes> inputs{bytes_of(draw_halves(DType::kF16, 8 * 25, 5, Content::kSpread)),
                                  bytes_of(draw_halves(DType::kF16, 72, 6, Content::kSpread))};
  EXPECT_EQ(outputs_of(depthwise, inputs, in_order("reference", true)),
            outputs_of(depthwise, inputs, in_order("reference", true, "none")));
  const std::string f32 =
      "graph @g(%x: f32[3,40], %w: f32[40,2]) -> (%y) {\n  %y = matmul(%x, %w)\n}\n";
  std::vector<float> x;
  for (int i = 0; i < 200; ++i) x.push_back(1.0F / static_cast<float>(i + 1));
  const std::vector<float> a(x.begin(), x.begin() + 120);
  const std::vector<float> b(x.begin() + 120, x.end());
  EXPECT_EQ(outputs_of(f32, {bytes_of(a), bytes_of(b)}, in_order("reference", true)),
            outputs_of(f32, {bytes_of(a), bytes_of(b)}, in_order("reference", true, "none")));
}

TEST(NamedOrder, GroupsAndLogSayWhichOne) {
  const auto groups = driver::dump(test::verified(*driver::parse_model(kBlockOfModel)),
                                   in_order("cpu", true), "groups");
  ASSERT_TRUE(groups.ok()) << groups.status().to_string();
  EXPECT_NE(groups->find("  order sm90\n  product batch 1 m 8 n 24 k 40 segment 1024\n"),
            std::string::npos)
      << *groups;
  const auto model = session::compile(*driver::parse_model(kBlockOfModel), in_order("cpu", true));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  int orders = 0;
  int tiles = 0;
  for (const Decision& d : (*model)->decisions()) {
    orders += d.what.starts_with("order:") && d.chosen == kUnit ? 1 : 0;
    tiles += d.chosen.starts_with("f32_matmul") ? 1 : 0;
  }
  EXPECT_EQ(orders, 2);
  EXPECT_EQ(tiles, 0);  // they compute the canonical order
}

TEST(NamedOrder, UnknownUnitsAreRefused) {
  const auto refused =
      session::compile(*driver::parse_model(kBlockOfModel), in_order("reference", true, "sm9"));
  EXPECT_EQ(refused.status().code(), Code::kUnknownOption);
  EXPECT_NE(refused.status().message().find("sm90"), std::string::npos);
}

}  // namespace
}  // namespace pyc::test
