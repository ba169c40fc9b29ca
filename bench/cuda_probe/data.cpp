#include "data.h"

#include <cmath>
#include <cstring>

#include "base/convert.h"
#include "support.h"

namespace probe {
namespace {

using Random = std::mt19937_64;

struct Shape {
  int fraction;
  int least;  // exponent
  int most;
  uint16_t largest;  // finite pattern
};

Shape shape_of(pyc::DType type) {
  switch (type) {
    case pyc::DType::kF16:
      return {10, -14, 15, 0x7BFF};
    case pyc::DType::kF8E4M3FN:
      return {3, -6, 8, 0x7E};
    case pyc::DType::kF8E5M2:
      return {2, -14, 15, 0x7B};
    default:
      return {7, -126, 127, 0x7F7F};
  }
}

int between(Random& random, int low, int high) {
  return low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1));
}

double with_exponent(Random& random, int exponent) {
  const double significand = 1 + std::ldexp(static_cast<double>(random() >> 12), -52);
  return std::ldexp(random() % 2 != 0 ? -significand : significand, exponent);
}

// One operand. `second`: it belongs to B.
double value(pyc::DType type, Kind kind, bool second, Random& random) {
  const Shape shape = shape_of(type);
  const bool bf16 = type == pyc::DType::kBF16;
  switch (kind) {
    case Kind::kWide:
      return with_exponent(
          random, bf16 ? between(random, -40, 40) : between(random, shape.least, shape.most));
    case Kind::kMixed: {
      const int far = bf16 ? 20 : (shape.most - shape.least) / 2 - 2;
      const int centre = (between(random, 0, 2) - 1) * far;
      return with_exponent(random,
                           std::clamp(centre + between(random, -2, 2), shape.least, shape.most));
    }
    case Kind::kSubnormal:
      if (second)
        return with_exponent(random,
                             bf16 ? between(random, 100, 127) : between(random, -4, shape.most));
      return with_exponent(random, between(random, shape.least - shape.fraction, shape.least + 3));
    case Kind::kBottom:
      return with_exponent(random,
                           bf16 ? between(random, -82, -58)
                                : between(random, shape.least - shape.fraction, shape.least));
    case Kind::kFloor:  // products of bf16 around the least E
      return with_exponent(random,
                           bf16 ? between(random, -80, -66)
                                : between(random, shape.least - shape.fraction, shape.least));
    case Kind::kTop:
      return with_exponent(
          random, bf16 ? between(random, 58, 64) : between(random, shape.most - 3, shape.most));
    case Kind::kSparse:
      if (random() % 10 < 8) return random() % 2 != 0 ? -0.0 : 0.0;
      return with_exponent(random, between(random, -6, 6));
    case Kind::kEdges: {
      const double patterns[] = {1.0, 2.0 - std::ldexp(1.0, -shape.fraction),
                                 1.0 + std::ldexp(1.0, -shape.fraction), 1.5};
      const double x = std::ldexp(patterns[random() % 4], between(random, -7, 7));
      return random() % 2 != 0 ? -x : x;
    }
    default:
      return std::normal_distribution<double>()(random);
  }
}

uint16_t any_bits(pyc::DType type, Random& random) {
  const Shape shape = shape_of(type);
  const auto sign = static_cast<uint16_t>((random() & 1) << (pyc::dtype_bits(type) - 1));
  return static_cast<uint16_t>(random() % (shape.largest + 1U)) | sign;
}

void put(uint8_t* row, size_t size, size_t i, uint16_t bits) {
  std::memcpy(row + i * size, &bits, size);
}

// Fills one row; cancelling rows have pairs whose products are opposite up to a last place.
void fill_row(uint8_t* row, size_t count, pyc::DType type, Kind kind, bool second, Random& random) {
  const auto size = static_cast<size_t>(pyc::dtype_size(type));
  const auto sign = static_cast<uint16_t>(1U << (pyc::dtype_bits(type) - 1));
  uint16_t before = 0;
  for (size_t i = 0; i < count; ++i) {
    uint16_t bits = kind == Kind::kAnyBits ? any_bits(type, random)
                                           : operand_bits(type, value(type, kind, second, random));
    if (kind == Kind::kCancel && i % 2 == 1) {
      bits = before;
      if (second) bits = static_cast<uint16_t>((bits ^ sign) ^ (random() % 8 == 0 ? 1 : 0));
    }
    put(row, size, i, bits);
    before = bits;
  }
}

// An accumulator for a sum of products near `dot` whose largest product is near 2^top.
float accumulator(Kind kind, double dot, int top, Random& random) {
  const uint64_t choice = random() % 16;
  if (choice == 0 || kind == Kind::kFloor) return random() % 2 != 0 ? -0.0F : 0.0F;
  if (kind == Kind::kAnyBits || (kind != Kind::kTop && choice == 1)) {
    const auto bits = static_cast<uint32_t>(random());
    const float x = from_bits(bits);
    return std::isfinite(x) ? x : 1.0F;
  }
  if (kind == Kind::kBottom && choice < 8)
    return from_bits(static_cast<uint32_t>(random()) & 0x80FFFFFF);
  if (kind == Kind::kCancel || choice < 6) {
    const auto near = static_cast<float>(-dot);
    if (!std::isfinite(near) || near == 0) return 0.0F;
    return choice < 4 ? near : from_bits(bits_of(near) ^ static_cast<uint32_t>(random() & 15));
  }
  const int exponent = std::clamp(top + between(random, -30, 30), -140, 127);
  const auto x = static_cast<float>(with_exponent(random, exponent));
  return std::isfinite(x) ? x : 1.0F;
}

}  // namespace

const char* kind_name(Kind kind) {
  const char* names[] = {"normal", "wide", "cancel", "mixed", "subnormal", "bottom",
                         "top",    "bits", "sparse", "edges", "floor"};
  return names[static_cast<int>(kind)];
}

bool reaches_range_ends(Kind kind) {
  return kind == Kind::kBottom || kind == Kind::kTop || kind == Kind::kAnyBits ||
         kind == Kind::kFloor;
}

uint16_t operand_bits(pyc::DType type, double x) {
  const Shape shape = shape_of(type);
  const auto sign = static_cast<uint16_t>(1U << (pyc::dtype_bits(type) - 1));
  const auto bits = static_cast<uint16_t>(pyc::word_from_double(x, type));
  if ((bits & (sign - 1)) <= shape.largest) return bits;
  return static_cast<uint16_t>(shape.largest | (std::signbit(x) ? sign : 0));
}

Tiles random_tiles(Format format, Kind kind, int tiles, int steps, bool accumulators,
                   uint64_t seed) {
  Tiles t;
  t.format = format;
  t.tiles = tiles;
  t.steps = steps;
  const size_t bytes = t.row_bytes();
  const size_t count = bytes / static_cast<size_t>(pyc::dtype_size(a_type(format)));
  t.a.resize(static_cast<size_t>(tiles) * kRows * bytes);
  t.b.resize(static_cast<size_t>(tiles) * kColumns * bytes);
  if (accumulators) t.c.resize(t.results());
  parallel(static_cast<size_t>(tiles), [&](size_t begin, size_t end) {
    for (size_t tile = begin; tile < end; ++tile) {
      Random random(seed * 1000003 + tile);
      std::vector<std::vector<pyc::Factor>> a;
      std::vector<std::vector<pyc::Factor>> b;
      for (size_t i = 0; i < kRows; ++i) {
        uint8_t* row = &t.a[(tile * kRows + i) * bytes];
        fill_row(row, count, a_type(format), kind, false, random);
        a.push_back(factors(a_type(format), row, bytes));
      }
      for (size_t j = 0; j < kColumns; ++j) {
        uint8_t* row = &t.b[(tile * kColumns + j) * bytes];
        fill_row(row, count, b_type(format), kind, true, random);
        b.push_back(factors(b_type(format), row, bytes));
      }
      if (!accumulators) continue;
      for (size_t i = 0; i < kRows; ++i)
        for (size_t j = 0; j < kColumns; ++j) {
          double dot = 0;
          int top = -300;
          for (size_t k = 0; k < count; ++k) {
            const pyc::Factor& x = a[i][k];
            const pyc::Factor& y = b[j][k];
            const double product = std::ldexp(static_cast<double>(x.significand) * y.significand,
                                              x.exponent + y.exponent - 20);
            if (product == 0) continue;
            dot += x.negative != y.negative ? -product : product;
            top = std::max(top, x.exponent + y.exponent);
          }
          t.c[(tile * kRows + i) * kColumns + j] = accumulator(kind, dot, top, random);
        }
    }
  });
  return t;
}

}  // namespace probe
