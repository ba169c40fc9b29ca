#pragma once

// A tile of a product of bytes in the tile registers of AMX: 16 rows of 16 sums in each. They are
// not values of LLVM's: code names the registers by their numbers.

#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <functional>

namespace pyc::cpu {

struct AmxTile {
  int row_tiles = 2;  // registers of sums in a column, and in a row: four at most in all
  int column_tiles = 2;
  int64_t a_step = 0;    // bytes from the rows' 64 k to the next; rows are 64 apart
  int64_t b_stride = 0;  // bytes from four k of the columns to the next
  bool a_unsigned = false;
  bool b_unsigned = false;
  // Called with both pointers before each step.
  std::function<void(llvm::Value* rows, llvm::Value* columns)> before_step = {};
};

// All registers have 16 rows of 64 bytes, from here on in this thread, until they are released.
void emit_amx_begin(llvm::IRBuilder<>& b, llvm::Module& module);
void emit_amx_end(llvm::IRBuilder<>& b);

// The sums over `steps` times 64 k to `to`, whose rows are column_tiles · 64 bytes long.
void emit_amx_tile(llvm::IRBuilder<>& b, const AmxTile& tile, llvm::Value* rows,
                   llvm::Value* columns, int64_t steps, llvm::Value* to);

}  // namespace pyc::cpu
