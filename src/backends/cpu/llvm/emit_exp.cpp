// AVX-512 multiplies by a power of two in one instruction, rounding once. Loop IR's exp does it in
// two exact halves; where a call is that function, the one instruction gives the same bits.

#include "backends/cpu/llvm/emitter.h"
#include "base/status.h"
#include "loop/function.h"
#include "loop/functions.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::Op;

void ExprEmitter::find_exp() {
  const loop::Function* exp = loop::elementary_function("exp", DType::kF32).get();
  for (ExprId id = 0; id < whole_.size(); ++id) {
    const loop::ExprNode n = k_.pool.node(id);
    if (n.op != Op::kCall || !loop::same_function(loop::callee(k_.pool, n), *exp)) continue;
    // These are parts of the definition, so they are in the pool already.
    const loop::ScaledExp parts = loop::scaled_exp({&k_.pool, n.a});
    exp_[whole(id)] = {parts.value.id, parts.exponent.id};
  }
  PYC_CHECK(k_.pool.size() == whole_.size(), "exp is not made of its parts");
}

llvm::Value* ExprEmitter::emit_exp(ExprId id) {
  const auto it = exp_.find(id);
  if (it == exp_.end()) return nullptr;
  Value* p = eval_wide(it->second.value);
  Value* n = eval_wide(it->second.exponent);
  at(scope_of(id));
  return ops_.times_power_of_two(p, n);
}

}  // namespace pyc::cpu
