// Which operands may be read several elements at a time: what is proven holds for every index, and
// the windows of convolutions are among it.

#include "backends/cuda/generators/product_runs.h"

#include <gtest/gtest.h>

#include "loop/builder.h"

namespace pyc::test {
namespace {

using loop::Expr;

class CudaRuns : public testing::Test {
 protected:
  Expr k() { return {&pool_, pool_.var(k_)}; }
  Expr row() { return {&pool_, pool_.var(row_)}; }
  Expr number(int64_t x) { return loop::index(pool_, x); }
  Expr div(Expr a, int64_t by) { return loop::floor_div(a, number(by)); }
  Expr mod(Expr a, int64_t by) { return loop::floor_mod(a, number(by)); }

  bool in_runs(Expr offset, Expr guard = {}, int64_t width = 8) {
    const loop::ExprId zero = pool_.constant(DType::kBF16, 0);
    const loop::ExprId load = guard.valid() ? pool_.load(0, DType::kBF16, offset.id, guard.id, zero)
                                            : pool_.load(0, DType::kBF16, offset.id);
    EXPECT_EQ(cuda::padded_load(pool_, load, DType::kBF16), load);
    return cuda::lies_in_runs(pool_, load, k_, 288, width);
  }

  loop::Pool pool_;
  loop::VarId k_ = pool_.new_var("k", DType::kI64, 288);
  loop::VarId row_ = pool_.new_var("m", DType::kI64, 1000);
};

TEST_F(CudaRuns, MatricesLieInRunsAlongOneOfTheirDims) {
  EXPECT_TRUE(in_runs(row() * number(288) + k()));
  EXPECT_TRUE(in_runs(row() * number(288) + k() + number(16)));
  EXPECT_FALSE(in_runs(row() * number(289) + k()));
  EXPECT_FALSE(in_runs(row() * number(288) + k() + number(4)));
  EXPECT_TRUE(in_runs(row() * number(288) + k() + number(4), {}, 4));
  EXPECT_FALSE(in_runs(row() + k() * number(1000)));
  EXPECT_FALSE(in_runs(row() * number(288) + k() * number(2)));
  EXPECT_FALSE(in_runs(row() * number(288)));
}

TEST_F(CudaRuns, TapsThatBeginAtARun) {
  // 3 × 3 taps of 32 channels, of which 24 are there, in an image 50 wide.
  const Expr tap = div(k(), 32);
  const Expr at = div(tap, 3) * number(50 * 24) + mod(tap, 3) * number(24) + mod(k(), 32) +
                  row() * number(24) - number(51 * 24);
  EXPECT_TRUE(in_runs(at));
  EXPECT_TRUE(in_runs(at, loop::lt(mod(k(), 32), number(24))));
  EXPECT_TRUE(in_runs(
      at, loop::le(number(1), div(tap, 3) + row()) & loop::lt(mod(tap, 3) + row(), number(50))));
  EXPECT_FALSE(in_runs(at, loop::lt(mod(k(), 32), number(20))));
  EXPECT_FALSE(in_runs(at, loop::le(mod(k(), 32), number(24))));
  EXPECT_TRUE(in_runs(at, loop::le(mod(k(), 32), number(23))));
  EXPECT_FALSE(in_runs(at, loop::eq(k(), number(8))));
  // 12 channels: the next tap begins within a run.
  EXPECT_FALSE(in_runs(div(k(), 12) * number(48) + mod(k(), 12)));
  EXPECT_TRUE(in_runs(div(k(), 12) * number(48) + mod(k(), 12), {}, 4));
}

TEST_F(CudaRuns, WhatIsNotALoadWithZerosAroundIt) {
  const loop::ExprId guard = loop::lt(k(), number(8)).id;
  const loop::ExprId one = pool_.constant(DType::kBF16, 0x3F80);
  const loop::ExprId load = pool_.load(0, DType::kBF16, k().id, guard, one);
  EXPECT_EQ(cuda::padded_load(pool_, load, DType::kBF16), loop::kNone);
  const loop::ExprId plain = pool_.load(0, DType::kBF16, k().id);
  EXPECT_EQ(cuda::padded_load(pool_, plain, DType::kF16), loop::kNone);
  const loop::ExprId wide = pool_.convert(plain, DType::kF32);
  EXPECT_EQ(cuda::padded_load(pool_, wide, DType::kBF16), plain);
  EXPECT_EQ(cuda::padded_load(pool_, pool_.unary(loop::Op::kNeg, wide), DType::kBF16), loop::kNone);
}

}  // namespace
}  // namespace pyc::test
