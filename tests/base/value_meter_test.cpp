#include "base/value_meter.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "base/dyn_value.h"

namespace pyc {
namespace {

constexpr auto kString = static_cast<int64_t>(sizeof(std::string));
constexpr auto kItem = static_cast<int64_t>(sizeof(DynValue));

std::shared_ptr<ValueMeter> meter_of(int64_t limit) {
  return std::make_shared<ValueMeter>(limit, "the limit");
}

TEST(ValueMeter, CountsContentOnceUntilTheLastValueIsGone) {
  const auto meter = meter_of(1000);
  const MeterScope scope(meter);
  auto tensor = new_tensor(DType::kF32, {2, 3});
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(meter->live(), 24);
  std::optional<DynValue> copy = tensor->value;
  EXPECT_EQ(meter->live(), 24);
  tensor->value = DynValue::of_int(1);
  EXPECT_EQ(meter->live(), 32);
  copy.reset();
  EXPECT_EQ(meter->live(), 8);
  EXPECT_EQ(meter->peak(), 32);
}

TEST(ValueMeter, CountsStringsAndItems) {
  const auto meter = meter_of(1 << 20);
  const MeterScope scope(meter);
  const DynValue strings = DynValue::of_strings({2}, {"abc", std::string(100, 'x')});
  EXPECT_EQ(meter->live(), 2 * kString + 103);
  {
    // One content many times is held once.
    const DynValue sequence = DynValue::of_items({strings, strings, strings});
    EXPECT_EQ(meter->live(), 2 * kString + 103 + 3 * kItem);
  }
  EXPECT_EQ(meter->live(), 2 * kString + 103);
}

TEST(ValueMeter, RefusesBeforeMemoryIsAsked) {
  const auto meter = meter_of(100);
  const MeterScope scope(meter);
  const auto held = new_tensor(DType::kU8, {60});
  ASSERT_TRUE(held.ok());
  const auto refused = new_tensor(DType::kF64, {1, 6});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kBudgetExceeded);
  EXPECT_EQ(refused.status().message(),
            "f64[1,6]: asks for 48 bytes, the run holds 60 bytes of values, the limit is 100");
  EXPECT_EQ(meter->peak(), 60);
  EXPECT_TRUE(new_tensor(DType::kF64, {5}).ok());  // exactly what is left
  // What could not ask before is seen afterwards.
  const DynValue strings = DynValue::of_strings({}, {std::string(41, 'x')});
  EXPECT_EQ(check_room(0).code(), Code::kBudgetExceeded);
  EXPECT_GT(meter->peak(), 100);
}

TEST(ValueMeter, IsThatOfItsThreadAndScope) {
  const auto meter = meter_of(100);
  DynValue made;
  {
    const MeterScope scope(meter);
    {
      const MeterScope none(nullptr);
      const auto unmetered = new_tensor(DType::kU8, {1000});
      EXPECT_TRUE(unmetered.ok());
    }
    std::thread other([] { EXPECT_TRUE(new_tensor(DType::kU8, {1000}).ok()); });
    other.join();
    EXPECT_EQ(meter->peak(), 0);
    made = DynValue::of_ints({1, 2});
  }
  EXPECT_TRUE(new_tensor(DType::kU8, {1000}).ok());
  EXPECT_EQ(meter->live(), 16);
  std::thread last([value = std::move(made)]() mutable { value = DynValue(); });
  last.join();
  EXPECT_EQ(meter->live(), 0);
}

TEST(ValueMeter, ABudgetIsInBytesAsTheyAreHandedOut) {
  const auto meter = meter_of(1000);
  const auto programs = std::make_shared<std::atomic<int64_t>>(100);
  meter->share(programs, 20, 300);
  const MeterScope scope(meter);
  const auto one = new_tensor(DType::kU8, {1});
  const auto two = new_tensor(DType::kU8, {65});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(two.status().message(),
            "u8[65]: asks for 65 bytes, the run holds 64 bytes of values and 120 of inputs and "
            "programs, the memory budget is 300");
  EXPECT_EQ(meter->live(), 1);
  EXPECT_EQ(meter->own(), 84);
  EXPECT_EQ(meter->total_peak(), 184);
  *programs = 88;
  EXPECT_TRUE(new_tensor(DType::kU8, {65}).ok());
  EXPECT_EQ(meter->total_peak(), 300);
}

TEST(ValueMeter, TheDefaultIsThere) {
  EXPECT_GT(default_value_limit(), 1 << 20);
  EXPECT_EQ(default_value_limit(), default_value_limit());
}

}  // namespace
}  // namespace pyc
