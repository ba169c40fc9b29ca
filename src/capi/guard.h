#pragma once

// The border between C and C++: nothing else catches, checks struct sizes or makes errors.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "base/exceptions.h"
#include "base/fp_state.h"
#include "base/status.h"
#include "ir/types.h"
#include "pyc/common.h"

struct pyc_error {
  pyc::Status status;
};

namespace pyc::capi {

// Hands the refusal to the caller, who may not want it.
pyc_status report(const Status& status, pyc_error** error) noexcept;

// Runs `body`, which returns a Status, and reports what came of it, exceptions included.
template <class Body>
pyc_status guard(pyc_error** error, Body body) noexcept {
  if (error != nullptr) *error = nullptr;
  const FpStateGuard
      fp_state;  // numbers are read and folded by the contract, whatever the caller's
  try {
    Status status = body();
    return status.ok() ? PYC_STATUS_OK : report(status, error);
  } catch (...) {
    return report(status_of_exception(), error);
  }
}

inline Status require(const void* pointer, std::string_view what) {
  if (pointer != nullptr) return {};
  return {Code::kNullPointer, fmt::format("{} is NULL", what)};
}

// That `index` is under `count`.
Status require_index(size_t index, size_t count, std::string_view what);

// That a list of `count` entries has memory.
inline Status require_list(const void* list, size_t count, std::string_view what) {
  return count == 0 ? Status() : require(list, what);
}

// Sizes of sized structs: `first` is what the first version of the struct had.
Status check_struct_size(size_t size, size_t first, std::string_view what);

// The caller's options as this library knows them: what the caller's struct lacks is 0, what it has
// beyond must be 0. `pointer` may be null.
template <class T>
Status read_struct(const T* pointer, std::string_view what, size_t first_size, T& out) {
  out = T{};
  out.struct_size = sizeof(T);
  if (pointer == nullptr) return {};
  const size_t size = pointer->struct_size;
  PYC_TRY(check_struct_size(size, first_size, what));
  const auto* bytes = reinterpret_cast<const unsigned char*>(pointer);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] == 0) continue;
    return {
        Code::kUnknownOption,
        fmt::format("{}: a field beyond the {} bytes this library knows is set", what, sizeof(T))};
  }
  std::memcpy(&out, pointer, std::min(size, sizeof(T)));
  out.struct_size = sizeof(T);
  return {};
}

// That the caller's struct can be written to.
template <class T>
Status check_out_struct(const T* pointer, std::string_view what, size_t first_size) {
  PYC_TRY(require(pointer, what));
  return check_struct_size(pointer->struct_size, first_size, what);
}

// Fills as much of the caller's struct as it has room for; its size stays the caller's. Fields it
// has beyond become 0.
template <class T>
void write_struct(T* pointer, T value) {
  const size_t size = pointer->struct_size;
  value.struct_size = size;
  std::memcpy(pointer, &value, std::min(size, sizeof(T)));
  if (size > sizeof(T)) {
    std::memset(reinterpret_cast<unsigned char*>(pointer) + sizeof(T), 0, size - sizeof(T));
  }
}

// A copy for pyc_text_destroy.
Status give_text(std::string_view text, char** out);

// A dtype and a tensor's type from C, checked.
inline bool is_dtype(pyc_dtype dtype) { return dtype >= 0 && dtype < kValueDTypeCount; }
Result<DType> to_dtype(pyc_dtype dtype);
Result<ir::TensorType> to_type(pyc_dtype dtype, const int64_t* shape, int64_t rank);
// "" for NULL.
inline std::string to_text(const char* text) { return text == nullptr ? "" : text; }

// Of the first version of pyc_value_info, which ended with `kind`.
inline constexpr size_t kFirstValueInfo = offsetof(pyc_value_info, type);

pyc_value_info value_info(std::string_view name, DType dtype, const std::vector<int64_t>& shape,
                          int64_t bytes, int32_t kind);

}  // namespace pyc::capi
