#pragma once

// The parts of the matmul generator that write LLVM IR. Private to matmul*.cpp.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "backends/cpu/llvm/flow.h"
#include "backends/cpu/llvm/value_ops.h"
#include "backends/cpu/matmul.h"

namespace pyc::cpu {

// What the writers share.
struct MatmulSource {
  const lower::Group& group;
  const MatmulPlan& plan;
  const TargetTraits& traits;

  const lower::Contraction& contraction() const { return *group.contraction; }
  // Elements between two rows and between two steps of `unroll` k, as the tiles read A.
  int64_t a_row_stride(int rows) const {
    return plan.pack_a ? plan.unroll : (rows > 1 ? contraction().a.row_stride : 0);
  }
  int64_t a_step(int rows) const { return plan.pack_a ? plan.unroll * rows : plan.unroll; }
};

// A tile function computes `rows` rows of a range of panels:
//   void tile(ptr buffers, ptr a, ptr b, i64 row, i64 column, i64 column_end, i64 batch…)
// `a` and `b` point at the first row and the first panel.
llvm::Function* emit_matmul_tile(const MatmulSource& source, llvm::Module& module, int rows);

// The step's function: loops over tasks and their tiles. `tiles[0]` has tile_rows rows, `tiles[1]`
// one less or is null.
void emit_matmul_driver(const MatmulSource& source, llvm::Module& module, const std::string& symbol,
                        llvm::Function* const tiles[2]);

void emit_fma_probe(llvm::Module& module, int lanes, int chains, const std::string& symbol);

}  // namespace pyc::cpu
