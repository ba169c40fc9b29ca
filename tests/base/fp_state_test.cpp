#include "base/fp_state.h"

#include <gtest/gtest.h>

#include <limits>

namespace pyc {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kFlushToZero = 0x8040;  // FTZ and DAZ
constexpr uint64_t kRoundUp = 0x4000;
constexpr uint64_t kDefault = 0x1F80;
#else
constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
constexpr uint64_t kRoundUp = uint64_t{1} << 22;
constexpr uint64_t kDefault = 0;
#endif

// Volatile operands keep the arithmetic at run time and in its place.
float half_of_smallest_normal() {
  volatile float smallest = std::numeric_limits<float>::min();
  volatile float half = 0.5F;
  volatile float result = smallest * half;
  return result;
}

float double_of_subnormal() {
  volatile float subnormal = std::numeric_limits<float>::min() / 2;
  volatile float two = 2.0F;
  volatile float result = subnormal * two;
  return result;
}

float one_plus_tiny() {
  volatile float one = 1.0F;
  volatile float tiny = 0x1p-30F;
  volatile float result = one + tiny;
  return result;
}

// Gives the test's thread its own state back, whatever the test did.
class FpState : public testing::Test {
 protected:
  void TearDown() override { write_fp_control(original_); }

  const uint64_t original_ = read_fp_control();
};

TEST_F(FpState, FlushToZeroOfTheCallerIsSuspendedAndGivenBack) {
  write_fp_control(kDefault | kFlushToZero);
  ASSERT_EQ(half_of_smallest_normal(), 0.0F);
  {
    const FpStateGuard guard;
    EXPECT_EQ(half_of_smallest_normal(), 0x1p-127F);
    EXPECT_EQ(double_of_subnormal(), std::numeric_limits<float>::min());
  }
  EXPECT_EQ(half_of_smallest_normal(), 0.0F);
  EXPECT_EQ(double_of_subnormal(), 0.0F);
}

TEST_F(FpState, RoundingOfTheCallerIsSuspendedAndGivenBack) {
  write_fp_control(kDefault | kRoundUp);
  ASSERT_GT(one_plus_tiny(), 1.0F);
  {
    const FpStateGuard guard;
    EXPECT_EQ(one_plus_tiny(), 1.0F);
  }
  EXPECT_GT(one_plus_tiny(), 1.0F);
}

TEST_F(FpState, ControlRegisterIsRestoredExactly) {
  for (const uint64_t state : {kDefault, kDefault | kFlushToZero, kDefault | kRoundUp}) {
    write_fp_control(state);
    const uint64_t before = read_fp_control();
    {
      const FpStateGuard guard;
      one_plus_tiny();
    }
    EXPECT_EQ(read_fp_control(), before);
  }
}

TEST_F(FpState, GuardsNest) {
  write_fp_control(kDefault | kFlushToZero);
  {
    const FpStateGuard outer;
    write_fp_control(kDefault | kRoundUp);
    {
      const FpStateGuard inner;
      EXPECT_EQ(one_plus_tiny(), 1.0F);
    }
    EXPECT_GT(one_plus_tiny(), 1.0F);
  }
  EXPECT_EQ(half_of_smallest_normal(), 0.0F);
}

#if defined(__x86_64__)
TEST_F(FpState, ExceptionsAreMasked) {
  write_fp_control(kDefault & ~uint64_t{0x200});  // division by zero would trap
  {
    const FpStateGuard guard;
    volatile float one = 1.0F;
    volatile float zero = 0.0F;
    volatile float result = one / zero;
    EXPECT_EQ(result, std::numeric_limits<float>::infinity());
  }
  EXPECT_EQ(read_fp_control() & 0x200, 0U);
}
#endif

}  // namespace
}  // namespace pyc
