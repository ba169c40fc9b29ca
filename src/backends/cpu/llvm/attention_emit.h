#pragma once

// Writes LLVM IR for attention.

#include <llvm/IR/Module.h>

#include <string>

#include "backends/cpu/attention.h"
#include "backends/cpu/llvm/value_ops.h"

namespace pyc::cpu {

struct AttentionSource {
  const lower::Group& group;
  const AttentionPlan& plan;
  const TargetTraits& traits;
};

// The step's function: a point is a head and some of its queries.
void emit_attention(const AttentionSource& source, llvm::Module& module, const std::string& symbol);

}  // namespace pyc::cpu
