#pragma once

// A view of a buffer as a matrix of halves, of which the device brings a box to shared memory in
// one instruction. What a kernel takes as a parameter holds the buffer's address, so the driver
// makes it when that is known.

#include <array>
#include <cstddef>
#include <cstdint>

namespace pyc::cuda {

inline constexpr int64_t kMapElement = 2;
inline constexpr uint32_t kBoxColumns = 64;
inline constexpr int64_t kBoxRowBytes = kBoxColumns * kMapElement;
inline constexpr uint32_t kMostBoxRows = 256;
inline constexpr int64_t kMapAligned = 16;
inline constexpr int64_t kMostMapBytes = int64_t{1} << 40;  // a row's are less

// Elements of two bytes; a box has kBoxColumns columns, which are rows of 128 bytes in shared
// memory, swizzled over 128 bytes; what is outside of the matrix is zero.
struct TensorMap {
  uint32_t buffer = 0;  // of the launch's
  uint32_t columns = 0;
  uint32_t rows = 0;
  uint32_t box_rows = 0;     // at most kMostBoxRows
  int64_t row_bytes = 0;     // from one row to the next, a multiple of kMapAligned
  int64_t offset_bytes = 0;  // of the first element, a multiple of kMapAligned

  bool operator==(const TensorMap&) const = default;
};

// A map as a kernel's parameter, made by the driver.
inline constexpr size_t kMapWords = 16;
struct alignas(128) EncodedMap {
  std::array<uint64_t, kMapWords> words{};
};

}  // namespace pyc::cuda
