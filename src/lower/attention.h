#pragma once

// The generic kernel of an attention. Private to lower/.

#include "lower/types.h"
#include "ops/kernel.h"

namespace pyc::lower {

// Writes the loops of `form` into the kernel behind `context` and returns what they are made of.
// `as_stored` is a value as a store to that buffer has it.
Attention write_attention(
    ops::KernelContext& context, const ops::AttentionForm& form,
    const std::function<loop::Expr(uint32_t buffer, loop::Expr value)>& as_stored);

}  // namespace pyc::lower
