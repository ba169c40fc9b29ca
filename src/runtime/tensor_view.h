#pragma once

// TensorView: elements in anybody's memory, in any order. What kernels take is plain: row-major,
// aligned to the element, on the host. Everything else is copied there and back.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/status.h"

namespace pyc::runtime {

// Where memory is, with DLPack's numbers.
struct DeviceId {
  static constexpr int32_t kHost = 1;
  static constexpr int32_t kCuda = 2;
  static constexpr int32_t kPinnedHost = 3;  // the host's, known to a GPU
  int32_t type = kHost;
  int32_t id = 0;

  // Whether the CPU reads and writes it.
  bool on_host() const { return (type == kHost && id == 0) || type == kPinnedHost; }
  bool operator==(const DeviceId&) const = default;
};

// Owns nothing. Element (i, j, …) is at data + byte_offset + (i·strides[0] + j·strides[1] + …) ·
// size, and inside [data, data + bytes).
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  std::span<const int64_t> shape = {};
  int64_t bytes = 0;                      // of the memory at `data`; what is left over is ignored
  std::span<const int64_t> strides = {};  // in elements, one per dim; none: row-major
  int64_t byte_offset = 0;
  DeviceId device = {};

  // Element 0.
  std::byte* origin() const { return static_cast<std::byte*>(data) + byte_offset; }
};

// Bytes of the elements alone, of a view whose shape is sound.
int64_t element_bytes(const TensorView& view);
// Whether the elements lie one after the other in row-major order. Dims of one element have any
// stride.
bool is_row_major(const TensorView& view);
bool is_aligned(const TensorView& view);
// Whether kernels take it as it is.
bool is_plain(const TensorView& view);

// Why a view cannot be used, for a message "expected …, found …".
struct ViewProblem {
  Code code;
  std::string expected;
  std::string found;
};
// kInvalidArgument: as many strides as dims are needed, or a written view has elements that share
// memory; kShapeMismatch: a negative dim; kNullPointer; kUnsupported: memory that is not the
// host's; kSizeMismatch: elements outside of the memory, or sizes that overflow. A written view
// must nest: sorted by size, each stride is beyond all that the smaller ones reach.
std::optional<ViewProblem> find_problem(const TensorView& view, bool written);
// Why kernels cannot take a sound view as it is: kMisaligned, or kInvalidArgument with its strides.
std::optional<ViewProblem> why_not_plain(const TensorView& view);

// The bytes from the first to the last element, as addresses; both 0 when there is no element.
struct ByteRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};
ByteRange range_of(const TensorView& sound);

// Copies a sound view's elements to row-major memory, and back.
void gather(const TensorView& from, std::byte* to);
void scatter(const std::byte* from, const TensorView& to);

}  // namespace pyc::runtime
