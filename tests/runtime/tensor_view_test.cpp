// Views of any order: what they reach, and their way to row-major memory and back.

#include "runtime/tensor_view.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace pyc::runtime {
namespace {

using Dims = std::vector<int64_t>;

struct Owned {
  std::vector<std::byte> memory;
  Dims shape;
  Dims strides;
  TensorView view;
};

Owned make_owned(DType dtype, Dims shape, Dims strides, int64_t bytes, int64_t offset) {
  Owned out{
      std::vector<std::byte>(static_cast<size_t>(bytes)), std::move(shape), std::move(strides), {}};
  out.view = {out.memory.data(), dtype, out.shape, bytes, out.strides, offset};
  return out;
}

int64_t count_of(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Element by element, by the definition.
std::vector<std::byte> gathered_plainly(const TensorView& v) {
  const auto size = static_cast<size_t>(dtype_size(v.dtype));
  std::vector<std::byte> out;
  Dims at(v.shape.size(), 0);
  const int64_t count = count_of(v.shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * v.strides[d];
    const std::byte* element = v.origin() + offset * static_cast<int64_t>(size);
    out.insert(out.end(), element, element + size);
    for (size_t d = at.size(); d-- > 0 && ++at[d] == v.shape[d];) at[d] = 0;
  }
  return out;
}

// Any order of dims, gaps, dims of 1, negative strides, addresses that are not aligned.
TEST(TensorViews, RandomStridesAreGatheredAndScatteredByTheDefinition) {
  std::mt19937 random(7);
  const auto draw = [&](int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random);
  };
  constexpr std::array kTypes = {DType::kI8, DType::kF16, DType::kF32, DType::kF64, DType::kC128};
  for (int round = 0; round < 500; ++round) {
    const DType dtype = kTypes[static_cast<size_t>(draw(0, kTypes.size() - 1))];
    const auto rank = static_cast<size_t>(draw(0, 4));
    Dims shape(rank);
    Dims strides(rank);
    Dims order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    int64_t step = draw(1, 2);
    int64_t below = 0;
    for (const int64_t d : order) {
      const auto i = static_cast<size_t>(d);
      shape[i] = draw(1, 4);
      const bool backwards = draw(0, 3) == 0;
      strides[i] = backwards ? -step : step;
      if (backwards) below += step * (shape[i] - 1);
      step = step * shape[i] + draw(0, 2);
    }
    const int64_t size = dtype_size(dtype);
    const int64_t shift = draw(0, size - 1);
    Owned owned =
        make_owned(dtype, shape, strides, (step + 1) * size + shift, below * size + shift);
    for (std::byte& b : owned.memory) b = static_cast<std::byte>(draw(0, 255));
    ASSERT_FALSE(find_problem(owned.view, true).has_value()) << round;
    const std::vector<std::byte> expected = gathered_plainly(owned.view);
    std::vector<std::byte> found(expected.size());
    gather(owned.view, found.data());
    ASSERT_EQ(found, expected) << round;

    const std::vector<std::byte> before = owned.memory;
    for (std::byte& b : found) b ^= std::byte{0xff};
    scatter(found.data(), owned.view);
    EXPECT_EQ(gathered_plainly(owned.view), found) << round;
    scatter(expected.data(), owned.view);
    EXPECT_EQ(owned.memory, before) << "nothing between the elements is written";
  }
}

TEST(TensorViews, PlainIsRowMajorAndAligned) {
  const Owned rows = make_owned(DType::kF32, {2, 3}, {3, 1}, 24, 0);
  EXPECT_TRUE(is_plain(rows.view));
  EXPECT_TRUE(is_plain(make_owned(DType::kF32, {2, 1, 3}, {3, 77, 1}, 24, 0).view));
  EXPECT_TRUE(is_plain(make_owned(DType::kF32, {2, 0}, {5, 5}, 0, 0).view));
  EXPECT_TRUE(is_plain(make_owned(DType::kF32, {2, 3}, {}, 28, 4).view));
  EXPECT_FALSE(is_plain(make_owned(DType::kF32, {2, 3}, {1, 2}, 24, 0).view));
  EXPECT_FALSE(is_plain(make_owned(DType::kF32, {2, 3}, {0, 1}, 24, 0).view));
  EXPECT_FALSE(is_plain(make_owned(DType::kF32, {2, 3}, {}, 28, 2).view));
}

struct Bad {
  const char* name;
  DType dtype;
  Dims shape;
  Dims strides;
  int64_t bytes;
  int64_t offset;
  bool written;
  Code code;
};

TEST(TensorViews, WhatCannotBeUsedIsFound) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const Bad cases[] = {
      {"TooSmall", DType::kF32, {2, 3}, {}, 23, 0, false, Code::kSizeMismatch},
      {"OffsetBeyond", DType::kF32, {2, 3}, {}, 24, 4, false, Code::kSizeMismatch},
      {"OffsetNegative", DType::kF32, {2, 3}, {}, 24, -4, false, Code::kSizeMismatch},
      {"StridesBeyond", DType::kF32, {2, 3}, {4, 1}, 24, 0, false, Code::kSizeMismatch},
      {"StridesBefore", DType::kF32, {2, 3}, {3, -1}, 24, 0, false, Code::kSizeMismatch},
      {"DimsOverflow", DType::kF32, {kHuge, 8}, {}, 24, 0, false, Code::kSizeMismatch},
      {"StrideOverflows", DType::kF32, {2, 3}, {kHuge, 1}, 24, 0, false, Code::kSizeMismatch},
      {"LeastStride", DType::kI8, {2, 3}, {INT64_MIN, 1}, 24, 0, true, Code::kSizeMismatch},
      {"ReachOverflows",
       DType::kI8,
       {3, 3},
       {kHuge, kHuge},
       INT64_MAX,
       0,
       false,
       Code::kSizeMismatch},
      {"NegativeDim", DType::kF32, {2, -3}, {}, 24, 0, false, Code::kShapeMismatch},
      {"NegativeBytes", DType::kF32, {2, 3}, {}, -1, 0, false, Code::kSizeMismatch},
      {"FewStrides", DType::kF32, {2, 3}, {1}, 24, 0, false, Code::kInvalidArgument},
      {"WrittenTwice", DType::kF32, {2, 3}, {0, 1}, 24, 0, true, Code::kInvalidArgument},
      {"WrittenOverlapping", DType::kF32, {2, 3}, {2, 1}, 24, 0, true, Code::kInvalidArgument},
  };
  for (const Bad& c : cases) {
    SCOPED_TRACE(c.name);
    std::array<std::byte, 32> memory{};
    const TensorView view = {memory.data(), c.dtype, c.shape, c.bytes, c.strides, c.offset};
    const auto problem = find_problem(view, c.written);
    ASSERT_TRUE(problem.has_value());
    EXPECT_EQ(problem->code, c.code);
    EXPECT_FALSE(problem->expected.empty() || problem->found.empty());
  }
  // Read twice is fine.
  EXPECT_FALSE(
      find_problem(make_owned(DType::kF32, {2, 3}, {0, 1}, 12, 0).view, false).has_value());
}

TEST(TensorViews, OtherDevicesAreNotTheHosts) {
  Owned owned = make_owned(DType::kF32, {2, 3}, {}, 24, 0);
  owned.view.device = {DeviceId::kPinnedHost, 1};
  EXPECT_FALSE(find_problem(owned.view, true).has_value());
  for (const DeviceId device : {DeviceId{2, 0}, DeviceId{1, 1}, DeviceId{-7, 0}}) {
    owned.view.device = device;
    EXPECT_EQ(find_problem(owned.view, false)->code, Code::kUnsupported);
  }
}

}  // namespace
}  // namespace pyc::runtime
