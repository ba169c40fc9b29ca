// Conversions between element types: one rounding, straight from the source type.

#include <llvm/IR/Intrinsics.h>

#include <cmath>

#include "backends/cpu/llvm/value_ops.h"
#include "base/status.h"

namespace pyc::cpu {

namespace intr = llvm::Intrinsic;

// How a float format of at most 16 bits ends: with infinity and NaNs, with one NaN instead of
// them, with one NaN instead of -0, or with its largest number.
enum class Top : uint8_t { kInfinity, kNan, kNoNegativeZero, kLargest };

struct SmallFloat {
  DType type;
  int exponent_bits;
  int fraction_bits;
  int bias;
  Top top;

  int bits() const { return exponent_bits + fraction_bits; }  // but for the sign
};

namespace {

constexpr SmallFloat kF16{DType::kF16, 5, 10, 15, Top::kInfinity};
constexpr SmallFloat kF8E4M3FN{DType::kF8E4M3FN, 4, 3, 7, Top::kNan};
constexpr SmallFloat kF8E4M3FNUZ{DType::kF8E4M3FNUZ, 4, 3, 8, Top::kNoNegativeZero};
constexpr SmallFloat kF8E5M2{DType::kF8E5M2, 5, 2, 15, Top::kInfinity};
constexpr SmallFloat kF8E5M2FNUZ{DType::kF8E5M2FNUZ, 5, 2, 16, Top::kNoNegativeZero};
constexpr SmallFloat kF4E2M1{DType::kF4E2M1, 2, 1, 1, Top::kLargest};

}  // namespace

llvm::Value* ValueOps::convert(Value* v, DType from, DType to) {
  if (from == to) return v;
  const int width = width_of(v);
  if (to == DType::kBool) {
    if (from == DType::kF32 || from == DType::kF64) return b_.CreateFCmpUNE(v, fp_like(v, 0.0));
    if (from == DType::kF8E8M0) return llvm::Constant::getAllOnesValue(type(to, width));
    const bool negative_zero = from != DType::kF8E4M3FNUZ && from != DType::kF8E5M2FNUZ;
    if (is_float(from) && negative_zero) {
      const uint64_t sign = uint64_t{1} << (dtype_bits(from) - 1);
      v = b_.CreateAnd(v, int_like(v, sign - 1));
    }
    return b_.CreateICmpNE(v, int_like(v, 0));
  }
  if (!is_float(from) && !is_float(to)) {
    const bool sign = is_signed_int(from);
    v = sign ? b_.CreateSExtOrTrunc(v, type(to, width)) : b_.CreateZExtOrTrunc(v, type(to, width));
    return dtype_bits(to) < 8 ? low_bits(v, to) : v;
  }
  if (!is_float(from)) return int_to_float(v, from, to);
  if (is_narrow_float(from)) {
    v = widen_to_f32(v, from);
    from = DType::kF32;
    if (to == DType::kF32) return v;
  }
  if (!is_float(to)) return float_to_int(v, to);
  if (is_narrow_float(to)) {
    return narrow_from_f32(from == DType::kF64 ? f64_to_f32_odd(v) : v, to);
  }
  return to == DType::kF64 ? b_.CreateFPExt(v, type(to, width))
                           : b_.CreateFPTrunc(v, type(to, width));
}

llvm::Value* ValueOps::widen_to_f32(Value* v, DType from) {
  const int width = width_of(v);
  llvm::Type* i32 = with_width(b_.getInt32Ty(), v);
  switch (from) {
    case DType::kBF16:
      return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(v, i32), 16), type(DType::kF32, width));
    case DType::kF4E2M1:
      return small_float_to_f32(v, kF4E2M1);
    case DType::kF8E8M0:
      return e8m0_to_f32(v);
    case DType::kF8E4M3FN:
      return small_float_to_f32(v, kF8E4M3FN);
    case DType::kF8E4M3FNUZ:
      return small_float_to_f32(v, kF8E4M3FNUZ);
    case DType::kF8E5M2FNUZ:
      return small_float_to_f32(v, kF8E5M2FNUZ);
    case DType::kF8E5M2:  // the upper byte of an f16
      v = b_.CreateShl(b_.CreateZExt(v, with_width(b_.getInt16Ty(), v)), 8);
      break;
    default:
      break;
  }
  if (!t_.aarch64 && !t_.f16c) return small_float_to_f32(v, kF16);
  Value* half = b_.CreateBitCast(v, with_width(b_.getHalfTy(), v));
  return b_.CreateFPExt(half, type(DType::kF32, width));
}

// Moves exponent and fraction into place and corrects the exponent's bias. A subnormal is read as
// if it had a leading one, which is then subtracted.
llvm::Value* ValueOps::small_float_to_f32(Value* v, const SmallFloat& f) {
  llvm::Type* f32 = with_width(b_.getFloatTy(), v);
  Value* x = b_.CreateZExt(v, with_width(b_.getInt32Ty(), v));
  const int bits = f.bits();
  const int fraction_bits = f.fraction_bits;
  const int bias = f.bias;
  const uint32_t magnitude_mask = (1u << bits) - 1;
  const uint32_t rebias = static_cast<uint32_t>(127 - bias) << 23;
  Value* magnitude = b_.CreateAnd(x, int_like(x, magnitude_mask));
  Value* sign =
      b_.CreateShl(b_.CreateAnd(x, int_like(x, 1u << bits)), static_cast<uint64_t>(31 - bits));
  Value* shifted = b_.CreateShl(magnitude, static_cast<uint64_t>(23 - fraction_bits));
  Value* normal = b_.CreateAdd(shifted, int_like(x, rebias));
  // 2^(1-bias) is the smallest normal number.
  const uint32_t smallest = rebias + (1u << 23);
  Value* raised = b_.CreateBitCast(b_.CreateAdd(shifted, int_like(x, smallest)), f32);
  Value* tiny = b_.CreateFSub(raised, llvm::ConstantFP::get(f32, std::ldexp(1.0, 1 - bias)));
  Value* is_tiny = b_.CreateICmpULT(magnitude, int_like(x, 1u << fraction_bits));
  Value* r = b_.CreateSelect(is_tiny, b_.CreateBitCast(tiny, x->getType()), normal);
  const uint32_t top = magnitude_mask ^ ((1u << fraction_bits) - 1);  // all exponent bits
  if (f.top == Top::kInfinity) {
    // Infinity and NaN keep their fraction under an exponent of all ones.
    Value* special = b_.CreateOr(shifted, int_like(x, 0x7F800000));
    r = b_.CreateSelect(b_.CreateICmpUGE(magnitude, int_like(x, top)), special, r);
  } else if (f.top == Top::kNan) {
    Value* nan = b_.CreateICmpEQ(magnitude, int_like(x, magnitude_mask));
    r = b_.CreateSelect(nan, int_like(x, 0x7FC00000), r);
  }
  r = b_.CreateOr(r, sign);
  if (f.top == Top::kNoNegativeZero) {
    Value* nan = b_.CreateICmpEQ(x, int_like(x, 1u << bits));
    r = b_.CreateSelect(nan, int_like(x, 0x7FC00000), r);
  }
  return b_.CreateBitCast(r, f32);
}

llvm::Value* ValueOps::e8m0_to_f32(Value* v) {
  Value* x = b_.CreateZExt(v, with_width(b_.getInt32Ty(), v));
  Value* r = b_.CreateShl(x, 23);
  // The smallest one is subnormal in f32.
  r = b_.CreateSelect(b_.CreateICmpEQ(x, int_like(x, 0)), int_like(x, 1u << 22), r);
  r = b_.CreateSelect(b_.CreateICmpEQ(x, int_like(x, 0xFF)), int_like(x, 0x7FC00000), r);
  return b_.CreateBitCast(r, with_width(b_.getFloatTy(), v));
}

llvm::Value* ValueOps::f32_to_e8m0(Value* v) {
  Value* x = b_.CreateBitCast(v, with_width(b_.getInt32Ty(), v));
  Value* up = b_.CreateLShr(b_.CreateAdd(x, int_like(x, (1u << 23) - 1)), 23);
  Value* r = b_.CreateSelect(b_.CreateICmpEQ(x, int_like(x, 1u << 22)), int_like(x, 0), up);
  Value* inside = b_.CreateAnd(b_.CreateFCmpOGE(v, fp_like(v, std::ldexp(1.0, -127))),
                               b_.CreateFCmpOLE(v, fp_like(v, std::ldexp(1.0, 127))));
  r = b_.CreateSelect(inside, r, int_like(x, 0xFF));
  return b_.CreateTrunc(r, type(DType::kF8E8M0, width_of(v)));
}

llvm::Value* ValueOps::narrow_from_f32(Value* v, DType to) {
  const int width = width_of(v);
  if (to == DType::kF16 && (t_.aarch64 || t_.f16c)) {
    Value* half = b_.CreateFPTrunc(v, with_width(b_.getHalfTy(), v));
    return b_.CreateBitCast(half, type(to, width));
  }
  switch (to) {
    case DType::kF4E2M1:
      return f32_to_small_float(v, kF4E2M1);
    case DType::kF8E8M0:
      return f32_to_e8m0(v);
    case DType::kF8E4M3FN:
      return f32_to_small_float(v, kF8E4M3FN);
    case DType::kF8E4M3FNUZ:
      return f32_to_small_float(v, kF8E4M3FNUZ);
    case DType::kF8E5M2:
      return f32_to_small_float(v, kF8E5M2);
    case DType::kF8E5M2FNUZ:
      return f32_to_small_float(v, kF8E5M2FNUZ);
    case DType::kF16:
      return f32_to_small_float(v, kF16);
    default:
      break;
  }
  // bf16: the upper half, rounded; a NaN must not be rounded to infinity.
  Value* x = b_.CreateBitCast(v, with_width(b_.getInt32Ty(), v));
  Value* odd = b_.CreateAnd(b_.CreateLShr(x, 16), int_like(x, 1));
  Value* rounded = b_.CreateAdd(b_.CreateAdd(x, int_like(x, 0x7FFF)), odd);
  Value* r = b_.CreateSelect(b_.CreateFCmpUNO(v, v), int_like(x, 0x7FC00000), rounded);
  return b_.CreateTrunc(b_.CreateLShr(r, 16), type(to, width));
}

llvm::Value* ValueOps::f32_to_small_float(Value* v, const SmallFloat& f) {
  llvm::Type* i32 = with_width(b_.getInt32Ty(), v);
  Value* x = b_.CreateBitCast(v, i32);
  const int bits = f.bits();
  const auto drop = static_cast<uint64_t>(23 - f.fraction_bits);
  const uint32_t rebias = static_cast<uint32_t>(127 - f.bias) << 23;
  Value* magnitude = b_.CreateAnd(x, int_like(x, 0x7FFFFFFF));
  Value* sign =
      b_.CreateAnd(b_.CreateLShr(x, static_cast<uint64_t>(31 - bits)), int_like(x, 1u << bits));
  // Normal results: round the integer of the bits, carries move into the exponent by themselves.
  Value* y = b_.CreateSub(magnitude, int_like(x, rebias));
  Value* odd = b_.CreateAnd(b_.CreateLShr(y, drop), int_like(x, 1));
  y = b_.CreateAdd(b_.CreateAdd(y, int_like(x, (1u << (drop - 1)) - 1)), odd);
  Value* normal = b_.CreateLShr(y, drop);
  // Beyond the largest number: infinity or NaN is the next code, or there is none.
  const uint32_t all_ones = (1u << bits) - 1;
  const uint32_t beyond = f.top == Top::kInfinity ? all_ones >> f.fraction_bits << f.fraction_bits
                          : f.top == Top::kNoNegativeZero ? all_ones + 1
                                                          : all_ones;
  normal = b_.CreateBinaryIntrinsic(intr::umin, normal, int_like(x, beyond));
  // Subnormal results: adding a number whose last place is their quantum rounds them.
  const double magic = std::ldexp(1.0, 1 - f.bias - f.fraction_bits + 23);
  Value* sum = b_.CreateFAdd(b_.CreateBitCast(magnitude, v->getType()), fp_like(v, magic));
  const llvm::Constant* magic_value = fp_like(v, magic);
  Value* magic_bits = b_.CreateBitCast(const_cast<llvm::Constant*>(magic_value), i32);
  Value* tiny = b_.CreateSub(b_.CreateBitCast(sum, i32), magic_bits);
  Value* is_tiny = b_.CreateICmpULT(magnitude, int_like(x, rebias + (1u << 23)));
  Value* r = b_.CreateSelect(is_tiny, tiny, normal);
  const uint32_t nan = f.top == Top::kInfinity ? beyond | (1u << (f.fraction_bits - 1)) : beyond;
  Value* is_nan = b_.CreateFCmpUNO(v, v);
  if (f.top == Top::kNoNegativeZero) {
    Value* none = int_like(x, 0);
    sign = b_.CreateSelect(b_.CreateICmpEQ(r, none), none, sign);
  }
  r = b_.CreateOr(r, sign);
  r = b_.CreateSelect(is_nan, int_like(x, nan), r);
  return b_.CreateTrunc(r, type(f.type, width_of(v)));
}

// Truncates and sets the last bit if anything was lost, so that a second rounding to fewer bits is
// as good as one.
llvm::Value* ValueOps::f64_to_f32_odd(Value* v) {
  llvm::Type* i32 = with_width(b_.getInt32Ty(), v);
  Value* nearest = b_.CreateFPTrunc(v, with_width(b_.getFloatTy(), v));
  Value* back = b_.CreateFPExt(nearest, v->getType());
  Value* up = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(intr::fabs, back),
                               b_.CreateUnaryIntrinsic(intr::fabs, v));
  Value* bits = b_.CreateBitCast(nearest, i32);
  Value* down = b_.CreateSub(bits, b_.CreateZExt(up, i32));
  Value* inexact = b_.CreateZExt(b_.CreateFCmpONE(back, v), i32);
  return b_.CreateBitCast(b_.CreateOr(down, inexact), nearest->getType());
}

llvm::Value* ValueOps::per_lane(Value* v, llvm::Type* to, llvm::Instruction::CastOps op) {
  const int width = width_of(v);
  if (width == 1) return b_.CreateCast(op, v, to);
  Value* r = llvm::PoisonValue::get(llvm::FixedVectorType::get(to, static_cast<unsigned>(width)));
  for (int i = 0; i < width; ++i) {
    const auto lane = static_cast<uint64_t>(i);
    r = b_.CreateInsertElement(r, b_.CreateCast(op, b_.CreateExtractElement(v, lane), to), lane);
  }
  return r;
}

llvm::Value* ValueOps::int_to_float(Value* v, DType from, DType to) {
  const int width = width_of(v);
  const bool sign = is_signed_int(from);
  const int64_t size = dtype_size(from);
  const auto op = sign ? llvm::Instruction::SIToFP : llvm::Instruction::UIToFP;
  if (to == DType::kF64) return b_.CreateCast(op, v, type(to, width));
  if (to == DType::kF32) {
    // LLVM would take vectors of 64-bit integers through f64, rounding twice.
    if (size == 8) return per_lane(v, b_.getFloatTy(), op);
    return b_.CreateCast(op, v, type(to, width));
  }
  if (size <= 2) return narrow_from_f32(b_.CreateCast(op, v, type(DType::kF32, width)), to);
  Value* wide =
      size == 8 ? int64_to_f64_odd(v, sign) : b_.CreateCast(op, v, type(DType::kF64, width));
  return narrow_from_f32(f64_to_f32_odd(wide), to);
}

// Beyond 53 bits the lower 11 are folded into one that says whether any was set.
llvm::Value* ValueOps::int64_to_f64_odd(Value* v, bool is_signed) {
  llvm::Type* f64 = with_width(b_.getDoubleTy(), v);
  const uint64_t limit = uint64_t{1} << 53;
  Value* low = b_.CreateAnd(v, int_like(v, 0x7FF));
  Value* sticky = b_.CreateZExt(b_.CreateICmpNE(low, int_like(v, 0)), v->getType());
  Value* high = is_signed ? b_.CreateAShr(v, 11) : b_.CreateLShr(v, 11);
  Value* folded = b_.CreateShl(b_.CreateOr(high, sticky), 11);
  Value* small = is_signed
                     ? b_.CreateICmpULT(b_.CreateAdd(v, int_like(v, limit)), int_like(v, 2 * limit))
                     : b_.CreateICmpULT(v, int_like(v, limit));
  Value* exact = b_.CreateSelect(small, v, folded);
  return is_signed ? b_.CreateSIToFP(exact, f64) : b_.CreateUIToFP(exact, f64);
}

// Truncates, saturates, NaN gives 0. v is f32 or f64.
llvm::Value* ValueOps::float_to_int(Value* v, DType to) {
  const int width = width_of(v);
  const bool sign = is_signed_int(to);
  const auto bits = static_cast<int>(dtype_bits(to));
  const bool f64 = v->getType()->getScalarType()->isDoubleTy();
  if (bits < 32) {
    const DType middle = DType::kI32;
    const auto low = static_cast<uint64_t>(sign ? -(int64_t{1} << (bits - 1)) : 0);
    const uint64_t high = (uint64_t{1} << (sign ? bits - 1 : bits)) - 1;
    Value* r = float_to_int(v, middle);
    r = b_.CreateBinaryIntrinsic(intr::smax, r, llvm::ConstantInt::get(r->getType(), low, true));
    r = b_.CreateBinaryIntrinsic(intr::smin, r, int_like(r, high));
    return b_.CreateTrunc(r, type(to, width));
  }
  if (t_.aarch64) {
    if (bits == 64 && !f64) v = b_.CreateFPExt(v, type(DType::kF64, width));
    return b_.CreateIntrinsic(sign ? intr::fptosi_sat : intr::fptoui_sat,
                              {type(to, width), v->getType()}, {v});
  }
  llvm::Type* result = type(to, width);
  const double beyond = std::ldexp(1.0, sign ? bits - 1 : bits);
  const double lowest = sign ? -beyond : 0.0;
  Value* too_high = b_.CreateFCmpOGE(v, fp_like(v, beyond));
  Value* low_enough = b_.CreateFCmpOLT(v, fp_like(v, beyond));
  Value* high_enough = b_.CreateFCmpOGE(v, fp_like(v, lowest));
  Value* fits = b_.CreateAnd(low_enough, high_enough);
  Value* safe = b_.CreateSelect(fits, v, fp_like(v, 0.0));
  Value* r = sign ? b_.CreateFPToSI(safe, result) : b_.CreateFPToUI(safe, result);
  const llvm::APInt max = sign ? llvm::APInt::getSignedMaxValue(static_cast<unsigned>(bits))
                               : llvm::APInt::getMaxValue(static_cast<unsigned>(bits));
  r = b_.CreateSelect(too_high, llvm::ConstantInt::get(result, max), r);
  if (!sign) return r;
  const llvm::APInt min = llvm::APInt::getSignedMinValue(static_cast<unsigned>(bits));
  Value* too_low = b_.CreateFCmpOLT(v, fp_like(v, lowest));
  return b_.CreateSelect(too_low, llvm::ConstantInt::get(result, min), r);
}

}  // namespace pyc::cpu
