#include "backends/cpu/llvm/value_ops.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/status.h"

namespace pyc::cpu {

using llvm::Intrinsic::ID;
using loop::Op;
namespace intr = llvm::Intrinsic;

int ValueOps::width_of(const Value* v) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector == nullptr ? 1 : static_cast<int>(vector->getNumElements());
}

namespace {

// Operand of AVX-512 intrinsics.
constexpr uint32_t kCurrentRounding = 4;

llvm::Type* wide(llvm::Type* scalar, int width) {
  return width == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(width));
}

}  // namespace

llvm::Type* ValueOps::type(DType t, int width) const {
  if (t == DType::kF32) return wide(b_.getFloatTy(), width);
  if (t == DType::kF64) return wide(b_.getDoubleTy(), width);
  if (t == DType::kBool) return wide(b_.getInt1Ty(), width);
  return wide(b_.getIntNTy(static_cast<unsigned>(dtype_size(t) * 8)), width);
}

llvm::Type* ValueOps::memory_type(DType t, int width) const {
  return t == DType::kBool ? wide(b_.getInt8Ty(), width) : type(t, width);
}

llvm::Constant* ValueOps::constant(DType t, Word word, int width) const {
  llvm::Type* scalar = type(t, 1);
  llvm::Constant* c = nullptr;
  if (scalar->isFloatingPointTy()) {
    const unsigned bits = scalar->getPrimitiveSizeInBits();
    const llvm::APInt pattern(64, word);
    c = llvm::ConstantFP::get(b_.getContext(),
                              llvm::APFloat(scalar->getFltSemantics(), pattern.trunc(bits)));
  } else {
    const llvm::APInt value(64, t == DType::kBool ? (word != 0 ? 1 : 0) : word);
    c = llvm::ConstantInt::get(b_.getContext(), value.trunc(scalar->getIntegerBitWidth()));
  }
  return width == 1 ? c
                    : llvm::ConstantVector::getSplat(
                          llvm::ElementCount::getFixed(static_cast<unsigned>(width)), c);
}

llvm::Constant* ValueOps::int_like(const Value* like, uint64_t v) const {
  return llvm::ConstantInt::get(like->getType(), v);
}

llvm::Constant* ValueOps::fp_like(const Value* like, double v) const {
  return llvm::ConstantFP::get(like->getType(), v);
}

llvm::Type* ValueOps::with_width(llvm::Type* scalar, const Value* like) const {
  return wide(scalar, width_of(like));
}

llvm::Value* ValueOps::to_memory(Value* v, DType t) {
  if (t != DType::kBool) return v;
  return b_.CreateZExt(v, with_width(b_.getInt8Ty(), v));
}

llvm::Value* ValueOps::low_bits(Value* v, DType t) {
  const auto bits = static_cast<uint64_t>(dtype_bits(t));
  if (!is_signed_int(t)) return b_.CreateAnd(v, int_like(v, (uint64_t{1} << bits) - 1));
  return b_.CreateAShr(b_.CreateShl(v, 8 - bits), 8 - bits);
}

llvm::Value* ValueOps::from_memory(Value* v, DType t) {
  if (dtype_bits(t) < 8) return low_bits(v, t);
  if (t != DType::kBool) return v;
  return b_.CreateICmpNE(v, int_like(v, 0));
}

llvm::Value* ValueOps::splat(Value* v, int width) {
  if (width == 1) return v;
  if (auto* c = llvm::dyn_cast<llvm::Constant>(v)) {
    return llvm::ConstantVector::getSplat(
        llvm::ElementCount::getFixed(static_cast<unsigned>(width)), c);
  }
  return b_.CreateVectorSplat(static_cast<unsigned>(width), v);
}

llvm::Value* ValueOps::iota(Value* base, int64_t step, int width) {
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < width; ++i) {
    steps.push_back(llvm::ConstantInt::get(base->getType(), static_cast<uint64_t>(step * i)));
  }
  return b_.CreateAdd(splat(base, width), llvm::ConstantVector::get(steps));
}

llvm::Value* ValueOps::iota(Value* base, Value* step, int width) {
  Value* steps = iota(llvm::ConstantInt::get(base->getType(), 0), 1, width);
  return b_.CreateAdd(splat(base, width), b_.CreateMul(splat(step, width), steps));
}

llvm::Value* ValueOps::slice(Value* v, int begin, int count) {
  if (count == 1) return b_.CreateExtractElement(v, static_cast<uint64_t>(begin));
  std::vector<int> mask(static_cast<size_t>(count));
  std::iota(mask.begin(), mask.end(), begin);
  return b_.CreateShuffleVector(v, mask);
}

llvm::Value* ValueOps::pad(Value* v, int count) {
  if (width_of(v) == 1) {
    llvm::Type* type = llvm::FixedVectorType::get(v->getType(), static_cast<unsigned>(count));
    return b_.CreateInsertElement(llvm::PoisonValue::get(type), v, uint64_t{0});
  }
  std::vector<int> mask(static_cast<size_t>(count), -1);
  std::iota(mask.begin(), mask.begin() + width_of(v), 0);
  return b_.CreateShuffleVector(v, mask);
}

llvm::Value* ValueOps::join(std::vector<Value*> parts) {
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
    for (size_t i = 0; i < parts.size() / 2; ++i) {
      const int half = width_of(parts[2 * i]);
      std::vector<int> all(static_cast<size_t>(2 * half));
      std::iota(all.begin(), all.end(), 0);
      parts[i] = b_.CreateShuffleVector(parts[2 * i], parts[2 * i + 1], all);
    }
  }
  return parts[0];
}

llvm::Value* ValueOps::times_power_of_two(Value* x, Value* n, Value* nonzero) {
  constexpr int kPart = 16;
  std::vector<Value*> parts;
  for (int i = 0; i < width_of(x); i += kPart) {
    Value* p = slice(x, i, kPart);
    Value* mask = b_.CreateBitCast(slice(nonzero, i, kPart), b_.getInt16Ty());
    parts.push_back(
        b_.CreateIntrinsic(intr::x86_avx512_mask_scalef_ps_512, {},
                           {p, slice(n, i, kPart), llvm::Constant::getNullValue(p->getType()), mask,
                            b_.getInt32(kCurrentRounding)}));
  }
  return join(parts);
}

llvm::Value* ValueOps::fma(Value* a, Value* b, Value* c) {
  return b_.CreateIntrinsic(intr::fma, {a->getType()}, {a, b, c});
}

llvm::Value* ValueOps::unary(Op op, DType t, Value* a) {
  const bool fp = is_float(t);
  ID id = intr::not_intrinsic;
  switch (op) {
    case Op::kNeg:
      return fp ? b_.CreateFNeg(a) : b_.CreateNeg(a);
    case Op::kNot:
      return b_.CreateNot(a);
    case Op::kAbs:
      if (!fp && !is_signed_int(t)) return a;
      if (!fp) return b_.CreateBinaryIntrinsic(intr::abs, a, b_.getFalse());
      id = intr::fabs;
      break;
    case Op::kSqrt:
      id = intr::sqrt;
      break;
    case Op::kFloor:
      id = intr::floor;
      break;
    case Op::kCeil:
      id = intr::ceil;
      break;
    case Op::kTrunc:
      id = intr::trunc;
      break;
    case Op::kRoundEven:
      id = intr::roundeven;
      break;
    default:
      PYC_CHECK(false, "not a unary operation");
  }
  return b_.CreateUnaryIntrinsic(id, a);
}

llvm::Value* ValueOps::binary(Op op, DType t, Value* a, Value* b) {
  const bool fp = is_float(t);
  switch (op) {
    case Op::kAdd:
      return fp ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
    case Op::kSub:
      return fp ? b_.CreateFSub(a, b) : b_.CreateSub(a, b);
    case Op::kMul:
      return fp ? b_.CreateFMul(a, b) : b_.CreateMul(a, b);
    case Op::kDiv:
      return fp ? b_.CreateFDiv(a, b) : divide(false, t, a, b);
    case Op::kRem:
      PYC_CHECK(!fp, "rem of floats has no instruction: it is a Loop IR expression");
      return divide(true, t, a, b);
    case Op::kMin:
      return min_max(false, t, a, b);
    case Op::kMax:
      return min_max(true, t, a, b);
    case Op::kAnd:
      return b_.CreateAnd(a, b);
    case Op::kOr:
      return b_.CreateOr(a, b);
    case Op::kXor:
      return b_.CreateXor(a, b);
    case Op::kShl:
    case Op::kShr:
      return shift(op, t, a, b);
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
      return compare(op, t, a, b);
    default:
      PYC_CHECK(false, "not a binary operation");
  }
  return nullptr;
}

llvm::Value* ValueOps::compare(Op op, DType t, Value* a, Value* b) {
  using P = llvm::CmpInst::Predicate;
  if (is_float(t)) {
    const P p = op == Op::kEq   ? P::FCMP_OEQ
                : op == Op::kNe ? P::FCMP_UNE
                : op == Op::kLt ? P::FCMP_OLT
                                : P::FCMP_OLE;
    return b_.CreateFCmp(p, a, b);
  }
  const bool sign = is_signed_int(t);
  const P p = op == Op::kEq   ? P::ICMP_EQ
              : op == Op::kNe ? P::ICMP_NE
              : op == Op::kLt ? (sign ? P::ICMP_SLT : P::ICMP_ULT)
                              : (sign ? P::ICMP_SLE : P::ICMP_ULE);
  return b_.CreateICmp(p, a, b);
}

llvm::Value* ValueOps::min_max(bool is_max, DType t, Value* a, Value* b) {
  if (is_float(t)) return float_min_max(is_max, a, b);
  if (t == DType::kBool) return is_max ? b_.CreateOr(a, b) : b_.CreateAnd(a, b);
  const ID id =
      is_signed_int(t) ? (is_max ? intr::smax : intr::smin) : (is_max ? intr::umax : intr::umin);
  return b_.CreateBinaryIntrinsic(id, a, b);
}

// By vrangeps.
llvm::Value* ValueOps::min_max_of_numbers(bool is_max, Value* a, Value* b) {
  const int width = width_of(a);
  if (width < 4) return slice(min_max_of_numbers(is_max, pad(a, 4), pad(b, 4)), 0, width);
  const int part = std::min(width, 16);
  const ID id = part == 16  ? intr::x86_avx512_mask_range_ps_512
                : part == 8 ? intr::x86_avx512_mask_range_ps_256
                            : intr::x86_avx512_mask_range_ps_128;
  constexpr uint32_t kMin = 4;  // the sign is that of the comparison's result
  constexpr uint32_t kMax = 5;
  std::vector<Value*> parts;
  for (int i = 0; i < width; i += part) {
    Value* x = slice(a, i, part);
    std::vector<Value*> args = {x, slice(b, i, part), b_.getInt32(is_max ? kMax : kMin),
                                llvm::Constant::getNullValue(x->getType()),
                                llvm::Constant::getAllOnesValue(b_.getIntNTy(part == 16 ? 16 : 8))};
    if (part == 16) args.push_back(b_.getInt32(kCurrentRounding));
    parts.push_back(b_.CreateIntrinsic(id, {}, args));
  }
  return join(parts);
}

llvm::Value* ValueOps::all_of(Value* v) {
  const auto width = static_cast<unsigned>(width_of(v));
  if (width == 1) return v;
  const bool fills_register = width == 4 || width == 8 || width == 16;
  if (!t_.aarch64 || !fills_register) return b_.CreateAndReduce(v);
  // LLVM would move one bool after another into a mask.
  auto* type = llvm::FixedVectorType::get(b_.getIntNTy(width == 4 ? 16 : 8), width);
  Value* least = b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_uminv, {b_.getInt32Ty(), type},
                                    {b_.CreateSExt(v, type)});
  return b_.CreateICmpNE(b_.CreateAnd(least, b_.getInt32(1)), b_.getInt32(0));
}

// A comparison of two vectors sees the NaNs of both.
llvm::Value* ValueOps::any_nan(Value* v) {
  int width = width_of(v);
  if (width == 1) return b_.CreateFCmpUNO(v, v);
  width /= 2;
  Value* nans = b_.CreateFCmpUNO(slice(v, 0, width), slice(v, width, width));
  for (; width > 16; width /= 2) {
    nans = b_.CreateOr(slice(nans, 0, width / 2), slice(nans, width / 2, width / 2));
  }
  Value* bits = b_.CreateBitCast(nans, b_.getIntNTy(static_cast<unsigned>(width)));
  return b_.CreateICmpNE(bits, llvm::Constant::getNullValue(bits->getType()));
}

// IEEE 754-2019 maximum and minimum. With a constant that is no NaN one comparison is enough: it
// only has to keep x when x is a NaN and to order the zeros. Where equal operands may give x, x86
// has one instruction for that: `c > x ? c : x`.
llvm::Value* ValueOps::float_min_max(bool is_max, Value* a, Value* b) {
  if (t_.aarch64) {
    return b_.CreateBinaryIntrinsic(is_max ? intr::maximum : intr::minimum, a, b);
  }
  if (llvm::isa<llvm::Constant>(a)) std::swap(a, b);
  const llvm::ConstantFP* c = nullptr;
  if (auto* k = llvm::dyn_cast<llvm::Constant>(b)) {
    if (k->getType()->isVectorTy()) k = k->getSplatValue();
    c = k == nullptr ? nullptr : llvm::dyn_cast<llvm::ConstantFP>(k);
  }
  if (c != nullptr && !c->isNaN()) {
    if (!c->isZero() || c->isNegative() == is_max) {
      return b_.CreateSelect(is_max ? b_.CreateFCmpOGT(b, a) : b_.CreateFCmpOLT(b, a), b, a);
    }
    return b_.CreateSelect(is_max ? b_.CreateFCmpUGT(a, b) : b_.CreateFCmpULT(a, b), a, b);
  }
  if (t_.avx512 && a->getType()->getScalarType()->isFloatTy()) {
    return b_.CreateSelect(b_.CreateFCmpUNO(a, b), llvm::ConstantFP::getNaN(a->getType()),
                           min_max_of_numbers(is_max, a, b));
  }
  Value* ordered = is_max ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b);
  Value* r = b_.CreateSelect(ordered, a, b);
  // Equal operands differ at most in the sign of a zero.
  const bool f32 = a->getType()->getScalarType()->isFloatTy();
  llvm::Type* bits = with_width(f32 ? b_.getInt32Ty() : b_.getInt64Ty(), a);
  Value* x = b_.CreateBitCast(a, bits);
  Value* y = b_.CreateBitCast(b, bits);
  Value* equal = b_.CreateBitCast(is_max ? b_.CreateAnd(x, y) : b_.CreateOr(x, y), a->getType());
  r = b_.CreateSelect(b_.CreateFCmpOEQ(a, b), equal, r);
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), a, r);
}

// x/0 = 0, x rem 0 = 0, MIN/-1 = MIN: such divisors are replaced by 1, which gives all but the
// first.
llvm::Value* ValueOps::divide(bool remainder, DType t, Value* a, Value* b) {
  if (t == DType::kBool) {
    Value* zero = int_like(a, 0);
    return remainder ? zero : b_.CreateAnd(a, b);
  }
  const bool sign = is_signed_int(t);
  Value* is_zero = b_.CreateICmpEQ(b, int_like(b, 0));
  Value* bad = is_zero;
  if (sign) {
    const unsigned bits = b->getType()->getScalarSizeInBits();
    Value* min = llvm::ConstantInt::get(a->getType(), llvm::APInt::getSignedMinValue(bits));
    Value* all = llvm::Constant::getAllOnesValue(b->getType());
    bad = b_.CreateOr(bad, b_.CreateAnd(b_.CreateICmpEQ(a, min), b_.CreateICmpEQ(b, all)));
  }
  Value* safe = b_.CreateSelect(bad, int_like(b, 1), b);
  if (remainder) return sign ? b_.CreateSRem(a, safe) : b_.CreateURem(a, safe);
  Value* q = sign ? b_.CreateSDiv(a, safe) : b_.CreateUDiv(a, safe);
  return b_.CreateSelect(is_zero, int_like(a, 0), q);
}

llvm::Value* ValueOps::shift(Op op, DType t, Value* a, Value* b) {
  const unsigned width = a->getType()->getScalarSizeInBits();
  if (op == Op::kShr && is_signed_int(t)) {
    Value* amount = b_.CreateBinaryIntrinsic(intr::umin, b, int_like(b, width - 1));
    return b_.CreateAShr(a, amount);
  }
  Value* fits = b_.CreateICmpULT(b, int_like(b, width));
  Value* amount = b_.CreateSelect(fits, b, int_like(b, 0));
  Value* r = op == Op::kShl ? b_.CreateShl(a, amount) : b_.CreateLShr(a, amount);
  return b_.CreateSelect(fits, r, int_like(a, 0));
}

llvm::Value* ValueOps::floor_div(Value* a, int64_t divisor, bool non_negative) {
  if (!non_negative && (divisor & (divisor - 1)) == 0) {
    return b_.CreateAShr(a,
                         static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(divisor))));
  }
  return floor_div(a, int_like(a, static_cast<uint64_t>(divisor)), non_negative);
}

llvm::Value* ValueOps::floor_div(Value* a, Value* d, bool non_negative) {
  if (non_negative) return b_.CreateUDiv(a, d);
  // Truncation rounds negative quotients up.
  Value* q = b_.CreateSDiv(a, d);
  Value* r = b_.CreateSub(a, b_.CreateMul(q, d));
  Value* down = b_.CreateICmpSLT(r, int_like(a, 0));
  return b_.CreateSelect(down, b_.CreateSub(q, int_like(a, 1)), q);
}

llvm::Value* ValueOps::floor_mod(Value* a, int64_t divisor, bool non_negative) {
  if ((divisor & (divisor - 1)) == 0) {
    return b_.CreateAnd(a, int_like(a, static_cast<uint64_t>(divisor - 1)));
  }
  return floor_mod(a, int_like(a, static_cast<uint64_t>(divisor)), non_negative);
}

llvm::Value* ValueOps::floor_mod(Value* a, Value* d, bool non_negative) {
  if (non_negative) return b_.CreateURem(a, d);
  Value* r = b_.CreateSRem(a, d);
  return b_.CreateSelect(b_.CreateICmpSLT(r, int_like(a, 0)), b_.CreateAdd(r, d), r);
}

llvm::Value* ValueOps::bitcast(Value* v, DType from, DType to) {
  if (from == DType::kBool) v = to_memory(v, from);
  if (to == DType::kBool) return from_memory(v, to);
  if (dtype_bits(to) < 8) return low_bits(v, to);
  return b_.CreateBitCast(v, type(to, width_of(v)));
}

}  // namespace pyc::cpu
