#pragma once

// The parts of the matmul generator that write LLVM IR. Private to matmul*.cpp.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <string>
#include <vector>

#include "backends/cpu/llvm/emitter.h"
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
  const loop::Kernel& kernel() const { return *contraction().kernel; }
  bool linear_rows() const { return contraction().a.form == lower::Contraction::Form::kLinear; }
  // Elements between two rows and between two steps of `unroll` k, as the tiles read A.
  int64_t a_row_stride(int rows) const {
    if (plan.a_packed()) return plan.a_row_stride();
    return rows > 1 ? contraction().a.row_stride : 0;
  }
  // Whether there are tiles with one row less; at some number of rows, where that is an argument.
  bool has_low_tiles() const {
    return plan.tall_tiles < plan.row_tiles || (traits.numbers != nullptr && plan.tile_rows > 1);
  }
  int64_t a_step(int rows) const {
    return plan.unroll * (plan.a_packed() ? plan.a_k_stride(rows) : 1);
  }
};

// A tile function computes `rows` rows of a range of panels:
//   void tile(ptr buffers, ptr a, ptr b, i64 row, i64 column, i64 column_end, i64 batch…)
// `a` and `b` point at the first row and the first panel. By segment it has three more parameters,
// the segment's number, the totals of the tile's panels and how many elements of B further the next
// segment is, and `a` and `b` point at the segment.
llvm::Function* emit_matmul_tile(const MatmulSource& source, llvm::Module& module, int rows);

// What a step's function calls; null where the plan has no use for it. The second of a pair is for
// tiles with one row less.
struct MatmulParts {
  llvm::Function* tiles[2] = {nullptr, nullptr};
  llvm::Function* pack_rows[2] = {nullptr, nullptr};
  llvm::Function* pack_panels = nullptr;
};

// The step's function: loops over tasks and their tiles; `backwards`: from the last task on.
void emit_matmul_driver(const MatmulSource& source, llvm::Module& module, const std::string& symbol,
                        const MatmulParts& parts, bool backwards = false);

// Functions that evaluate an operand into memory as the tiles read it. Rows of f32 may be cut into
// parts of k, of which the first may have all.
//   void pack_rows(ptr buffers, ptr to, i64 row, i64 batch…, i64 part, i64 parts)
//   void pack_panels(ptr buffers, ptr to, i64 panel, i64 panel_end, i64 batch…)
llvm::Function* emit_pack_rows(const MatmulSource& source, llvm::Module& module, int rows);
llvm::Function* emit_pack_panels(const MatmulSource& source, llvm::Module& module);
// The same for bytes.
llvm::Function* emit_pack_byte_rows(const MatmulSource& source, llvm::Module& module, int rows);
llvm::Function* emit_pack_byte_panels(const MatmulSource& source, llvm::Module& module);

// The step that packs all of B with that function: one parallel point per matrix and panel.
void emit_pack_step(const MatmulSource& source, llvm::Module& module, const std::string& symbol,
                    llvm::Function* pack_panels);

// The step that packs all of A, one that is not linear with functions.pack_rows: one parallel point
// per matrix, tile and part of k.
void emit_rows_step(const MatmulSource& source, llvm::Module& module, const std::string& symbol,
                    const MatmulParts& functions);

// Copies `rows` rows of a linear A as the tiles read them: [step][row][unroll], the rest of k in a
// step of its own.
void emit_row_copy(const MatmulSource& source, llvm::IRBuilder<>& builder, int rows,
                   llvm::Value* from, llvm::Value* to);

// Copies those of one segment alike.
void emit_segment_copy(const MatmulSource& source, llvm::IRBuilder<>& builder, int rows,
                       llvm::Value* from, llvm::Value* to);

void emit_fma_probe(llvm::Module& module, int lanes, int chains, const std::string& symbol);

}  // namespace pyc::cpu
