#include "backends/cuda/dialect.h"

#include <string>

namespace pyc::cuda {
namespace {

// Integers as loop.h has them: arithmetic wraps, x/0 = 0, MIN/-1 = MIN, shifts by the width or more
// give 0 or the sign. W is an unsigned type of at least 32 bits, so that nothing overflows.
constexpr std::string_view kIntegers = R"(
#define PYC_INTEGER(N, T, U, W, BITS) \
  PYC_FN T pyc_add_##N(T a, T b) { return (T)((W)a + (W)b); } \
  PYC_FN T pyc_sub_##N(T a, T b) { return (T)((W)a - (W)b); } \
  PYC_FN T pyc_mul_##N(T a, T b) { return (T)((W)a * (W)b); } \
  PYC_FN T pyc_min_##N(T a, T b) { return a < b ? a : b; } \
  PYC_FN T pyc_max_##N(T a, T b) { return a < b ? b : a; } \
  PYC_FN T pyc_neg_##N(T a) { return (T)((W)0 - (W)a); } \
  PYC_FN T pyc_shl_##N(T a, T b) { return (U)b >= BITS ? (T)0 : (T)((W)(U)a << (U)b); }
#define PYC_SIGNED(N, T, U, W, BITS) \
  PYC_INTEGER(N, T, U, W, BITS) \
  PYC_FN T pyc_abs_##N(T a) { return a < 0 ? pyc_neg_##N(a) : a; } \
  PYC_FN T pyc_shr_##N(T a, T b) { return (T)(a >> ((U)b >= BITS ? BITS - 1 : (i32)b)); } \
  PYC_FN T pyc_div_##N(T a, T b) { return b == 0 ? (T)0 : b == -1 ? pyc_neg_##N(a) : (T)(a / b); } \
  PYC_FN T pyc_rem_##N(T a, T b) { return b == 0 || b == -1 ? (T)0 : (T)(a % b); }
#define PYC_UNSIGNED(N, T, W, BITS) \
  PYC_INTEGER(N, T, T, W, BITS) \
  PYC_FN T pyc_abs_##N(T a) { return a; } \
  PYC_FN T pyc_shr_##N(T a, T b) { return b >= BITS ? (T)0 : (T)(a >> b); } \
  PYC_FN T pyc_div_##N(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); } \
  PYC_FN T pyc_rem_##N(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }
PYC_SIGNED(i8, i8, u8, u32, 8)
PYC_SIGNED(i16, i16, u16, u32, 16)
PYC_SIGNED(i32, i32, u32, u32, 32)
PYC_SIGNED(i64, i64, u64, u64, 64)
PYC_UNSIGNED(u8, u8, u32, 8)
PYC_UNSIGNED(u16, u16, u32, 16)
PYC_UNSIGNED(u32, u32, u32, 32)
PYC_UNSIGNED(u64, u64, u64, 64)
PYC_FN bool pyc_min_bool(bool a, bool b) { return a && b; }
PYC_FN bool pyc_max_bool(bool a, bool b) { return a || b; }
PYC_FN i32 pyc_floor_div_i32(i32 a, i32 b) { const i32 q = a / b; return a - q * b < 0 ? q - 1 : q; }
PYC_FN i64 pyc_floor_div_i64(i64 a, i64 b) { const i64 q = a / b; return a - q * b < 0 ? q - 1 : q; }
PYC_FN i32 pyc_floor_mod_i32(i32 a, i32 b) { const i32 r = a % b; return r < 0 ? r + b : r; }
PYC_FN i64 pyc_floor_mod_i64(i64 a, i64 b) { const i64 r = a % b; return r < 0 ? r + b : r; }
PYC_FN i8 pyc_wrap_i2(u64 x) { return (i8)((i8)((u8)x << 6) >> 6); }
PYC_FN i8 pyc_wrap_i4(u64 x) { return (i8)((i8)((u8)x << 4) >> 4); }
PYC_FN u8 pyc_wrap_u2(u64 x) { return (u8)(x & 3); }
PYC_FN u8 pyc_wrap_u4(u64 x) { return (u8)(x & 15); }
PYC_FN float pyc_neg_f32(float x) { return pyc_bits_f32(pyc_f32_bits(x) ^ 0x80000000u); }
PYC_FN float pyc_abs_f32(float x) { return pyc_bits_f32(pyc_f32_bits(x) & 0x7fffffffu); }
PYC_FN double pyc_neg_f64(double x) { return pyc_bits_f64(pyc_f64_bits(x) ^ 0x8000000000000000ull); }
PYC_FN double pyc_abs_f64(double x) { return pyc_bits_f64(pyc_f64_bits(x) & 0x7fffffffffffffffull); }
)";

// Float formats narrower than f32, by integer work: one rounding, to nearest even, from the source.
// `over` says what lies beyond the largest number: 0 infinity, 1 NaN, 2 the largest number.
constexpr std::string_view kFormats = R"(
PYC_FN i32 pyc_top_bit(u64 x) {
  i32 n = 0;
  for (i32 step = 32; step > 0; step >>= 1) {
    if (x >> step) { x >>= step; n += step; }
  }
  return n;
}
PYC_FN u64 pyc_shift_even(u64 m, i32 shift) {
  if (shift >= 64) return 0;
  const u64 half = 1ull << (shift - 1);
  const u64 kept = m >> shift;
  const u64 rest = m & (half | (half - 1));
  return kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
}
PYC_FN u32 pyc_beyond(bool negative, u32 sign, u32 largest, i32 over, u32 nan) {
  if (over == 1) return nan;
  return (largest + (over == 0 ? 1 : 0)) | (negative ? sign : 0);
}
PYC_FN u32 pyc_encode(bool negative, u64 m, i32 exponent, i32 fraction, i32 least, u32 sign,
                      u32 largest, i32 over, u32 nan) {
  const bool has_negative_zero = nan != sign;
  const u32 s = negative ? sign : 0;
  if (m == 0) return has_negative_zero ? s : 0;
  const i32 leading = pyc_top_bit(m) + exponent;
  const i32 steps = (leading > least ? leading : least) - least;
  const i32 shift = steps + least - fraction - exponent;
  const u64 rounded = shift > 0 ? pyc_shift_even(m, shift) : m << -shift;
  const u64 code = ((u64)steps << fraction) + rounded;
  if (code > largest) return pyc_beyond(negative, sign, largest, over, nan);
  if (code == 0 && !has_negative_zero) return 0;
  return (u32)code | s;
}
PYC_FN u32 pyc_encode_f32(float x, i32 fraction, i32 least, u32 sign, u32 largest, i32 over,
                          u32 nan) {
  const u32 bits = pyc_f32_bits(x);
  const bool negative = (bits >> 31) != 0;
  const i32 field = (i32)(bits >> 23 & 0xff);
  const u32 part = bits & 0x7fffff;
  if (field == 0xff) return part ? nan : pyc_beyond(negative, sign, largest, over, nan);
  return pyc_encode(negative, field ? part | 0x800000 : part, (field ? field : 1) - 150, fraction,
                    least, sign, largest, over, nan);
}
PYC_FN u32 pyc_encode_f64(double x, i32 fraction, i32 least, u32 sign, u32 largest, i32 over,
                          u32 nan) {
  const u64 bits = pyc_f64_bits(x);
  const bool negative = (bits >> 63) != 0;
  const i32 field = (i32)(bits >> 52 & 0x7ff);
  const u64 part = bits & 0xfffffffffffffull;
  if (field == 0x7ff) return part ? nan : pyc_beyond(negative, sign, largest, over, nan);
  return pyc_encode(negative, field ? part | 0x10000000000000ull : part, (field ? field : 1) - 1075,
                    fraction, least, sign, largest, over, nan);
}
PYC_FN float pyc_decode(u32 code, i32 fraction, i32 least, u32 sign, u32 largest, i32 over,
                        u32 nan) {
  if (nan == sign && code == nan) return pyc_bits_f32(0x7fc00000u);
  const u32 magnitude = code & (sign - 1);
  const u32 s = code & sign ? 0x80000000u : 0;
  if (magnitude > largest) {
    return pyc_bits_f32(over == 0 && magnitude == largest + 1 ? 0x7f800000u | s : 0x7fc00000u);
  }
  u32 bits = 0;
  if ((magnitude >> fraction) == 0) {
    const float quantum = pyc_bits_f32((u32)(127 + least - fraction) << 23);
    bits = pyc_f32_bits(pyc_mul_f32(pyc_i32_to_f32((i32)magnitude), quantum));
  } else {
    bits = (magnitude << (23 - fraction)) + ((u32)(126 + least) << 23);
  }
  return pyc_bits_f32(bits | s);
}
#define PYC_FORMAT(N, T, ...) \
  PYC_FN T pyc_f32_to_##N(float x) { return (T)pyc_encode_f32(x, __VA_ARGS__); } \
  PYC_FN T pyc_f64_to_##N(double x) { return (T)pyc_encode_f64(x, __VA_ARGS__); } \
  PYC_FN T pyc_int_to_##N(bool negative, u64 m) { return (T)pyc_encode(negative, m, 0, __VA_ARGS__); } \
  PYC_FN float pyc_##N##_to_f32(T x) { return pyc_decode(x, __VA_ARGS__); }
PYC_FORMAT(f8e4m3fn, u8, 3, -6, 0x80u, 0x7eu, 1, 0x7fu)
PYC_FORMAT(f8e4m3fnuz, u8, 3, -7, 0x80u, 0x7fu, 1, 0x80u)
PYC_FORMAT(f8e5m2, u8, 2, -14, 0x80u, 0x7bu, 0, 0x7eu)
PYC_FORMAT(f8e5m2fnuz, u8, 2, -15, 0x80u, 0x7fu, 1, 0x80u)
PYC_FORMAT(f4e2m1, u8, 1, 0, 0x8u, 0x7u, 2, 0x7u)
)";

// A half of a NaN is any NaN, and so back: a model's outputs get theirs when they are stored.
constexpr std::string_view kHalves = R"(
PYC_FN u16 pyc_f32_to_f16(float x) { return pyc_f32_to_f16_raw(x); }
PYC_FN u16 pyc_f32_to_bf16(float x) { return pyc_f32_to_bf16_raw(x); }
PYC_FN float pyc_f16_to_f32(u16 x) { return pyc_f16_to_f32_raw(x); }
PYC_FN float pyc_bf16_to_f32_raw(u16 x) { return pyc_bits_f32((u32)x << 16); }
PYC_FN float pyc_bf16_of_pair(u32 pair, i32 which) {
  return pyc_bits_f32(which == 0 ? pair << 16 : pair & 0xffff0000u);
}
// Read now, not when the words are used.
PYC_FN pyc_v16 pyc_near_words(PYC_NEAR const void* at) {
  pyc_v16 y;
  pyc_read_near(at, y.x, y.y, y.z, y.w);
  return y;
}
PYC_FN float pyc_f16_of_pair(u32 pair, i32 which) {
  return pyc_f16_to_f32_raw((u16)(which == 0 ? pair : pair >> 16));
}
PYC_FN float pyc_bf16_to_f32(u16 x) { return pyc_bf16_to_f32_raw(x); }
PYC_FN u32 pyc_pair_to_f16(float a, float b) { return pyc_pair_to_f16_raw(a, b); }
PYC_FN u32 pyc_pair_to_bf16(float a, float b) { return pyc_pair_to_bf16_raw(a, b); }
// Nothing but a NaN is above the canonical one as an integer with a sign.
PYC_FN u32 pyc_pair_to_f16_one_nan(float a, float b) {
  return pyc_min_pair_i16(pyc_pair_to_f16_raw(a, b), 0x7e007e00u);
}
PYC_FN u32 pyc_pair_to_bf16_one_nan(float a, float b) {
  return pyc_min_pair_i16(pyc_pair_to_bf16_raw(a, b), 0x7fc07fc0u);
}
PYC_FN u16 pyc_f64_to_f16(double x) {
  return (u16)pyc_encode_f64(x, 10, -14, 0x8000u, 0x7bffu, 0, 0x7e00u);
}
PYC_FN u16 pyc_f64_to_bf16(double x) {
  return (u16)pyc_encode_f64(x, 7, -126, 0x8000u, 0x7f7fu, 0, 0x7fc0u);
}
PYC_FN u16 pyc_int_to_f16(bool negative, u64 m) {
  return (u16)pyc_encode(negative, m, 0, 10, -14, 0x8000u, 0x7bffu, 0, 0x7e00u);
}
PYC_FN u16 pyc_int_to_bf16(bool negative, u64 m) {
  return (u16)pyc_encode(negative, m, 0, 7, -126, 0x8000u, 0x7f7fu, 0, 0x7fc0u);
}
PYC_FN u8 pyc_power_to_e8m0(bool negative, u64 m, i32 exponent) {
  if (negative || m == 0) return 0xff;
  const i32 leading = pyc_top_bit(m) + exponent;
  const i32 up = (m & (m - 1)) == 0 ? 0 : 1;
  return leading < -127 || leading + up > 127 ? (u8)0xff : (u8)(leading + up + 127);
}
PYC_FN u8 pyc_f64_to_f8e8m0(double x) {
  if (!(x >= 0x1p-127 && x <= 0x1p127)) return 0xff;
  const u64 bits = pyc_f64_bits(x);
  return pyc_power_to_e8m0(false, (bits & 0xfffffffffffffull) | 0x10000000000000ull,
                           (i32)(bits >> 52) - 1075);
}
PYC_FN u8 pyc_f32_to_f8e8m0(float x) { return pyc_f64_to_f8e8m0((double)x); }
PYC_FN u8 pyc_int_to_f8e8m0(bool negative, u64 m) { return pyc_power_to_e8m0(negative, m, 0); }
PYC_FN float pyc_f8e8m0_to_f32(u8 x) {
  return pyc_bits_f32(x == 0xff ? 0x7fc00000u : x == 0 ? 1u << 22 : (u32)x << 23);
}
#define PYC_SATURATE(N, T, LOW, HIGH, BEYOND) \
  PYC_FN T pyc_f64_to_##N(double x) { \
    if (x != x) return (T)0; \
    if (x >= BEYOND) return HIGH; \
    if (x <= (double)(LOW)) return LOW; \
    return (T)x; \
  }
PYC_SATURATE(i2, i8, -2, 1, 2.0)
PYC_SATURATE(i4, i8, -8, 7, 8.0)
PYC_SATURATE(i8, i8, -128, 127, 128.0)
PYC_SATURATE(i16, i16, -32768, 32767, 32768.0)
PYC_SATURATE(i32, i32, (-2147483647 - 1), 2147483647, 2147483648.0)
PYC_SATURATE(i64, i64, (-9223372036854775807ll - 1), 9223372036854775807ll, 9223372036854775808.0)
PYC_SATURATE(u2, u8, 0, 3, 4.0)
PYC_SATURATE(u4, u8, 0, 15, 16.0)
PYC_SATURATE(u8, u8, 0, 255, 256.0)
PYC_SATURATE(u16, u16, 0, 65535, 65536.0)
PYC_SATURATE(u32, u32, 0, 4294967295u, 4294967296.0)
PYC_SATURATE(u64, u64, 0, 18446744073709551615ull, 18446744073709551616.0)
)";

}  // namespace

std::string_view prelude() {
  static const std::string kText =
      std::string(kIntegers) + std::string(kFormats) + std::string(kHalves);
  return kText;
}

}  // namespace pyc::cuda
