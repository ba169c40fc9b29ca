#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pyc {

// Element types of tensors. The names in text form are the lower-case ones of dtype_name. In memory
// an element of i2, i4, u2, u4 or f4e2m1 has a byte to itself, sign- or zero-extended; packing is
// the business of whoever reads or writes a file. Loads look at the low bits only.
enum class DType : uint8_t {
  kBool,
  kI2,
  kI4,
  kI8,
  kI16,
  kI32,
  kI64,
  kU2,
  kU4,
  kU8,
  kU16,
  kU32,
  kU64,
  kF4E2M1,
  kF8E8M0,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF16,
  kBF16,
  kF32,
  kF64,
  // Real and imaginary part one after the other. Values have these types, graphs do not.
  kC64,
  kC128,
};
// Those that graphs compute with, and all of them.
inline constexpr int kDTypeCount = 23;
inline constexpr int kValueDTypeCount = 25;

// Bytes of one element. A bool is one byte, 0 or 1.
int64_t dtype_size(DType t);
// Bits of one element that carry its value: 2 or 4 for the types below a byte, else all.
int64_t dtype_bits(DType t);
// "f32", "bf16", "f8e4m3fn", "bool" …
std::string_view dtype_name(DType t);
std::optional<DType> dtype_from_name(std::string_view name);

constexpr bool is_float(DType t) { return t >= DType::kF4E2M1 && t <= DType::kF64; }
constexpr bool is_complex(DType t) { return t == DType::kC64 || t == DType::kC128; }
// The type of a complex number's parts; that of a real one is its own.
constexpr DType part_dtype(DType t) {
  if (t == DType::kC64) return DType::kF32;
  return t == DType::kC128 ? DType::kF64 : t;
}
// Float types narrower than f32: arithmetic on them is done in f32 and rounded once.
constexpr bool is_narrow_float(DType t) { return t >= DType::kF4E2M1 && t <= DType::kBF16; }
constexpr bool is_half(DType t) { return t == DType::kF16 || t == DType::kBF16; }
constexpr bool is_signed_int(DType t) { return t >= DType::kI2 && t <= DType::kI64; }
constexpr bool is_unsigned_int(DType t) { return t >= DType::kU2 && t <= DType::kU64; }
constexpr bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }
// Integer types below a byte: arithmetic on them is done in i8 or u8 and wrapped once.
constexpr bool is_narrow_int(DType t) {
  return t == DType::kI2 || t == DType::kI4 || t == DType::kU2 || t == DType::kU4;
}
// The type arithmetic on `t` is carried out in.
constexpr DType compute_dtype(DType t) {
  if (is_narrow_float(t)) return DType::kF32;
  if (is_narrow_int(t)) return is_signed_int(t) ? DType::kI8 : DType::kU8;
  return t;
}

}  // namespace pyc
