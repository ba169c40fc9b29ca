#pragma once

// What the steps of several kernels share.

#include <llvm/IR/Module.h>

#include <string>

#include "backends/cpu/llvm/value_ops.h"
#include "backends/cpu/packing.h"

namespace pyc::cpu {

// A new function that is a step's: void(pyc_kernel_args*, i64 begin, i64 end), with an entry block.
llvm::Function* new_step(llvm::Module& module, const std::string& symbol);

// The step that packs a matrix: one parallel point per matrix and panel; its buffers are the source
// and the packed matrices.
void emit_pack(const Packing& packing, const TargetTraits& traits, llvm::Module& module,
               const std::string& symbol);

}  // namespace pyc::cpu
