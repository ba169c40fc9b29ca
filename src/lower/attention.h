#pragma once

// The generic kernel of an attention. Private to lower/.

#include "lower/types.h"
#include "ops/kernel.h"

namespace pyc::lower {

// What the kernel's builder does for it beside its context.
class AttentionBuilder {
 public:
  virtual ~AttentionBuilder() = default;
  // A value as a store to that buffer has it.
  virtual loop::Expr as_stored(uint32_t buffer, loop::Expr value) const = 0;
  // What `build` returns, with `value` in place of the variable `standing`; so too in the checks
  // that `build` leads to. It writes no loops. Inside another call the value is put in its place
  // when that one returns.
  virtual loop::Expr replaced(loop::VarId standing, loop::Expr value,
                              const std::function<loop::Expr()>& build) = 0;
};

// Writes the loops of `form` into the kernel behind `context` and returns what they are made of.
Attention write_attention(ops::KernelContext& context, const ops::AttentionForm& form,
                          AttentionBuilder& builder);

}  // namespace pyc::lower
