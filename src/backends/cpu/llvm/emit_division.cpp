// Vectors over a divisor that is the same in all lanes, where vectors of 512 bits are divided
// slowly: bit for bit the exactly rounded quotient, from the divisor's reciprocal.

#include <llvm/IR/MDBuilder.h>

#include <cmath>

#include "backends/cpu/llvm/emitter.h"

namespace pyc::cpu {

using loop::ExprId;

namespace {

// Powers of two between which |x| and c are moderate: nothing below overflows, and every remainder
// is a normal number.
constexpr int kDividend = 60;
constexpr int kDivisor = 30;

}  // namespace

// For moderate x and c: with high = 1/c rounded, low the rest of it, q = x·high + x·low is one of
// the two f32 around x/c. Then x - q·c is exact, and q + (x - q·c)·high rounds to the quotient
// (Markstein's theorem, which needs just that q and a correctly rounded high). Other vectors, with
// a zero or an infinity in them say, take the long way.
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

// Whether 2^-60 <= |x| < 2^60 in all lanes.
llvm::Value* ExprEmitter::all_moderate(Value* x) {
  constexpr uint32_t kBias = 127;
  llvm::Type* bits = llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(width()));
  Value* size = b_.CreateShl(b_.CreateBitCast(x, bits), 1);  // the sign falls out
  const auto at_exponent = [](uint32_t e) { return uint64_t{e} << 24U; };
  Value* above = b_.CreateSub(size, llvm::ConstantInt::get(bits, at_exponent(kBias - kDividend)));
  int left = width();
  for (; left > ops_.traits().lanes; left /= 2) {
    above = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, ops_.slice(above, 0, left / 2),
                                     ops_.slice(above, left / 2, left / 2));
  }
  Value* outside =
      b_.CreateICmpUGE(above, llvm::ConstantInt::get(above->getType(), at_exponent(2 * kDividend)));
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
  return b_.CreateFPTrunc(sum, x->getType());
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
  // 1/c stays 2^-49 away from all points halfway between two f32: rounding twice is no harm.
  r.short_high = cached(divisor, kShortHigh, [&] {
    at(scope_of(divisor));
    return b_.CreateFPTrunc(r.high, b_.getFloatTy());
  });
  r.short_low = cached(divisor, kShortLow, [&] {
    Value* c = as_f64(divisor);
    Value* taken = b_.CreateFPExt(r.short_high, b_.getDoubleTy());
    Value* rest = ops_.fma(b_.CreateFNeg(taken), c, ops_.fp_like(c, 1.0));
    return b_.CreateFPTrunc(b_.CreateFMul(rest, r.high), b_.getFloatTy());
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
