// Stored NaNs are made canonical, which takes a comparison and a choice: a third of what the last
// loop of a layer norm does. On aarch64 a bit of the register FPCR makes every arithmetic operation
// give the canonical NaN itself. A kernel whose stored values are such results sets it while it
// runs; no other bits depend on it, as NaNs inside a kernel have none that count.

#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsAArch64.h>

#include <cmath>

#include "backends/cpu/llvm/emitter.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::ExprNode;
using loop::kNone;
using loop::Op;

// LLVM leaves out an operation with 0, 1 or -1, or makes it a change of sign; a NaN then comes
// through as it was.
bool ExprEmitter::may_be_left_out(ExprId operand) const {
  const ExprNode& n = k_.pool.node(whole(operand));
  if (n.op != Op::kConst) return may_be_constant(operand);
  const double c = std::abs(word_to_double(n.word, n.dtype));
  return c == 0.0 || c == 1.0;
}

// Whether LLVM could find a constant, be it only in a zone or a loop of one iteration.
bool ExprEmitter::may_be_constant(ExprId id) const {
  const ExprNode& n = k_.pool.node(whole(id));
  switch (n.op) {
    case Op::kConst:
    case Op::kTable:
      return true;
    case Op::kVar:
      return !is_float(n.dtype);
    case Op::kLoad:
      return n.b != kNone && may_be_constant(n.c);
    case Op::kSelect:
      return may_be_constant(n.b) || may_be_constant(n.c);
    default:
      break;
  }
  for (const ExprId part : {n.a, n.b, n.c}) {
    if (part != kNone && !may_be_constant(part)) return false;
  }
  return true;
}

bool ExprEmitter::is_canonical_by_mode(ExprId id) {
  if (!may_set_mode_ || !is_varying(id)) return false;
  const ExprNode& n = k_.pool.node(id);
  if (n.op != Op::kSelect || n.dtype != DType::kF32) return false;
  const ExprNode& test = k_.pool.node(whole(n.a));
  const ExprNode& nan = k_.pool.node(whole(n.b));
  if (test.op != Op::kNe || test.a != n.c || test.b != n.c) return false;
  if (nan.op != Op::kConst || nan.word != canonical_nan()) return false;
  const ExprNode& result = k_.pool.node(whole(n.c));
  const bool arithmetic = result.op == Op::kAdd || result.op == Op::kSub || result.op == Op::kMul ||
                          result.op == Op::kFma;
  if (!arithmetic || may_be_left_out(result.a) || may_be_left_out(result.b)) return false;
  sets_mode_ = true;
  return true;
}

// At the very beginning, and back at every end: whoever calls has the mode it had.
void ExprEmitter::write_mode() {
  if (!sets_mode_) return;
  constexpr uint64_t kDefaultNan = uint64_t{1} << 25;
  llvm::BasicBlock& entry = function_->getEntryBlock();
  b_.SetInsertPoint(&entry, entry.getFirstInsertionPt());
  Value* before = b_.CreateIntrinsic(llvm::Intrinsic::aarch64_get_fpcr, {}, {});
  b_.CreateIntrinsic(llvm::Intrinsic::aarch64_set_fpcr, {},
                     {b_.CreateOr(before, b_.getInt64(kDefaultNan))});
  for (llvm::BasicBlock& block : *function_) {
    auto* end = llvm::dyn_cast_or_null<llvm::ReturnInst>(block.getTerminator());
    if (end == nullptr) continue;
    b_.SetInsertPoint(end);
    b_.CreateIntrinsic(llvm::Intrinsic::aarch64_set_fpcr, {}, {before});
  }
}

}  // namespace pyc::cpu
