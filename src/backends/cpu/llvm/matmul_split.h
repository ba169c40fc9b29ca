#pragma once

// What the functions that evaluate a product's operands into memory share. Private to matmul*.cpp.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <string>

#include "backends/cpu/llvm/emitter.h"
#include "backends/cpu/llvm/matmul_emit.h"

namespace pyc::cpu {

// A function void(ptr buffers, ptr to, i64…) of the module.
llvm::Function* new_packer(const MatmulSource& source, llvm::Module& module,
                           const std::string& name, size_t numbers);

// Makes the buffers known and binds the batch, whose arguments begin with `first`.
void begin_packer(const lower::Contraction& c, llvm::Function* f, unsigned first,
                  llvm::IRBuilder<>& b, ExprEmitter& ex);

// An operand with k = high·digit + low, so that what follows from the high part alone (which tap of
// a window, whether it lies inside) is computed once per run of the low part (its channels). Where
// a run would have no whole number of steps of `step`, all of k is one run.
struct SplitOperand {
  loop::Kernel kernel;
  loop::VarId high = loop::kNone;
  loop::VarId low = loop::kNone;
  int64_t digit = 1;
  int64_t runs = 1;
  loop::ExprId value = loop::kNone;
  loop::ExprId guard = loop::kNone;  // kNone if it depends on the low part

  SplitOperand(const lower::Contraction& c, loop::ExprId operand, int64_t step = 1);
};

}  // namespace pyc::cpu
