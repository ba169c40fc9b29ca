#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace pyc {

// What follows a format's largest number: infinity and NaNs, one NaN, nothing (its one NaN is in
// -0's place), or nothing and there is no NaN.
enum class Top : uint8_t { kInfinity, kNan, kNoNegativeZero, kLargest };

// A narrow float format by its definition, and the correctly rounded code of any real number: an
// implementation that shares nothing with base/convert.cpp.
class NarrowFormat {
 public:
  NarrowFormat(DType type, int exponent_bits, int fraction_bits, int bias, Top top, uint32_t nan)
      : type_(type),
        fraction_bits_(fraction_bits),
        bias_(bias),
        top_(top),
        nan_(nan),
        sign_bit_(uint32_t{1} << (exponent_bits + fraction_bits)) {
    // Only IEEE-like formats give up the whole top binade; f8e4m3fn gives up one code.
    const uint32_t top_binade = ((uint32_t{1} << exponent_bits) - 1) << fraction_bits;
    max_finite_ = top == Top::kInfinity ? top_binade - 1 : sign_bit_ - (top == Top::kNan ? 2 : 1);
    borders_.reserve(max_finite_ + 1);
    for (uint32_t code = 0; code <= max_finite_; ++code) {
      borders_.push_back((magnitude(code) + magnitude(code + 1)) / 2);
    }
  }

  DType type() const { return type_; }
  uint32_t sign_bit() const { return sign_bit_; }
  uint32_t code_count() const { return sign_bit_ * 2; }
  uint32_t max_finite() const { return max_finite_; }
  uint32_t nan() const { return nan_; }

  // borders()[c] lies midway between the magnitudes of codes c and c + 1; the last one is where
  // overflow begins.
  const std::vector<double>& borders() const { return borders_; }

  bool is_nan(uint32_t code) const {
    if (top_ == Top::kNoNegativeZero) return code == sign_bit_;
    return (code & (sign_bit_ - 1)) > max_finite_ + (top_ == Top::kInfinity ? 1 : 0);
  }

  // The value of a code that is no NaN.
  double value(uint32_t code) const {
    const uint32_t rest = code & (sign_bit_ - 1);
    const double size =
        rest > max_finite_ ? std::numeric_limits<double>::infinity() : magnitude(rest);
    return (code & sign_bit_) != 0 ? -size : size;
  }

  // The code nearest to `x` (double or long double), ties to even.
  template <class Real>
  uint32_t nearest(Real x) const {
    if (std::isnan(x)) return nan_;
    const Real size = std::fabs(x);
    const auto border = std::lower_bound(borders_.begin(), borders_.end(), size);
    uint32_t code = static_cast<uint32_t>(border - borders_.begin());
    const bool tie = border != borders_.end() && *border == size;
    if (tie && code % 2 == 1) ++code;
    if (code > max_finite_) {
      if (top_ == Top::kNan || top_ == Top::kNoNegativeZero) return nan_;
      code = max_finite_ + (top_ == Top::kInfinity ? 1 : 0);
    }
    if (code == 0 && top_ == Top::kNoNegativeZero) return 0;
    return std::signbit(x) ? code | sign_bit_ : code;
  }

 private:
  double magnitude(uint32_t code) const {
    const int field = static_cast<int>(code >> fraction_bits_);
    const double fraction = std::ldexp(code & ((1U << fraction_bits_) - 1), -fraction_bits_);
    return field == 0 ? std::ldexp(fraction, 1 - bias_) : std::ldexp(1 + fraction, field - bias_);
  }

  DType type_;
  int fraction_bits_;
  int bias_;
  Top top_;
  uint32_t nan_;
  uint32_t sign_bit_;
  uint32_t max_finite_ = 0;
  std::vector<double> borders_;
};

inline const std::vector<NarrowFormat>& narrow_formats() {
  static const std::vector<NarrowFormat> formats = {
      {DType::kF4E2M1, 2, 1, 1, Top::kLargest, 0x7},
      {DType::kF8E4M3FN, 4, 3, 7, Top::kNan, 0x7F},
      {DType::kF8E4M3FNUZ, 4, 3, 8, Top::kNoNegativeZero, 0x80},
      {DType::kF8E5M2, 5, 2, 15, Top::kInfinity, 0x7E},
      {DType::kF8E5M2FNUZ, 5, 2, 16, Top::kNoNegativeZero, 0x80},
      {DType::kF16, 5, 10, 15, Top::kInfinity, 0x7E00},
      {DType::kBF16, 8, 7, 127, Top::kInfinity, 0x7FC0},
  };
  return formats;
}

}  // namespace pyc
