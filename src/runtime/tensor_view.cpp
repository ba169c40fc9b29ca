#include "runtime/tensor_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace pyc::runtime {
namespace {

// In bytes from element 0: where the first element begins and the last one ends.
struct Reach {
  int64_t first = 0;
  int64_t past = 0;
};

bool is_empty(const TensorView& view) {
  return std::find(view.shape.begin(), view.shape.end(), 0) != view.shape.end();
}

// False when a number overflows. Dims are at least 1.
bool reach_of(const TensorView& view, Reach& out) {
  const auto size = dtype_size(view.dtype);
  out = {0, size};
  int64_t row = size;  // bytes between neighbours of this dim, row-major
  for (size_t d = view.shape.size(); d-- > 0;) {
    int64_t step = row;
    if (!view.strides.empty() && __builtin_mul_overflow(view.strides[d], size, &step)) return false;
    int64_t distance = 0;
    if (__builtin_mul_overflow(view.shape[d] - 1, step, &distance)) return false;
    int64_t& end = distance < 0 ? out.first : out.past;
    if (__builtin_add_overflow(end, distance, &end)) return false;
    if (view.strides.empty() && __builtin_mul_overflow(row, view.shape[d], &row)) return false;
  }
  return true;
}

// Whether no two elements share memory: each stride is beyond all that the smaller ones reach.
bool nests(const TensorView& view) {
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, dim
  for (size_t d = 0; d < view.strides.size(); ++d) {
    if (view.shape[d] > 1) dims.emplace_back(std::abs(view.strides[d]), view.shape[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reached = 0;
  for (const auto& [stride, dim] : dims) {
    if (stride <= reached) return false;
    reached += stride * (dim - 1);
  }
  return true;
}

std::string device_text(DeviceId device) {
  return fmt::format("memory of device {}:{}", device.type, device.id);
}

std::optional<ViewProblem> size_problem(const TensorView& view) {
  Reach reach;
  if (!reach_of(view, reach)) {
    return ViewProblem{Code::kSizeMismatch, "sizes and strides that fit 63 bits",
                       fmt::format("dims [{}], strides [{}]", fmt::join(view.shape, ","),
                                   fmt::join(view.strides, ","))};
  }
  int64_t first = 0;
  int64_t past = 0;
  const bool fits = !__builtin_add_overflow(reach.first, view.byte_offset, &first) &&
                    !__builtin_add_overflow(reach.past, view.byte_offset, &past);
  if (fits && view.byte_offset >= 0 && first >= 0 && past <= view.bytes) return std::nullopt;
  if (view.strides.empty() && view.byte_offset == 0) {
    return ViewProblem{Code::kSizeMismatch, fmt::format("{} bytes", reach.past),
                       fmt::format("{}", view.bytes)};
  }
  return ViewProblem{Code::kSizeMismatch, fmt::format("elements inside of {} bytes", view.bytes),
                     fmt::format("some from byte {} to {}", first, past)};
}

// `Bytes` of each of `count` elements.
template <size_t Bytes>
void copy_elements(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step,
                   int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, Bytes);
}

void copy_line(size_t size, std::byte* to, int64_t to_step, const std::byte* from,
               int64_t from_step, int64_t count) {
  switch (size) {
    case 1:
      return copy_elements<1>(to, to_step, from, from_step, count);
    case 2:
      return copy_elements<2>(to, to_step, from, from_step, count);
    case 4:
      return copy_elements<4>(to, to_step, from, from_step, count);
    case 8:
      return copy_elements<8>(to, to_step, from, from_step, count);
    default:
      return copy_elements<16>(to, to_step, from, from_step, count);
  }
}

// Copies between row-major memory, which moves on as it is used, and the strided one.
template <bool Gather>
void copy_dims(const TensorView& view, size_t dim, std::byte* strided, std::byte*& rows) {
  const auto size = static_cast<size_t>(dtype_size(view.dtype));
  const auto step = static_cast<int64_t>(size);
  const size_t rank = view.shape.size();
  if (rank == 0) {
    std::memcpy(Gather ? rows : strided, Gather ? strided : rows, size);
    return;
  }
  const int64_t stride = view.strides[dim] * step;
  if (dim + 1 < rank) {
    for (int64_t i = 0; i < view.shape[dim]; ++i) {
      copy_dims<Gather>(view, dim + 1, strided + i * stride, rows);
    }
    return;
  }
  if constexpr (Gather) {
    copy_line(size, rows, step, strided, stride, view.shape[dim]);
  } else {
    copy_line(size, strided, stride, rows, step, view.shape[dim]);
  }
  rows += view.shape[dim] * step;
}

}  // namespace

int64_t element_bytes(const TensorView& view) {
  auto bytes = dtype_size(view.dtype);
  for (const int64_t dim : view.shape) bytes *= dim;
  return bytes;
}

bool is_row_major(const TensorView& view) {
  if (view.strides.empty()) return true;
  int64_t expected = 1;
  for (size_t d = view.shape.size(); d-- > 0;) {
    if (view.shape[d] != 1 && view.strides[d] != expected) return is_empty(view);
    expected *= view.shape[d];
  }
  return true;
}

bool is_aligned(const TensorView& view) {
  const uintptr_t address =
      reinterpret_cast<uintptr_t>(view.data) + static_cast<uintptr_t>(view.byte_offset);
  return address % static_cast<uintptr_t>(dtype_size(view.dtype)) == 0;
}

bool is_plain(const TensorView& view) {
  return is_row_major(view) && (is_aligned(view) || is_empty(view));
}

std::optional<ViewProblem> find_problem(const TensorView& view, bool written) {
  if (!view.strides.empty() && view.strides.size() != view.shape.size()) {
    return ViewProblem{Code::kInvalidArgument, fmt::format("{} strides", view.shape.size()),
                       fmt::format("{}", view.strides.size())};
  }
  for (const int64_t dim : view.shape) {
    if (dim >= 0) continue;
    return ViewProblem{Code::kShapeMismatch, "dims of 0 or more", fmt::format("{}", dim)};
  }
  if (is_empty(view)) return std::nullopt;
  if (view.data == nullptr) {
    return ViewProblem{Code::kNullPointer, "memory", "a null pointer"};
  }
  if (!view.device.on_host()) {
    return ViewProblem{Code::kUnsupported, device_text({}), device_text(view.device)};
  }
  if (auto problem = size_problem(view)) return problem;
  if (written && !nests(view)) {
    return ViewProblem{Code::kInvalidArgument, "strides that keep all elements apart",
                       fmt::format("dims [{}] with strides [{}]", fmt::join(view.shape, ","),
                                   fmt::join(view.strides, ","))};
  }
  return std::nullopt;
}

std::optional<ViewProblem> why_not_plain(const TensorView& view) {
  if (is_plain(view)) return std::nullopt;
  const auto size = static_cast<size_t>(dtype_size(view.dtype));
  if (!is_row_major(view)) {
    return ViewProblem{Code::kInvalidArgument, "row-major elements (strict_views)",
                       fmt::format("dims [{}] with strides [{}]", fmt::join(view.shape, ","),
                                   fmt::join(view.strides, ","))};
  }
  return ViewProblem{
      Code::kMisaligned, fmt::format("elements at a multiple of {} bytes (strict_views)", size),
      fmt::format("an address {} past one", reinterpret_cast<uintptr_t>(view.origin()) % size)};
}

ByteRange range_of(const TensorView& view) {
  Reach reach;
  if (is_empty(view) || !reach_of(view, reach)) return {};
  const auto origin = reinterpret_cast<uintptr_t>(view.origin());
  return {origin + static_cast<uintptr_t>(reach.first),
          origin + static_cast<uintptr_t>(reach.past)};
}

void gather(const TensorView& from, std::byte* to) {
  if (is_empty(from)) return;
  if (is_row_major(from)) {
    std::memmove(to, from.origin(), static_cast<size_t>(element_bytes(from)));
    return;
  }
  copy_dims<true>(from, 0, from.origin(), to);
}

void scatter(const std::byte* from, const TensorView& to) {
  if (is_empty(to)) return;
  if (is_row_major(to)) {
    std::memmove(to.origin(), from, static_cast<size_t>(element_bytes(to)));
    return;
  }
  auto* rows = const_cast<std::byte*>(from);  // only read
  copy_dims<false>(to, 0, to.origin(), rows);
}

}  // namespace pyc::runtime
