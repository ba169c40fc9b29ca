#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace pyc {

// The arithmetic of matrix units, computed exactly: what a unit adds to an f32 accumulator in one
// instruction, and the named order of a whole sum of products made of it. A device's results can so
// be checked bit by bit on machines without the unit.
//
// A named order. The numbers k = 0 … n−1 of a sum of products are cut into segments of S and each
// segment into blocks of B, ascending; what is missing in the last block is +0 on both sides.
//   for each segment:  acc = +0;  for each of its blocks: acc = block(acc, a, b);
//   total = +0;  total = total + acc for each segment, the first included (one f32 addition each).
// n = 0 gives +0.
//
// An aligned block (AlignedBlock below), in integers. sm90: bf16 and f16 have B = 16, F = 25, R =
// 23; the fp8 types, one or both of them in a product, have B = 32, F = 13, R = 13, so that their
// sums keep 14 significant bits.
//   1. The exponent of a number is that of its format's fields: floor(log2 |x|) of a normal number,
//      the format's least exponent for a subnormal (f32 and bf16: −126, f16: −14).
//      The exponent of a product is the sum of its factors' exponents; it is not normalised.
//   2. E = the largest exponent among the products that are not zero and the accumulator if that
//      is not zero, but at least least_exponent (sm90: −133, which only products of bf16 with a
//      zero accumulator can reach). If there is none, the result is a zero (decision zero_result).
//   3. Every product, exact, and the accumulator become integer multiples of 2^(E−F), truncated
//      toward zero one by one.
//   4. The integers are added, exactly. So the order inside a block does not matter.
//   5. The sum times 2^(E−F) is truncated toward zero to R fraction bits (23: f32), below 2^-126 to
//      a multiple of 2^(−126−R) (decision subnormal_result); past the largest finite number
//      decision overflow says what comes; a zero sum is +0.
//   6. If a factor or the accumulator is not finite, decision infinities and nan_bits say what
//      comes.
//
// The decisions are separate fields so that each can be read off a device by
// itself (bench/cuda_probe). Another unit is one more row of matrix_units().

// The fields of a format of factors.
struct FactorFormat {
  int fraction_bits;
  int exponent_bits;
  bool has_infinity;  // else only the all-ones pattern is a NaN (f8e4m3fn)
};
// Of f16, bf16, f8e4m3fn or f8e5m2.
FactorFormat factor_format(DType type);

// One operand of a product, taken apart: ± significand · 2^(exponent − 10). All formats of at most
// 11 significant bits fit.
struct Factor {
  enum class Kind : uint8_t { kFinite, kInfinity, kNaN };
  static constexpr int kFractionBits = 10;

  int16_t exponent = 0;
  uint16_t significand = 0;
  bool negative = false;
  Kind kind = Kind::kFinite;

  // `bits` of an f16, bf16, f8e4m3fn or f8e5m2; other types are not allowed.
  static Factor from_bits(DType type, uint16_t bits);
};

// What an aligned block does where the integers end.
struct AlignedBlock {
  // infinity: ±inf. largest: the largest finite number with R fraction bits, as truncation says.
  enum class Overflow : uint8_t { kInfinity, kLargest };
  // keep: gradual underflow. flush: a result below 2^-126 is a zero.
  enum class SubnormalResult : uint8_t { kKeep, kFlush };
  // plus: +0. all_minus: −0 if every product and the accumulator are −0.
  enum class ZeroResult : uint8_t { kPlus, kAllMinus };
  // ieee: a NaN among the factors or in the accumulator, 0·inf and inf−inf give nan_bits, other
  // infinities the infinity. nan: any infinity gives nan_bits.
  enum class Infinities : uint8_t { kIeee, kNaN };

  int fraction_bits = 25;         // F
  int result_fraction_bits = 23;  // R
  int least_exponent = -133;
  Overflow overflow = Overflow::kInfinity;
  SubnormalResult subnormal_result = SubnormalResult::kKeep;
  ZeroResult zero_result = ZeroResult::kPlus;
  Infinities infinities = Infinities::kIeee;
  uint32_t nan_bits = 0x7FFFFFFF;

  // `a` and `b` have one length, at most 64.
  float add(float acc, std::span<const Factor> a, std::span<const Factor> b) const;
};

// The block of NVIDIA's sm_90 for bf16 and f16 (wgmma of any n, mma.sync.m16n8k16).
inline constexpr AlignedBlock kSm90Block = {};
// Its block for fp8 (wgmma alone): 32 products.
inline constexpr AlignedBlock kSm90Fp8Block = {.fraction_bits = 13, .result_fraction_bits = 13};

// acc plus 16 products, as kSm90Block does it.
float sm90_block(float acc, std::span<const Factor, 16> a, std::span<const Factor, 16> b);

// One row of the table of named orders. A device kind may have several, each for its own types.
struct MatrixUnit {
  std::string_view name;  // of the device kind
  int block;              // B
  int segment;            // S, a multiple of B
  std::span<const DType> dtypes;
  AlignedBlock arithmetic;

  // acc plus one block of products.
  float add_block(float acc, std::span<const Factor> a, std::span<const Factor> b) const {
    return arithmetic.add(acc, a, b);
  }

  bool covers(DType type) const;
};

std::span<const MatrixUnit> matrix_units();
// The row of device kind `name` that covers `type`, or nothing.
std::optional<MatrixUnit> find_matrix_unit(std::string_view name, DType type);
// The names of all device kinds with a row, each once.
std::vector<std::string_view> matrix_unit_names();

// The sum of a[k]·b[k] in the unit's named order. `a` and `b` have one length.
float named_order_sum(const MatrixUnit& unit, std::span<const Factor> a, std::span<const Factor> b);

}  // namespace pyc
