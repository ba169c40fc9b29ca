#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "base/matrix_unit.h"

namespace probe {

// A guess about one instruction's arithmetic: everything in which units are known or imagined to
// differ. The defaults are the row sm90 as src/base/matrix_unit.h has it; the two share no code.
struct Hypothesis {
  enum Align : uint8_t { kTruncate, kFloor, kNearest };
  enum Zero : uint8_t { kPlus, kAllMinus, kSignOfTiny };
  enum Accumulator : uint8_t { kAligned, kAddedNearest, kAddedTruncated };
  static constexpr int kNoFloor = std::numeric_limits<int>::min();

  int block = 16;            // products summed at once; an instruction may have several blocks
  bool interleaved = false;  // two blocks: products whose number has bit 1 clear, then the others
  int fraction = 25;         // places kept below the largest exponent
  int result_fraction = 23;  // places of the result
  Align align = kTruncate;
  Align final = kTruncate;
  bool normalised = false;  // a product's exponent is that of its value
  Accumulator accumulator = kAligned;
  int exponent_floor = -133;         // the largest exponent is at least this
  bool zero_products_count = false;  // the exponent of a zero product counts
  bool flush_factors = false;        // subnormal factors are zeros
  bool flush_accumulator = false;
  bool flush_result = false;
  bool saturate = false;                  // past the largest finite number: that number
  bool wide_product_is_infinite = false;  // a product of 2^128 or more is an infinity
  bool infinity_is_nan = false;
  Zero zero = kPlus;
  uint32_t nan_bits = 0x7FFFFFFF;

  // The accumulator after one instruction over all the products given.
  float add(float acc, std::span<const pyc::Factor> a, std::span<const pyc::Factor> b) const;
  std::string text() const;

 private:
  float add_block(float acc, std::span<const pyc::Factor> a, std::span<const pyc::Factor> b) const;
};

}  // namespace probe
