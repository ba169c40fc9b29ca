// AVX-512 multiplies by a power of two in one instruction, rounding once. Loop IR's exp and
// exp_nonpositive do it in two steps, of which one rounds; where a call is one of them, the one
// instruction gives the same bits.

#include "backends/cpu/llvm/emitter.h"
#include "base/convert.h"
#include "base/status.h"
#include "loop/function.h"
#include "loop/functions.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::Op;

// exp of this and of all that is less is +0.
constexpr double kLeast = -104.0;

void ExprEmitter::find_exp() {
  using PartsOf = loop::ScaledExp (*)(loop::Expr);
  const auto find = [this](const char* name, PartsOf parts_of) {
    const loop::Function* exp = loop::elementary_function(name, DType::kF32).get();
    for (ExprId id = 0; id < whole_.size(); ++id) {
      const loop::ExprNode n = k_.pool.node(id);
      if (n.op != Op::kCall || !loop::same_function(loop::callee(k_.pool, n), *exp)) continue;
      // These are parts of the definition, so they are in the pool already.
      const loop::ScaledExp parts = parts_of({&k_.pool, n.a});
      exp_[whole(id)] = {parts.value.id, parts.exponent.id, n.a};
    }
  };
  find("exp", loop::scaled_exp);
  find("exp_nonpositive", loop::scaled_exp_nonpositive);
  PYC_CHECK(k_.pool.size() == whole_.size(), "exp is not made of its parts");
}

llvm::Value* ExprEmitter::emit_exp(ExprId id) {
  const auto it = exp_.find(id);
  if (it == exp_.end()) return nullptr;
  Value* p = eval_wide(it->second.value);
  Value* n = eval_wide(it->second.exponent);
  Value* x = eval_wide(it->second.argument);
  at(scope_of(id));
  // What a mask hides is so low that it is 0. Scaling that as far as the definition does takes the
  // processor 200 cycles a vector, since what comes out is below all normal numbers.
  Value* nonzero = b_.CreateFCmpUGT(
      x, ops_.constant(DType::kF32, word_from_double(kLeast, DType::kF32), width()));
  return ops_.times_power_of_two(p, n, nonzero);
}

}  // namespace pyc::cpu
