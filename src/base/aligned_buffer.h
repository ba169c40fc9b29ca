#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace pyc {

// Owns bytes that start at a multiple of 64. Default-made and moved-from buffers are empty, with a
// null pointer.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;
  // Fills a guarded buffer and the bytes around it.
  static constexpr std::byte kCanary{0xCB};

  enum class Mode {
    kPlain,
    // For tests. The memory ends right before a page that cannot be touched, so that reading or
    // writing beyond it faults; since the start stays aligned, up to 63 bytes (64 for size 0) lie
    // between, and check_canary() sees writes there and right before the start.
    kGuarded,
  };

  // A buffer of `bytes` bytes, with at least 64 bytes behind the pointer even for 0. The content
  // is unspecified when plain and kCanary when guarded. kOutOfMemory when there is no memory.
  static Result<AlignedBuffer> create(size_t bytes, Mode mode = Mode::kPlain);

  // What a buffer of `bytes` bytes takes, in either mode.
  static constexpr size_t handed_out(size_t bytes) {
    return (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  }

  // Successful calls of create in this process.
  static uint64_t allocation_count();

  AlignedBuffer() = default;
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  // The bytes asked for.
  size_t size() const { return size_; }
  std::span<std::byte> bytes() { return {data_, size_}; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Whether the bytes around a guarded buffer are untouched; true for other buffers.
  bool check_canary() const;

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  // Guarded only: the accessible part of the mapping, [map_, map_ + map_size_), before the page.
  std::byte* map_ = nullptr;
  size_t map_size_ = 0;
};

}  // namespace pyc
