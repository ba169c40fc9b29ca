#include "base/convert.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace pyc {
namespace {

constexpr uint32_t kNanF32 = 0x7FC00000;
constexpr uint64_t kNanF64 = 0x7FF8000000000000;

enum class Overflow : uint8_t { kInfinity, kNan, kLargest };

// A float format narrower than f32. Codes without their sign bit are ordered like the magnitudes
// they stand for; infinity, where there is one, comes right after the largest finite code.
struct Format {
  int fraction_bits;
  int min_exponent;  // of the smallest normal number
  uint32_t sign_bit;
  uint32_t max_finite;
  Overflow overflow;
  uint32_t nan;  // what a NaN becomes; with -0's code there is no -0
};

constexpr Format kF16 = {10, -14, 0x8000, 0x7BFF, Overflow::kInfinity, 0x7E00};
constexpr Format kBF16 = {7, -126, 0x8000, 0x7F7F, Overflow::kInfinity, 0x7FC0};
constexpr Format kF8E4M3FN = {3, -6, 0x80, 0x7E, Overflow::kNan, 0x7F};
constexpr Format kF8E4M3FNUZ = {3, -7, 0x80, 0x7F, Overflow::kNan, 0x80};
constexpr Format kF8E5M2 = {2, -14, 0x80, 0x7B, Overflow::kInfinity, 0x7E};
constexpr Format kF8E5M2FNUZ = {2, -15, 0x80, 0x7F, Overflow::kNan, 0x80};
constexpr Format kF4E2M1 = {1, 0, 0x8, 0x7, Overflow::kLargest, 0x7};
constexpr uint32_t kNanE8M0 = 0xFF;

template <Format F>
constexpr uint32_t overflowed(bool negative) {
  if (F.overflow == Overflow::kNan) return F.nan;
  const uint32_t code = F.max_finite + (F.overflow == Overflow::kInfinity ? 1 : 0);
  return code | (negative ? F.sign_bit : 0);
}

// mantissa · 2^-shift for shift ≥ 1, rounded to nearest even. Shifts of 64 and more are asked for
// mantissas of an f64 only, which are far below half then.
constexpr uint64_t shift_right_even(uint64_t mantissa, int shift) {
  if (shift >= 64) return 0;
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t kept = mantissa >> shift;
  const uint64_t rest = mantissa & (half | (half - 1));
  const bool up = rest > half || (rest == half && (kept & 1) != 0);
  return kept + (up ? 1 : 0);
}

// The code nearest to ±mantissa · 2^exponent.
template <Format F>
constexpr uint32_t encode(bool negative, uint64_t mantissa, int exponent) {
  constexpr bool kNegativeZero = F.nan != F.sign_bit;
  const uint32_t sign = negative ? F.sign_bit : 0;
  if (mantissa == 0) return kNegativeZero ? sign : 0;
  const int leading = 63 - std::countl_zero(mantissa) + exponent;
  // Subnormals share the quantum of the smallest normal numbers.
  const int steps = std::max(leading, F.min_exponent) - F.min_exponent;
  const int shift = steps + F.min_exponent - F.fraction_bits - exponent;
  const uint64_t rounded =
      shift > 0 ? shift_right_even(mantissa, shift) : mantissa << static_cast<unsigned>(-shift);
  // `rounded` still has its leading one, which adds the last step to the exponent field; a carry
  // out of the fraction moves on to the next binade by itself.
  const uint64_t code = (static_cast<uint64_t>(steps) << F.fraction_bits) + rounded;
  if (code > F.max_finite) return overflowed<F>(negative);
  if (code == 0 && !kNegativeZero) return 0;
  return static_cast<uint32_t>(code) | sign;
}

// The least power of two that is no smaller than mantissa · 2^exponent, as its exponent's code.
constexpr uint32_t encode_e8m0(bool negative, uint64_t mantissa, int exponent) {
  if (negative || mantissa == 0) return kNanE8M0;
  const int leading = 63 - std::countl_zero(mantissa) + exponent;
  const int up = std::has_single_bit(mantissa) ? 0 : 1;
  if (leading < -127 || leading + up > 127) return kNanE8M0;
  return static_cast<uint32_t>(leading + up + 127);
}

// The code of type `to` nearest to ±mantissa · 2^exponent.
uint32_t encode(bool negative, uint64_t mantissa, int exponent, DType to) {
  switch (to) {
    case DType::kF4E2M1:
      return encode<kF4E2M1>(negative, mantissa, exponent);
    case DType::kF8E8M0:
      return encode_e8m0(negative, mantissa, exponent);
    case DType::kF8E4M3FN:
      return encode<kF8E4M3FN>(negative, mantissa, exponent);
    case DType::kF8E4M3FNUZ:
      return encode<kF8E4M3FNUZ>(negative, mantissa, exponent);
    case DType::kF8E5M2:
      return encode<kF8E5M2>(negative, mantissa, exponent);
    case DType::kF8E5M2FNUZ:
      return encode<kF8E5M2FNUZ>(negative, mantissa, exponent);
    case DType::kF16:
      return encode<kF16>(negative, mantissa, exponent);
    default:
      return encode<kBF16>(negative, mantissa, exponent);
  }
}

// The code nearest to the f32 or f64 with these bits. Integer work only, so that neither the
// rounding mode nor flush-to-zero of the caller matters.
template <Format F, class Bits>
constexpr uint32_t encode_float(Bits bits) {
  constexpr int kBits = sizeof(Bits) * 8;
  constexpr int kFractionBits = kBits == 32 ? 23 : 52;
  constexpr int kFieldMax = kBits == 32 ? 0xFF : 0x7FF;
  constexpr int kBias = kFieldMax / 2;
  constexpr Bits kImplicitOne = Bits{1} << kFractionBits;

  const bool negative = (bits >> (kBits - 1)) != 0;
  const int field = static_cast<int>(bits >> kFractionBits) & kFieldMax;
  const Bits fraction = bits & (kImplicitOne - 1);
  if (field == kFieldMax) return fraction != 0 ? F.nan : overflowed<F>(negative);
  const Bits mantissa = field == 0 ? fraction : (fraction | kImplicitOne);
  return encode<F>(negative, mantissa, std::max(field, 1) - kBias - kFractionBits);
}

template <Format F>
uint32_t encode_f32(float x) {
  return encode_float<F>(std::bit_cast<uint32_t>(x));
}

template <Format F>
uint32_t encode_f64(double x) {
  return encode_float<F>(std::bit_cast<uint64_t>(x));
}

// The value of a code, exactly: for formats whose subnormals are normal in f32.
template <Format F>
float decode(uint32_t code) {
  if (F.nan == F.sign_bit && code == F.nan) return std::bit_cast<float>(kNanF32);
  static_assert(F.min_exponent - F.fraction_bits >= -126);
  constexpr uint32_t kInfinity = F.max_finite + 1;
  const uint32_t magnitude = code & (F.sign_bit - 1);
  const uint32_t sign = (code & F.sign_bit) != 0 ? 0x80000000 : 0;
  if (magnitude > F.max_finite) {
    const bool infinite = F.overflow == Overflow::kInfinity && magnitude == kInfinity;
    return std::bit_cast<float>(infinite ? 0x7F800000 | sign : kNanF32);
  }
  uint32_t bits = 0;
  if ((magnitude >> F.fraction_bits) == 0) {
    constexpr uint32_t kQuantum = (127 + F.min_exponent - F.fraction_bits) << 23;
    bits = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * std::bit_cast<float>(kQuantum));
  } else {
    bits = (magnitude << (23 - F.fraction_bits)) + ((126 + F.min_exponent) << 23);
  }
  return std::bit_cast<float>(bits | sign);
}

float decode_e8m0(uint32_t code) {
  if (code == kNanE8M0) return std::bit_cast<float>(kNanF32);
  return std::bit_cast<float>(code == 0 ? uint32_t{1} << 22 : code << 23);
}

double float_to_double(Word x, DType from) {
  switch (from) {
    case DType::kF4E2M1:
      return decode<kF4E2M1>(static_cast<uint8_t>(x));
    case DType::kF8E8M0:
      return decode_e8m0(static_cast<uint8_t>(x));
    case DType::kF8E4M3FN:
      return f8e4m3fn_to_f32(static_cast<uint8_t>(x));
    case DType::kF8E4M3FNUZ:
      return decode<kF8E4M3FNUZ>(static_cast<uint8_t>(x));
    case DType::kF8E5M2:
      return f8e5m2_to_f32(static_cast<uint8_t>(x));
    case DType::kF8E5M2FNUZ:
      return decode<kF8E5M2FNUZ>(static_cast<uint8_t>(x));
    case DType::kF16:
      return f16_to_f32(static_cast<uint16_t>(x));
    case DType::kBF16:
      return bf16_to_f32(static_cast<uint16_t>(x));
    case DType::kF32:
      return std::bit_cast<float>(static_cast<uint32_t>(x));
    default:
      return std::bit_cast<double>(x);
  }
}

uint32_t f64_to_e8m0(double x) {
  if (!(x >= 0x1p-127 && x <= 0x1p127)) return kNanE8M0;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t mantissa = (bits & 0xFFFFFFFFFFFFF) | (uint64_t{1} << 52);
  return encode_e8m0(false, mantissa, static_cast<int>(bits >> 52) - 1075);
}

Word double_to_float(double x, DType to) {
  switch (to) {
    case DType::kF4E2M1:
      return encode_f64<kF4E2M1>(x);
    case DType::kF8E8M0:
      return f64_to_e8m0(x);
    case DType::kF8E4M3FN:
      return f64_to_f8e4m3fn(x);
    case DType::kF8E4M3FNUZ:
      return encode_f64<kF8E4M3FNUZ>(x);
    case DType::kF8E5M2:
      return f64_to_f8e5m2(x);
    case DType::kF8E5M2FNUZ:
      return encode_f64<kF8E5M2FNUZ>(x);
    case DType::kF16:
      return f64_to_f16(x);
    case DType::kBF16:
      return f64_to_bf16(x);
    case DType::kF32:
      return x != x ? kNanF32 : std::bit_cast<uint32_t>(static_cast<float>(x));
    default:
      return x != x ? kNanF64 : std::bit_cast<uint64_t>(x);
  }
}

Word int_to_float(Word x, DType from, DType to) {
  const bool negative = is_signed_int(from) && static_cast<int64_t>(x) < 0;
  const uint64_t magnitude = negative ? 0 - x : x;
  if (is_narrow_float(to)) return encode(negative, magnitude, 0, to);
  if (to == DType::kF32) {
    const float value = static_cast<float>(magnitude);
    return std::bit_cast<uint32_t>(negative ? -value : value);
  }
  const double value = static_cast<double>(magnitude);
  return std::bit_cast<uint64_t>(negative ? -value : value);
}

template <class Int>
Word saturate(double x) {
  using Limits = std::numeric_limits<Int>;
  // 2^digits is the first value that is too large; it is exact, unlike max() for 64 bits.
  constexpr double kBeyond = 2.0 * static_cast<double>(uint64_t{1} << (Limits::digits - 1));
  if (x != x) return 0;
  Int result = 0;
  if (x >= kBeyond) {
    result = Limits::max();
  } else if (x <= static_cast<double>(Limits::min())) {
    result = Limits::min();
  } else {
    result = static_cast<Int>(x);
  }
  return static_cast<Word>(result);
}

// Truncates and saturates to an integer type below a byte.
Word saturate_narrow(double x, DType to) {
  const auto bits = static_cast<int>(dtype_bits(to));
  const bool sign = is_signed_int(to);
  const double limit = 1 << (sign ? bits - 1 : bits);
  if (x != x) return 0;
  return static_cast<Word>(static_cast<int64_t>(std::clamp(x, sign ? -limit : 0.0, limit - 1)));
}

Word double_to_int(double x, DType to) {
  switch (to) {
    case DType::kI2:
    case DType::kI4:
    case DType::kU2:
    case DType::kU4:
      return saturate_narrow(x, to);
    case DType::kI8:
      return saturate<int8_t>(x);
    case DType::kI16:
      return saturate<int16_t>(x);
    case DType::kI32:
      return saturate<int32_t>(x);
    case DType::kI64:
      return saturate<int64_t>(x);
    case DType::kU8:
      return saturate<uint8_t>(x);
    case DType::kU16:
      return saturate<uint16_t>(x);
    case DType::kU32:
      return saturate<uint32_t>(x);
    default:
      return saturate<uint64_t>(x);
  }
}

// The low bits of `x` as an integer of type `to`, extended to a word.
Word wrap_int(Word x, DType to) {
  switch (to) {
    case DType::kI2:
    case DType::kI4: {
      const int64_t rest = 64 - dtype_bits(to);
      return static_cast<Word>(static_cast<int64_t>(x << rest) >> rest);
    }
    case DType::kU2:
      return x & 3;
    case DType::kU4:
      return x & 15;
    case DType::kI8:
      return static_cast<Word>(static_cast<int8_t>(x));
    case DType::kI16:
      return static_cast<Word>(static_cast<int16_t>(x));
    case DType::kI32:
      return static_cast<Word>(static_cast<int32_t>(x));
    case DType::kU8:
      return static_cast<uint8_t>(x);
    case DType::kU16:
      return static_cast<uint16_t>(x);
    case DType::kU32:
      return static_cast<uint32_t>(x);
    default:
      return x;
  }
}

bool is_nonzero(Word x, DType from) {
  if (from == DType::kF8E8M0) return true;
  const bool has_negative_zero = from != DType::kF8E4M3FNUZ && from != DType::kF8E5M2FNUZ;
  if (!is_float(from) || !has_negative_zero) return x != 0;
  return (x & ((Word{1} << (dtype_bits(from) - 1)) - 1)) != 0;
}

template <class T>
T load(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

template <class T>
void store(void* p, Word x) {
  const T value = static_cast<T>(x);
  std::memcpy(p, &value, sizeof(T));
}

}  // namespace

uint16_t f32_to_f16(float x) { return static_cast<uint16_t>(encode_f32<kF16>(x)); }
uint16_t f32_to_bf16(float x) { return static_cast<uint16_t>(encode_f32<kBF16>(x)); }
uint8_t f32_to_f8e4m3fn(float x) { return static_cast<uint8_t>(encode_f32<kF8E4M3FN>(x)); }
uint8_t f32_to_f8e5m2(float x) { return static_cast<uint8_t>(encode_f32<kF8E5M2>(x)); }

uint16_t f64_to_f16(double x) { return static_cast<uint16_t>(encode_f64<kF16>(x)); }
uint16_t f64_to_bf16(double x) { return static_cast<uint16_t>(encode_f64<kBF16>(x)); }
uint8_t f64_to_f8e4m3fn(double x) { return static_cast<uint8_t>(encode_f64<kF8E4M3FN>(x)); }
uint8_t f64_to_f8e5m2(double x) { return static_cast<uint8_t>(encode_f64<kF8E5M2>(x)); }

bool narrow_floats(const std::byte* in, size_t count, DType to, std::byte* out) {
  // What encode<F> does for numbers that are normal in F, which is nearly all of them, without its
  // loops over cases: the exponent moved to the other bias, then a carry where the rest rounds up.
  const Format& format = to == DType::kF16 ? kF16 : kBF16;
  const auto shift = static_cast<unsigned>(23 - format.fraction_bits);
  const uint32_t bias = static_cast<uint32_t>(126 + format.min_exponent) << 23;
  const uint32_t least = static_cast<uint32_t>(127 + format.min_exponent) << 23;
  const uint32_t beyond = format.max_finite + 1;
  bool overflowed = false;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, in + i * sizeof bits, sizeof bits);
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    uint32_t code = 0;
    if (magnitude >= least && magnitude < 0x7F800000) {
      const uint32_t moved = magnitude - bias;
      code = (moved + ((uint32_t{1} << (shift - 1)) - 1) + ((moved >> shift) & 1)) >> shift;
      overflowed = overflowed || code >= beyond;
      code = std::min(code, beyond) | ((bits >> 16) & 0x8000);
    } else {
      code = to == DType::kF16 ? encode_float<kF16>(bits) : encode_float<kBF16>(bits);
    }
    const auto half = static_cast<uint16_t>(code);
    std::memcpy(out + i * sizeof half, &half, sizeof half);
  }
  return overflowed;
}

float f16_to_f32(uint16_t bits) { return decode<kF16>(bits); }

float bf16_to_f32(uint16_t bits) {
  if ((bits & 0x7FFF) > kBF16.max_finite + 1) return std::bit_cast<float>(kNanF32);
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float f8e4m3fn_to_f32(uint8_t bits) { return decode<kF8E4M3FN>(bits); }
float f8e5m2_to_f32(uint8_t bits) { return decode<kF8E5M2>(bits); }

Word convert_word(Word x, DType from, DType to) {
  if (from == to) return x;
  if (to == DType::kBool) return is_nonzero(x, from) ? 1 : 0;
  if (is_float(from)) {
    // Every float type fits f64 exactly, so the step out of f64 is the one rounding.
    const double value = float_to_double(x, from);
    return is_float(to) ? double_to_float(value, to) : double_to_int(value, to);
  }
  return is_float(to) ? int_to_float(x, from, to) : wrap_int(x, to);
}

Word load_word(const void* p, DType t) {
  switch (t) {
    case DType::kBool:
      return load<uint8_t>(p) != 0 ? 1 : 0;
    case DType::kI2:
    case DType::kI4:
    case DType::kU2:
    case DType::kU4:
      return wrap_int(load<uint8_t>(p), t);
    case DType::kF4E2M1:
      return load<uint8_t>(p) & 15;
    case DType::kI8:
      return static_cast<Word>(load<int8_t>(p));
    case DType::kI16:
      return static_cast<Word>(load<int16_t>(p));
    case DType::kI32:
      return static_cast<Word>(load<int32_t>(p));
    default:
      break;
  }
  switch (dtype_size(t)) {
    case 1:
      return load<uint8_t>(p);
    case 2:
      return load<uint16_t>(p);
    case 4:
      return load<uint32_t>(p);
    default:
      return load<uint64_t>(p);
  }
}

void store_word(void* p, DType t, Word x) {
  switch (dtype_size(t)) {
    case 1:
      return store<uint8_t>(p, x);
    case 2:
      return store<uint16_t>(p, x);
    case 4:
      return store<uint32_t>(p, x);
    default:
      return store<uint64_t>(p, x);
  }
}

Word word_from_double(double x, DType t) {
  return convert_word(std::bit_cast<Word>(x), DType::kF64, t);
}

Word word_from_int(int64_t x, DType t) {
  return convert_word(static_cast<Word>(x), DType::kI64, t);
}

double word_to_double(Word x, DType t) {
  return std::bit_cast<double>(convert_word(x, t, DType::kF64));
}

}  // namespace pyc
