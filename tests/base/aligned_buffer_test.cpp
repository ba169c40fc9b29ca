#include "base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/allocation_meter.h"
#include "sanitizers.h"

namespace pyc {
namespace {

using Mode = AlignedBuffer::Mode;

AlignedBuffer make(size_t bytes, Mode mode) {
  Result<AlignedBuffer> buffer = AlignedBuffer::create(bytes, mode);
  EXPECT_TRUE(buffer.ok()) << buffer.status().to_string();
  return std::move(buffer).value();
}

bool is_aligned(const AlignedBuffer& buffer) {
  return reinterpret_cast<uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment == 0;
}

TEST(AlignedBuffer, AlignedWithAtLeast64Bytes) {
  for (const Mode mode : {Mode::kPlain, Mode::kGuarded}) {
    for (const size_t bytes : {0, 1, 63, 64, 65, 4095, 4096, 4097, 1 << 20}) {
      AlignedBuffer buffer = make(bytes, mode);
      EXPECT_EQ(buffer.size(), bytes);
      EXPECT_EQ(buffer.bytes().size(), bytes);
      EXPECT_TRUE(is_aligned(buffer));
      std::memset(buffer.data(), 1, std::max<size_t>(bytes, 64));
    }
  }
}

// So that all of one but its end may lie in large pages.
TEST(AlignedBuffer, LargeOnesBeginAtALargePage) {
  constexpr size_t kLargePage = size_t{2} << 20;
  for (const size_t bytes : {kLargePage, kLargePage + 1, 5 * kLargePage / 2}) {
    AlignedBuffer buffer = make(bytes, Mode::kPlain);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kLargePage, 0u);
    std::memset(buffer.data(), 1, bytes);
  }
}

TEST(AlignedBuffer, NoMemoryIsReported) {
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  for (const Mode mode : {Mode::kPlain, Mode::kGuarded}) {
    for (const size_t bytes : {kMax, kMax - 63, kMax / 2, kMax / 2 - 8191}) {
      const Result<AlignedBuffer> buffer = AlignedBuffer::create(bytes, mode);
      ASSERT_FALSE(buffer.ok());
      EXPECT_EQ(buffer.status().code(), Code::kOutOfMemory);
      EXPECT_NE(buffer.status().message().find(std::to_string(bytes)), std::string::npos);
    }
    if (kSanitized) continue;  // they abort where the allocator would return null
    EXPECT_FALSE(AlignedBuffer::create(size_t{1} << 60, mode).ok());
  }
}

TEST(AlignedBuffer, CountsAllocations) {
  const uint64_t before = AlignedBuffer::allocation_count();
  AlignedBuffer a = make(10, Mode::kPlain);
  const AlignedBuffer b = make(10, Mode::kGuarded);
  AlignedBuffer moved = std::move(a);
  EXPECT_FALSE(AlignedBuffer::create(std::numeric_limits<size_t>::max()).ok());
  EXPECT_EQ(AlignedBuffer::allocation_count(), before + 2);
}

TEST(AlignedBuffer, MovesItsMemory) {
  static_assert(!std::is_copy_constructible_v<AlignedBuffer>);
  static_assert(std::is_nothrow_move_constructible_v<AlignedBuffer>);
  for (const Mode mode : {Mode::kPlain, Mode::kGuarded}) {
    AlignedBuffer a = make(100, mode);
    const std::byte* memory = a.data();
    AlignedBuffer b = std::move(a);
    EXPECT_EQ(b.data(), memory);
    EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): it is empty by contract
    EXPECT_EQ(a.size(), 0U);
    AlignedBuffer c = make(5, mode);
    c = std::move(b);
    EXPECT_EQ(c.data(), memory);
    EXPECT_EQ(c.size(), 100U);
    EXPECT_EQ(b.data(), nullptr);  // NOLINT(bugprone-use-after-move)
    AlignedBuffer& self = c;
    c = std::move(self);
    EXPECT_EQ(c.data(), memory);
  }
}

TEST(AlignedBuffer, GuardedContentIsCanaryAndMayBeOverwritten) {
  for (const size_t bytes : {0, 1, 64, 100, 5000}) {
    AlignedBuffer buffer = make(bytes, Mode::kGuarded);
    for (const std::byte b : buffer.bytes()) ASSERT_EQ(b, AlignedBuffer::kCanary);
    std::ranges::fill(buffer.bytes(), std::byte{0});
    EXPECT_TRUE(buffer.check_canary());
  }
  EXPECT_TRUE(make(100, Mode::kPlain).check_canary());
  EXPECT_TRUE(AlignedBuffer().check_canary());
}

TEST(AlignedBuffer, CanarySeesWritesAroundTheBuffer) {
  for (const ptrdiff_t offset : {-1, 100, 127}) {
    AlignedBuffer buffer = make(100, Mode::kGuarded);
    buffer.data()[offset] = std::byte{0};
    EXPECT_FALSE(buffer.check_canary()) << offset;
  }
}

TEST(AlignedBufferDeathTest, GuardPageFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const size_t bytes : {size_t{0}, size_t{64}, size_t{100}, size_t{8192}}) {
    AlignedBuffer buffer = make(bytes, Mode::kGuarded);
    volatile std::byte* memory = buffer.data();
    const size_t end = (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
    memory[end - 1] = std::byte{0};
    EXPECT_DEATH(memory[end] = std::byte{0}, "") << bytes;
  }
}

TEST(AlignedBuffer, IsMeteredPerThread) {
  const int64_t before = allocated_by_thread();
  const auto a = AlignedBuffer::create(100);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(allocated_by_thread() - before, 128);
  { const auto b = AlignedBuffer::create(64); }
  EXPECT_EQ(allocated_by_thread() - before, 192);
  std::thread([] { EXPECT_EQ(allocated_by_thread(), 0); }).join();
  EXPECT_FALSE(AlignedBuffer::create(SIZE_MAX).ok());
  EXPECT_EQ(allocated_by_thread() - before, 192);
}

TEST(AlignedBuffer, IsMeteredUntilItGoes) {
  const int64_t before = allocated_now();
  (void)take_allocated_peak();
  {
    auto a = AlignedBuffer::create(100);
    ASSERT_TRUE(a.ok());
    const AlignedBuffer moved = std::move(*a);
    const auto guarded = AlignedBuffer::create(0, AlignedBuffer::Mode::kGuarded);
    EXPECT_EQ(allocated_now() - before, 192);
  }
  EXPECT_EQ(allocated_now(), before);
  EXPECT_EQ(take_allocated_peak() - before, 192);
  EXPECT_EQ(take_allocated_peak(), before);
}

}  // namespace
}  // namespace pyc
