#include "base/fault.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace pyc {
namespace {

template <class T>
int64_t number_at(const void* data, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const std::byte*>(data) + i * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return static_cast<int64_t>(v);
}

using ReadNumber = int64_t (*)(const void* data, int64_t i);

ReadNumber reader_of(DType t) {
  switch (t) {
    case DType::kI8:
      return number_at<int8_t>;
    case DType::kI16:
      return number_at<int16_t>;
    case DType::kI32:
      return number_at<int32_t>;
    case DType::kI64:
      return number_at<int64_t>;
    case DType::kU8:
      return number_at<uint8_t>;
    case DType::kU16:
      return number_at<uint16_t>;
    case DType::kU32:
      return number_at<uint32_t>;
    default:
      return nullptr;
  }
}

std::vector<int64_t> index_of(int64_t position, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = position % shape[d];
    position /= shape[d];
  }
  return index;
}

}  // namespace

std::string describe(const Fault& fault, std::span<void* const> buffers) {
  const auto b = static_cast<size_t>(fault.buffer);
  const ReadNumber read = reader_of(fault.dtype);
  if (fault.buffer < 0 || b >= buffers.size() || buffers[b] == nullptr || read == nullptr) {
    return fault.message;
  }
  if (std::count(buffers.begin(), buffers.end(), buffers[b]) > 1) return fault.message;
  int64_t elements = 1;
  for (const int64_t dim : fault.shape) elements *= dim;
  for (int64_t i = fault.accepted.begin; i < elements; i += fault.accepted.step) {
    const int64_t v = read(buffers[b], i);
    if (fault.accepted.contains(v)) continue;
    return fmt::format("{}: {} at [{}] of '{}'", fault.message, v,
                       fmt::join(index_of(i, fault.shape), ", "), fault.value);
  }
  return fault.message;
}

}  // namespace pyc
