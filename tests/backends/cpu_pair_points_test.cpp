// Kernels whose points are joined in pairs, and what generated code concludes from a row's maximum.

#include <gtest/gtest.h>

#include "backends/cpu/pair_points.h"
#include "backends/cpu_emit_support.h"

namespace pyc::cpu_test {
namespace {

// Like a softmax of 6 rows.
constexpr const char* kRows = R"(buffer b0: f32[600] read
buffer b1: f32[100] scratch
buffer b2: f32[600] write
parallel v0 < 6
loop v1 < 100 vector {
  reduce v2: f32 = exact max(b0[v0*100 + v1])
}
loop v3 < 100 vector {
  let t0: f32 = min(max(b0[v0*100 + v3] - v2, -8:f32), 88.75:f32)
  b1[v3] = t0
  reduce v4: f32 = tree sum(t0 * t0)
}
loop v5 < 100 vector {
  b2[v0*100 + v5] = b1[v5] / v4
})";

TEST(PairPoints, EveryLoopHasBothRows) {
  const auto pairs = cpu::pair_points(parsed(kRows));
  ASSERT_TRUE(pairs.has_value());
  EXPECT_EQ(loop::print(*pairs), R"(kernel {
buffer b0: f32[600] read
buffer b1: f32[100] scratch
buffer b2: f32[600] write
buffer b3: f32[100] scratch
parallel v0 < 3
loop v1 < 100 vector {
  reduce v2: f32 = exact max(b0[v0*200 + v1])
  reduce v3: f32 = exact max(b0[v0*200 + v1 + 100])
}
loop v4 < 100 vector {
  let t0: f32 = min(max(b0[v0*200 + v4] - v2, -8:f32), 88.75:f32)
  b1[v4] = t0
  let t1: f32 = min(max(b0[v0*200 + v4 + 100] - v3, -8:f32), 88.75:f32)
  b3[v4] = t1
  reduce v5: f32 = tree sum(t0 * t0)
  reduce v6: f32 = tree sum(t1 * t1)
}
loop v7 < 100 vector {
  b2[v0*200 + v7] = b1[v7] / v5
  b2[v0*200 + v7 + 100] = b3[v7] / v6
}
}
)");
  const Status status = loop::verify_kernel(*pairs);
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST(PairPoints, BitsStay) {
  for (const char* extent : {"64", "100", "1000", "2050", "4096"}) {
    SCOPED_TRACE(extent);
    const std::string elements = std::to_string(6 * std::stoi(extent));
    const std::string text = replaced(replaced(kRows, "600", elements), "100", extent);
    const Kernel kernel = parsed(text);
    const auto pairs = cpu::pair_points(kernel);
    ASSERT_TRUE(pairs.has_value());
    for (const uint64_t seed : {1, 2, 3}) {
      Harness harness(*pairs, seed);
      Harness::Bytes found = harness.interpreted();
      ASSERT_FALSE(found.empty());
      found.pop_back();  // the second scratch row
      EXPECT_EQ(found, Harness(kernel, seed).interpreted());
      harness.check();
    }
  }
}

TEST(PairPoints, OtherFormsAreLeft) {
  const auto is_paired = [](const std::string& from, const std::string& to) {
    const std::string text = replaced(kRows, from, to);
    EXPECT_TRUE(from.empty() || text != kRows) << from;
    return cpu::pair_points(parsed(text)).has_value();
  };
  EXPECT_TRUE(is_paired("< 6", "< 4"));
  EXPECT_FALSE(is_paired("< 6", "< 5"));                   // a row would be left
  EXPECT_FALSE(is_paired("v1 < 100 vector", "v1 < 100"));  // one after another
  EXPECT_FALSE(is_paired("v1 < 100", "v1 < 50"));          // a short row
  EXPECT_FALSE(is_paired("parallel v0 < 6", "parallel v0 < 6\nparallel v9 < 1"));  // two variables
  EXPECT_FALSE(is_paired("  b1[v3] = t0\n", "  b1[v3] = t0\n  check t0 < 100:f32 else 7\n"));
}

// What generated code for AVX-512 leaves out: the upper bound of a number that is proven negative.
bool has_bound(const std::string& text) {
  auto llvm = cpu::emit_llvm_text(parsed(text), cpu::CodegenTarget::x86_avx512());
  EXPECT_TRUE(llvm.ok()) << llvm.status().to_string();
  constexpr const char* kBound = "8.875000e+01";
  return llvm.ok() && llvm->find(kBound) != std::string::npos;
}

TEST(EmitBounds, AnElementLessTheMaximumOfItsRowIsNotPositive) {
  const std::string rows = kRows;
  EXPECT_FALSE(has_bound(rows));
  // Part of the row is as good; so is what the loop of the maximum kept of it.
  EXPECT_FALSE(has_bound(replaced(rows, "v3 < 100", "v3 < 70")));
  std::string kept = replaced(rows, "v1 < 100 vector {", "v1 < 100 vector {\n  b3[v1] = t9");
  kept = replaced(kept, "  b3[v1] = t9", "  let t9: f32 = b0[v0*100 + v1] * 3:f32\n  b3[v1] = t9");
  kept = replaced(kept, "max(b0[v0*100 + v1])", "max(t9)");
  kept = replaced(kept, "b0[v0*100 + v3]", "b3[v3]");
  kept = replaced(kept, "parallel", "buffer b3: f32[100] scratch\nparallel");
  EXPECT_FALSE(has_bound(kept));
  EXPECT_TRUE(has_bound(replaced(kept, "max(t9)", "max(t9 + 1:f32)")));
}

TEST(EmitBounds, MinusAMagnitudeIsNotPositive) {
  const std::string rows = kRows;
  const std::string element = "b0[v0*100 + v3] - v2";
  EXPECT_FALSE(has_bound(replaced(rows, element, "neg(abs(b0[v0*100 + v3]))")));
  EXPECT_TRUE(has_bound(replaced(rows, element, "abs(b0[v0*100 + v3])")));
  EXPECT_TRUE(has_bound(replaced(rows, element, "neg(b0[v0*100 + v3])")));
}

TEST(EmitBounds, AnythingElseMayBePositive) {
  const std::string rows = kRows;
  EXPECT_TRUE(has_bound(replaced(rows, "v1 < 100", "v1 < 99")));  // not the last one
  EXPECT_TRUE(has_bound(replaced(rows, "exact max", "exact min")));
  EXPECT_TRUE(has_bound(replaced(rows, "max(b0[v0*100 + v1])", "max(b0[v1])")));  // another row
  EXPECT_TRUE(has_bound(replaced(rows, "max(b0[v0*100 + v1])", "max(b0[v0*100 + v1] * 2:f32)")));
  EXPECT_TRUE(has_bound(replaced(rows, "max(b0[v0*100 + v1])", "max(b0[v1*2 + v0])")));
  EXPECT_TRUE(has_bound(replaced(rows, "-8:f32", "8:f32")));
  EXPECT_TRUE(has_bound(replaced(rows, "- v2", "+ v2")));
}

// NaNs and zeros of both signs anywhere in a row, at every width.
TEST(EmitReductions, ExtremesOfFewEdgeValues) {
  for (const char* op : {"max", "min"}) {
    for (const int n : {1, 3, 17, 64, 100, 130}) {
      SCOPED_TRACE(std::string(op) + " of " + std::to_string(n));
      const std::string length = std::to_string(n);
      const std::string all = std::to_string(40 * n);
      const Kernel kernel =
          parsed("buffer b0: f32[" + all + "] read\nbuffer b1: f32[40] write\nparallel v0 < 40\n" +
                 "loop v1 < " + length + " vector {\n  reduce v2: f32 = exact " + op + "(b0[v0*" +
                 length + " + v1])\n}\nb1[v0] = v2");
      Harness harness(kernel);
      const std::span<float> x = harness.data<float>(0);
      std::mt19937 random(7);
      const float nan = std::numeric_limits<float>::quiet_NaN();
      const float infinity = std::numeric_limits<float>::infinity();
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t row = i / static_cast<size_t>(n);
        const std::vector<float> kinds = {0.0F, -0.0F, row % 2 == 0 ? infinity : -0.0F, -infinity};
        x[i] = kinds[random() % kinds.size()];
        if (row % 4 == 3 && random() % static_cast<unsigned>(n) == 0) x[i] = nan;
        if (row % 4 == 1 && random() % static_cast<unsigned>(n) == 0) x[i] = -nan;
      }
      harness.check();
    }
  }
}

}  // namespace
}  // namespace pyc::cpu_test
