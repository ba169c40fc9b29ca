#include "hypothesis.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace probe {
namespace {

using pyc::Factor;

constexpr size_t kMost = 64;

// value · 2^shift by the mode.
int64_t shifted(int64_t value, int shift, Hypothesis::Align mode) {
  if (shift >= 0) return value * (int64_t{1} << std::min(shift, 40));
  const int down = -shift;
  if (down > 62) return mode == Hypothesis::kFloor && value < 0 ? -1 : 0;
  const int64_t unit = int64_t{1} << down;
  int64_t quotient = value / unit;
  const int64_t rest = value - quotient * unit;
  if (mode == Hypothesis::kFloor && rest < 0) --quotient;
  if (mode == Hypothesis::kNearest) {
    const int64_t twice = 2 * (rest < 0 ? -rest : rest);
    if (twice > unit || (twice == unit && (quotient & 1) != 0)) quotient += value < 0 ? -1 : 1;
  }
  return quotient;
}

// Rounds a double to `fraction` places of an f32.
float rounded(double x, int fraction, Hypothesis::Align mode) {
  if (x == 0) return 0.0F;
  const int exponent = std::max(std::ilogb(x), -126);
  const double scaled = std::ldexp(x, fraction - exponent);
  double whole = std::trunc(scaled);
  if (mode == Hypothesis::kFloor) whole = std::floor(scaled);
  if (mode == Hypothesis::kNearest) whole = std::nearbyint(scaled);
  const double value = std::ldexp(whole, exponent - fraction);
  if (std::fabs(value) >= 0x1p128) return static_cast<float>(std::copysign(INFINITY, x));
  return static_cast<float>(value);
}

float nan_of(const Hypothesis& h) { return std::bit_cast<float>(h.nan_bits); }

}  // namespace

float Hypothesis::add_block(float acc, std::span<const Factor> a, std::span<const Factor> b) const {
  if (flush_accumulator && std::fpclassify(acc) == FP_SUBNORMAL) acc = std::copysign(0.0F, acc);
  bool nan = std::isnan(acc);
  bool plus = std::isinf(acc) && acc > 0;
  bool minus = std::isinf(acc) && acc < 0;
  bool all_minus = std::signbit(acc);
  std::array<int64_t, kMost> value{};
  std::array<int, kMost> exponent{};
  int largest = kNoFloor;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool negative = a[i].negative != b[i].negative;
    const bool infinite =
        a[i].kind == Factor::Kind::kInfinity || b[i].kind == Factor::Kind::kInfinity;
    auto significand = [&](const Factor& f) -> int64_t {
      if (f.kind != Factor::Kind::kFinite) return 1;
      return flush_factors && f.significand < 1024 ? 0 : f.significand;
    };
    value[i] = significand(a[i]) * significand(b[i]);
    exponent[i] = a[i].exponent + b[i].exponent;
    all_minus = all_minus && negative;
    if (a[i].kind == Factor::Kind::kNaN || b[i].kind == Factor::Kind::kNaN ||
        (infinite && value[i] == 0))
      nan = true;
    else if (infinite)
      (negative ? minus : plus) = true;
    if (infinite) value[i] = 0;
    if (wide_product_is_infinite &&
        std::ldexp(static_cast<double>(value[i]), exponent[i] - 20) >= 0x1p128)
      (negative ? minus : plus) = true;
    if (value[i] != 0 || zero_products_count) {
      const int top = std::bit_width(static_cast<uint64_t>(value[i])) - 1 - 20;
      largest = std::max(largest, normalised && value[i] != 0 ? exponent[i] + top : exponent[i]);
    }
    if (negative) value[i] = -value[i];
  }
  if (nan || (plus && minus) || ((plus || minus) && infinity_is_nan)) return nan_of(*this);
  if (plus || minus) return plus ? INFINITY : -INFINITY;

  int acc_exponent = acc == 0 ? -126 : std::max(std::ilogb(acc), -126);
  const bool inside = accumulator == kAligned;
  if (inside && acc != 0) largest = std::max(largest, acc_exponent);
  int64_t sum = 0;
  if (largest != kNoFloor) {
    if (exponent_floor != kNoFloor) largest = std::max(largest, exponent_floor);
    for (size_t i = 0; i < a.size(); ++i)
      sum += shifted(value[i], exponent[i] - 20 - largest + fraction, align);
    if (inside && acc != 0)
      sum += shifted(static_cast<int64_t>(std::ldexp(acc, 23 - acc_exponent)),
                     acc_exponent - 23 - largest + fraction, align);
  }
  const double exact =
      largest == kNoFloor ? 0 : std::ldexp(static_cast<double>(sum), largest - fraction);
  float result = rounded(exact, result_fraction, final);
  if (std::isinf(result) && saturate) {
    const uint32_t dropped = (1U << (23 - result_fraction)) - 1;
    result = std::copysign(std::bit_cast<float>(0x7F7FFFFF & ~dropped), result);
  }
  if (!inside) {
    const double joined = static_cast<double>(result) + acc;
    result = rounded(joined, result_fraction, accumulator == kAddedNearest ? kNearest : kTruncate);
  }
  if (flush_result && std::fpclassify(result) == FP_SUBNORMAL) result = 0.0F;
  if (result == 0) {
    if (zero == kAllMinus) return all_minus ? -0.0F : 0.0F;
    if (zero == kSignOfTiny) {
      double real = acc;
      for (size_t i = 0; i < a.size(); ++i)
        real += std::ldexp(static_cast<double>(value[i]), exponent[i] - 20);
      return real < 0 ? -0.0F : 0.0F;
    }
    return 0.0F;
  }
  return result;
}

float Hypothesis::add(float acc, std::span<const Factor> a, std::span<const Factor> b) const {
  if (interleaved) {
    for (size_t part = 0; part < 2; ++part) {
      std::array<Factor, kMost> x;
      std::array<Factor, kMost> y;
      size_t count = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        if ((i >> 1 & 1) != part) continue;
        x[count] = a[i];
        y[count++] = b[i];
      }
      acc = add_block(acc, std::span(x).first(count), std::span(y).first(count));
    }
    return acc;
  }
  const auto step = static_cast<size_t>(block);
  for (size_t i = 0; i < a.size(); i += step) {
    const size_t count = std::min(step, a.size() - i);
    acc = add_block(acc, a.subspan(i, count), b.subspan(i, count));
  }
  return acc;
}

std::string Hypothesis::text() const {
  const char* modes[] = {"truncate", "floor", "nearest"};
  const char* places[] = {"aligned", "added, nearest", "added, truncated"};
  std::string s = "F=" + std::to_string(fraction) + " R=" + std::to_string(result_fraction) +
                  " block=" + (interleaved ? "interleaved halves" : std::to_string(block)) +
                  " align=" + modes[align] + " result=" + modes[final] +
                  " exponent=" + (normalised ? "normalised" : "sum") +
                  " accumulator=" + places[accumulator];
  if (exponent_floor != kNoFloor) s += " floor=" + std::to_string(exponent_floor);
  if (zero_products_count) s += " zero_products_count";
  if (flush_factors) s += " flush_factors";
  if (flush_accumulator) s += " flush_accumulator";
  if (flush_result) s += " flush_result";
  if (saturate) s += " saturate";
  if (wide_product_is_infinite) s += " wide_product_is_infinite";
  if (infinity_is_nan) s += " infinity_is_nan";
  if (zero == kAllMinus) s += " zero=all_minus";
  if (zero == kSignOfTiny) s += " zero=sign_of_tiny";
  return s;
}

}  // namespace probe
