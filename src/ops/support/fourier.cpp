#include "ops/support/fourier.h"

#include <cstddef>
#include <numbers>

namespace pyc::ops {
namespace {

struct Point {
  double cos;
  double sin;
};

// Taylor's series for an angle in [0, π/4].
Point small_angle(double x) {
  constexpr int kTerms = 20;
  const double square = x * x;
  double sin = 0.0;
  double cos = 0.0;
  for (int n = kTerms; n > 0; n -= 2) {
    cos = square / static_cast<double>(n * (n - 1)) * (1.0 - cos);
    sin = square / static_cast<double>((n + 1) * n) * (1.0 - sin);
  }
  return {1.0 - cos, x * (1.0 - sin)};
}

// The point of the unit circle at j/n of a turn, 0 <= j < n. Quarters of a turn are exact.
Point on_circle(int64_t j, int64_t n) {
  if (2 * j > n) {
    const Point p = on_circle(n - j, n);
    return {p.cos, -p.sin};
  }
  if (4 * j > n) {
    // π - angle, as (n - 2j)/2n of a turn.
    const Point p = on_circle(n - 2 * j, 2 * n);
    return {-p.cos, p.sin};
  }
  if (8 * j > n) {
    // π/2 - angle, as (n - 4j)/4n of a turn.
    const Point p = on_circle(n - 4 * j, 4 * n);
    return {p.sin, p.cos};
  }
  return small_angle(2.0 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n));
}

}  // namespace

std::vector<double> transform_matrix(const Transform& t) {
  std::vector<Point> circle;
  for (int64_t j = 0; j < t.length; ++j) circle.push_back(on_circle(j, t.length));
  std::vector<double> matrix;
  matrix.reserve(static_cast<size_t>(t.points * t.in_parts * t.out_points * t.out_parts));
  for (int64_t i = 0; i < t.points; ++i) {
    const bool twice = t.mirrored && i > 0 && 2 * i < t.length;
    for (int64_t in = 0; in < t.in_parts; ++in) {
      for (int64_t o = 0; o < t.out_points; ++o) {
        Point p = circle[static_cast<size_t>(i * o % t.length)];
        if (!t.inverse) p.sin = -p.sin;
        if (twice) p = {2.0 * p.cos, 2.0 * p.sin};
        // (re + j·im)·(cos + j·sin)
        matrix.push_back(in == 0 ? p.cos : -p.sin);
        if (t.out_parts == 2) matrix.push_back(in == 0 ? p.sin : p.cos);
      }
    }
  }
  return matrix;
}

}  // namespace pyc::ops
