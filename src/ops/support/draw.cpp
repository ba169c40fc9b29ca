#include "ops/draw.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace pyc::ops {
namespace {

// What std::shuffle draws with.
struct Bits {
  using result_type = uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() { return draw.bits(); }
  Draw& draw;
};

constexpr int64_t kMaxDrawn = 700;   // elements of a drawn operand
constexpr int64_t kSumBlock = 1024;  // of the canonical sum

}  // namespace

// Not std::uniform_int_distribution, which differs between libraries.
int64_t Draw::pick(int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(bits() % static_cast<uint64_t>(hi - lo + 1));
}

double Draw::real(double lo, double hi) {
  return lo + (hi - lo) * static_cast<double>(bits() >> 11) * 0x1p-53;
}

int64_t Draw::dim(int64_t least) {
  if (least == 0 && chance(25)) return 0;
  static constexpr int64_t kDims[] = {1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33, 67};
  const int64_t n = kDims[pick(0, std::ssize(kDims) - 1)];
  return std::max(n, least);
}

Shape Draw::shape(int64_t min_rank, int64_t max_rank, int64_t least) {
  const int64_t usual = std::min<int64_t>(max_rank, 4);
  const int64_t rank =
      chance(6) ? pick(min_rank, max_rank) : pick(min_rank, std::max(usual, min_rank));
  Shape out;
  if (rank == 1 && chance(10)) return {kSumBlock + pick(1, kSumBlock)};
  int64_t elements = 1;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t n = rank > 5 ? pick(1, 3) : dim(least);
    if (elements * n > kMaxDrawn) n = std::max<int64_t>(least, pick(1, 2));
    elements *= std::max<int64_t>(n, 1);
    out.push_back(n);
  }
  std::shuffle(out.begin(), out.end(), Bits{*this});
  return out;
}

Shape Draw::broadcastable(const Shape& shape) {
  const int64_t drop = flip() ? 0 : pick(0, std::ssize(shape));
  Shape out(shape.begin() + drop, shape.end());
  for (int64_t& n : out) {
    if (chance(4)) n = 1;
  }
  return out;
}

int64_t Draw::axis(int64_t rank) { return pick(-rank, rank - 1); }

Ints Draw::axes(int64_t rank) {
  Ints out;
  for (int64_t i = 0; i < rank; ++i) {
    if (flip()) out.push_back(chance(4) ? i - rank : i);
  }
  return out;
}

Ints Draw::permutation(int64_t rank) {
  Ints out(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) out[static_cast<size_t>(i)] = i;
  for (int64_t i = rank - 1; i > 0; --i) {
    std::swap(out[static_cast<size_t>(i)], out[static_cast<size_t>(pick(0, i))]);
  }
  return out;
}

// Tame ones are those that every numpy has.
DType Draw::float_dtype() {
  if (tame()) return choose({DType::kF32, DType::kF16, DType::kF64});
  return choose({DType::kF32, DType::kF16, DType::kBF16, DType::kF64});
}

DType Draw::any_dtype() {
  const auto t = static_cast<DType>(pick(0, kDTypeCount - 1));
  const bool usual = !is_narrow_int(t) && (!is_narrow_float(t) || t == DType::kF16);
  return usual || !tame() ? t : DType::kF32;
}

ValueId Draw::tensor_in(DType t, const Shape& shape, double lo, double hi) {
  return tame() ? fresh(t, shape, lo, hi) : tensor(t, shape);
}

ValueId Draw::indices(const Shape& shape, int64_t lo, int64_t hi) {
  return fresh(flip() ? DType::kI64 : DType::kI32, shape, static_cast<double>(lo),
               static_cast<double>(hi) + 0.5);
}

}  // namespace pyc::ops
