// Vectors over a divisor that is the same in all lanes, where vectors of 512 bits are divided
// slowly: bit for bit the exactly rounded quotient, from the divisor's reciprocal.

#include <llvm/IR/MDBuilder.h>

#include <cmath>
#include <limits>

#include "backends/cpu/llvm/emitter.h"
#include "base/convert.h"

namespace pyc::cpu {

using loop::ExprId;

namespace {

// Moderate are |x| from 2^-60 to below 2^68 (half of all exponents, so that one bit tells) and |c|
// from 2^-30 to 2^30: nothing below overflows, and every remainder is a normal number.
constexpr uint32_t kSmallestDividend = 127 - 60;  // its exponent as it is stored
constexpr int kDivisor = 30;

}  // namespace

Word canonical_nan() {
  return word_from_double(std::numeric_limits<double>::quiet_NaN(), DType::kF32);
}

// For moderate x and c: with high = 1/c rounded, low the rest of it, q = x·high + x·low is one of
// the two f32 around x/c. Then x - q·c is exact, and q + (x - q·c)·high rounds to the quotient
// (Markstein's theorem, which needs just that q and a correctly rounded high). Other vectors, with
// a zero or an infinity in them say, take the long way. All NaNs that come out are the canonical
// one.
llvm::Value* ExprEmitter::emit_division(ExprId id) {
  const loop::ExprNode n = k_.pool.node(id);
  const Reciprocal r = reciprocal(n.b);
  Value* x = eval_wide(n.a);
  Scope& scope = scope_of(id);
  at(scope);
  if (scope.block->getTerminator() != nullptr) return divide_long(x, r);
  const auto wide = [&](Value* v) { return ops_.splat(v, width()); };
  Value* c = eval_wide(n.b);
  at(scope);
  Value* high = wide(r.short_high);
  Value* q = ops_.fma(x, high, b_.CreateFMul(x, wide(r.short_low)));
  Value* quotient = ops_.fma(ops_.fma(b_.CreateFNeg(q), c, x), high, q);

  Value* moderate = b_.CreateAnd(r.is_moderate, all_moderate(x));
  llvm::BasicBlock* quick = scope.block;
  llvm::BasicBlock* other = new_block("other");
  llvm::BasicBlock* divided = new_block("divided");
  llvm::MDBuilder md(b_.getContext());
  b_.CreateCondBr(moderate, divided, other, md.createBranchWeights(1000, 1));
  b_.SetInsertPoint(other);
  Value* exact = divide_long(x, r);
  b_.CreateBr(divided);
  b_.SetInsertPoint(divided);
  llvm::PHINode* result = b_.CreatePHI(x->getType(), 2);
  result->addIncoming(quotient, quick);
  result->addIncoming(exact, other);
  scope.block = divided;
  return result;
}

bool ExprEmitter::by_reciprocal(ExprId id) {
  const loop::ExprNode& n = k_.pool.node(id);
  return n.op == loop::Op::kDiv && n.dtype == DType::kF32 && ops_.traits().slow_division &&
         is_varying(id) && !is_varying(n.b);
}

bool ExprEmitter::is_canonical_already(ExprId id) {
  const loop::ExprNode& n = k_.pool.node(id);
  if (n.op != loop::Op::kSelect || !by_reciprocal(whole(n.c))) return false;
  const loop::ExprNode& test = k_.pool.node(n.a);
  const loop::ExprNode& nan = k_.pool.node(n.b);
  return test.op == loop::Op::kNe && test.a == n.c && test.b == n.c && nan.op == loop::Op::kConst &&
         nan.word == canonical_nan();
}

// Whether x is moderate in all lanes: its exponent less the smallest has no highest bit.
llvm::Value* ExprEmitter::all_moderate(Value* x) {
  llvm::Type* bits = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(width()));
  Value* any = b_.CreateSub(b_.CreateBitCast(x, bits),
                            llvm::ConstantInt::get(bits, uint64_t{kSmallestDividend} << 23U));
  int left = width();
  for (; left > ops_.traits().lanes; left /= 2) {
    any = b_.CreateOr(ops_.slice(any, 0, left / 2), ops_.slice(any, left / 2, left / 2));
  }
  Value* highest = b_.CreateAnd(any, llvm::ConstantInt::get(any->getType(), uint64_t{1} << 30U));
  Value* outside = b_.CreateICmpNE(highest, llvm::Constant::getNullValue(any->getType()));
  llvm::Type* mask = b_.getIntNTy(static_cast<unsigned>(left));
  return b_.CreateICmpEQ(b_.CreateBitCast(outside, mask), llvm::ConstantInt::get(mask, 0));
}

// 1/c = high + low in f64, and x/c is the f32 nearest to x·high + x·low. That is the exactly
// rounded quotient: the f64 sum is off by less than 2^-52 of itself, while a quotient of two f32
// either is a point halfway between two f32, which the sum then hits, or stays 2^-49 away from all
// of them. Both parts have the sign of c, so that zeros and infinities come out right.
llvm::Value* ExprEmitter::divide_long(Value* x, const Reciprocal& r) {
  Value* wide = b_.CreateFPExt(x, ops_.type(DType::kF64, width()));
  Value* sum =
      ops_.fma(wide, ops_.splat(r.high, width()), b_.CreateFMul(wide, ops_.splat(r.low, width())));
  Value* quotient = b_.CreateFPTrunc(sum, x->getType());
  return b_.CreateSelect(b_.CreateFCmpUNO(quotient, quotient),
                         ops_.constant(DType::kF32, canonical_nan(), width()), quotient);
}

ExprEmitter::Reciprocal ExprEmitter::reciprocal(ExprId divisor) {
  const auto as_f64 = [this](ExprId id) {
    Value* scalar = eval(id);
    at(scope_of(id));
    return b_.CreateFPExt(scalar, b_.getDoubleTy());
  };
  Reciprocal r{};
  // Slightly less than 1/c, so that the rest is not zero.
  r.high = cached(divisor, kHigh, [&] {
    Value* c = as_f64(divisor);
    Value* whole = b_.CreateFDiv(ops_.fp_like(c, 1.0), c);
    Value* less = ops_.fma(whole, ops_.fp_like(c, -0x1p-52), whole);
    return b_.CreateSelect(is_ordinary(c), less, whole);
  });
  r.low = cached(divisor, kLow, [&] {
    Value* c = as_f64(divisor);
    Value* rest = ops_.fma(b_.CreateFNeg(r.high), c, ops_.fp_like(c, 1.0));
    return b_.CreateSelect(is_ordinary(c), b_.CreateFMul(rest, r.high), r.high);
  });
  // In f32 the rest of a rounded reciprocal is exact as well.
  const auto as_f32 = [this](ExprId id) {
    Value* scalar = eval(id);
    at(scope_of(id));
    return scalar;
  };
  r.short_high = cached(divisor, kShortHigh, [&] {
    Value* c = as_f32(divisor);
    return b_.CreateFDiv(ops_.fp_like(c, 1.0), c);
  });
  r.short_low = cached(divisor, kShortLow, [&] {
    Value* c = as_f32(divisor);
    Value* rest = ops_.fma(b_.CreateFNeg(r.short_high), c, ops_.fp_like(c, 1.0));
    return b_.CreateFMul(rest, r.short_high);
  });
  r.is_moderate = cached(divisor, kIsModerate, [&] {
    Value* c = as_f64(divisor);
    Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, c);
    return b_.CreateAnd(b_.CreateFCmpOGE(size, ops_.fp_like(c, std::ldexp(1.0, -kDivisor))),
                        b_.CreateFCmpOLE(size, ops_.fp_like(c, std::ldexp(1.0, kDivisor))));
  });
  return r;
}

// Neither zero nor infinite nor NaN.
llvm::Value* ExprEmitter::is_ordinary(Value* v) {
  Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
  return b_.CreateAnd(b_.CreateFCmpOGT(size, ops_.fp_like(v, 0.0)),
                      b_.CreateFCmpOLT(size, llvm::ConstantFP::getInfinity(v->getType())));
}

}  // namespace pyc::cpu
