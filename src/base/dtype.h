#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pyc {

// Element types of tensors. The names in text form are the lower-case ones of dtype_name.
enum class DType : uint8_t {
  kBool,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF8E4M3FN,
  kF8E5M2,
  kF16,
  kBF16,
  kF32,
  kF64,
};
inline constexpr int kDTypeCount = 15;

// Bytes of one element. A bool is one byte, 0 or 1.
int64_t dtype_size(DType t);
// "f32", "bf16", "f8e4m3fn", "bool" …
std::string_view dtype_name(DType t);
std::optional<DType> dtype_from_name(std::string_view name);

constexpr bool is_float(DType t) { return t >= DType::kF8E4M3FN; }
// Float types narrower than f32: arithmetic on them is done in f32 and rounded once.
constexpr bool is_narrow_float(DType t) { return t >= DType::kF8E4M3FN && t <= DType::kBF16; }
constexpr bool is_signed_int(DType t) { return t >= DType::kI8 && t <= DType::kI64; }
constexpr bool is_unsigned_int(DType t) { return t >= DType::kU8 && t <= DType::kU64; }
constexpr bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }
// The type arithmetic on `t` is carried out in: f32 for narrow floats, else `t` itself.
constexpr DType compute_dtype(DType t) { return is_narrow_float(t) ? DType::kF32 : t; }

}  // namespace pyc
