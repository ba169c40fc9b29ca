#pragma once

// Quantizing by a constant: round_even(x / scale) within [least, most], without a division and
// without conversions, which share two of four pipes with it on Neoverse cores.
//
// x is brought within the bounds first, so that nothing overflows. x·high + x·low, where high + low
// is the reciprocal to 48 bits, differs from x / scale by less than 2^-22 of a unit in the last
// place before it is rounded. Whether that changes an integer is decided by the few x whose
// quotients lie next to halves, and these are tried when the code is made. Added to kRounder the
// quotient is rounded to an even integer, which then stands in the lowest bits.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

namespace pyc::cpu {

struct QuantizeBy {
  static constexpr float kRounder = 0x1.8p23F;
  static constexpr int32_t kFurthest = 1 << 16;  // from 0, of bounds

  float least = 0.0F;  // of x
  float most = 0.0F;
  float high = 0.0F;
  float low = 0.0F;

  // What the code computes, for an x that is a number.
  int32_t operator()(float x) const {
    x = x > least ? x : least;
    x = x < most ? x : most;
    const float rounded = std::fma(x, high, x * low) + kRounder;
    return std::bit_cast<int32_t>(rounded) - std::bit_cast<int32_t>(kRounder);
  }
};

// nullopt where the integers would not be those of the division.
inline std::optional<QuantizeBy> quantize_by(float scale, int32_t least, int32_t most) {
  constexpr float kSmallest = 0x1p-60F;
  constexpr int kNeighbours = 4;  // at least two units of the quotient to each side
  if (!(scale >= kSmallest && scale <= 1.0F / kSmallest)) return std::nullopt;
  if (least > most || least < -QuantizeBy::kFurthest || most > QuantizeBy::kFurthest)
    return std::nullopt;
  QuantizeBy q;
  q.least = static_cast<float>(least) * scale;
  q.most = static_cast<float>(most) * scale;
  q.high = 1.0F / scale;
  q.low = static_cast<float>(std::fma(-static_cast<double>(q.high), scale, 1.0) / scale);
  const auto is_right = [&](float x) {
    const auto wanted = static_cast<int32_t>(std::nearbyint(x / scale));
    return q(x) == std::min(std::max(wanted, least), most);
  };
  if (!is_right(q.least) || !is_right(q.most)) return std::nullopt;
  for (int32_t i = least; i < most; ++i) {
    auto x = static_cast<float>((i + 0.5) * scale);
    for (int j = 0; j < kNeighbours; ++j) x = std::nextafter(x, -INFINITY);
    for (int j = -kNeighbours; j <= kNeighbours; ++j) {
      if (!is_right(x)) return std::nullopt;
      x = std::nextafter(x, INFINITY);
    }
  }
  return q;
}

}  // namespace pyc::cpu
