#include "base/fault.h"

#include <gtest/gtest.h>

namespace pyc {
namespace {

Fault rows_of_two() {
  return {.message = "gather_nd 'y': index out of range -2 to 1",
          .buffer = 1,
          .value = "ids",
          .dtype = DType::kI32,
          .shape = {2, 2},
          .accepted = {.first = -2, .last = 1, .also = -2, .begin = 0, .step = 2}};
}

TEST(Fault, NamesTheFirstNumberThatIsNotAccepted) {
  float data[1] = {};
  int32_t ids[4] = {1, 7, 5, 0};  // 7 is an index into another dim
  void* buffers[2] = {data, ids};
  EXPECT_EQ(describe(rows_of_two(), buffers),
            "gather_nd 'y': index out of range -2 to 1: 5 at [1, 0] of 'ids'");
  Fault fault = rows_of_two();
  fault.accepted.also = 5;
  EXPECT_EQ(describe(fault, buffers), fault.message);
}

TEST(Fault, SaysNoMoreThanItCanKnow) {
  int32_t ids[4] = {5, 5, 5, 5};
  void* shared[2] = {ids, ids};
  EXPECT_EQ(describe(rows_of_two(), shared), rows_of_two().message);
  void* missing[2] = {nullptr, nullptr};
  EXPECT_EQ(describe(rows_of_two(), missing), rows_of_two().message);
  Fault computed = rows_of_two();
  computed.buffer = -1;
  void* buffers[2] = {nullptr, ids};
  EXPECT_EQ(describe(computed, buffers), computed.message);
}

}  // namespace
}  // namespace pyc
