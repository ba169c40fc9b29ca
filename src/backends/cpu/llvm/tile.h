#pragma once

// A tile of a matrix product that stays in registers while k runs: rows × vectors accumulators, one
// fma chain each, or sums of products of bytes in i32. What is done with the totals is the
// caller's.

#include <cstddef>

#include "backends/cpu/codegen.h"
#include "backends/cpu/llvm/flow.h"

namespace pyc::cpu {

inline constexpr int64_t kLineElements = 16;  // of f32 in a line of the cache

// Where the vector of a row stands among accumulators.
inline size_t accumulator_at(int row, int vectors, int vector) {
  return static_cast<size_t>(row) * static_cast<size_t>(vectors) + static_cast<size_t>(vector);
}

struct TileShape {
  int rows = 8;
  int vectors = 2;  // of a row
  int lanes = 4;    // elements of a vector
  int unroll = 4;   // steps of k per iteration
  // `unroll` elements of k of a row are loaded as one vector; else each is broadcast from memory.
  bool a_by_lanes = false;
  int64_t a_row_stride = 0;  // elements between two rows of A
  int64_t a_step = 0;        // and between two groups of `unroll` k
  int64_t b_k_stride = 0;    // elements between two steps of k in B
  int b_streams = 1;         // in which the vectors of a row lie, so many elements apart
  int64_t b_stream_stride = 0;
  int b_ahead = 0;  // steps of k whose columns are fetched near before they are needed
  // A has whole groups of `unroll` k, whatever the last of them holds beyond the end.
  bool a_padded = false;
  // Who adds +0 to the result, or adds the result to a total that began so, cannot tell a chain
  // that begins with a product from one that begins by adding it to +0: only −0 would differ.
  bool from_product = false;
  // Of bytes: what multiplies them, their signs, and whether it takes B's before A's. kMmla: both
  // are packed, and there is no rest of k.
  ByteUnit unit = ByteUnit::kNone;
  bool a_unsigned = false;
  bool b_unsigned = false;
  bool swapped = false;

  int columns() const { return vectors * lanes; }
};

// How many steps of k a chain has: `whole` · unroll, then `rest`.
struct TileSteps {
  llvm::Value* whole = nullptr;
  int64_t fewest = 0;  // what `whole` is at least and at most
  int64_t most = 0;
  llvm::Value* rest = nullptr;  // null: none
  bool always_rest = false;
  int fixed_rest = 0;  // what `rest` is, where it is always the same
};

class TileCore {
 public:
  using Value = llvm::Value;
  using State = FlowBuilder::State;

  // `before_steps` is called with A's pointer and the loop's turn before each `unroll` steps of a
  // chain's loop.
  TileCore(llvm::IRBuilder<>& builder, const TileShape& shape,
           std::function<void(Value* a, Value* turn)> before_steps = {});

  // The accumulators, row by row, after the steps from `a` and `b` on; starts from +0, or each row
  // from the vectors of `start` (kMmla: may not).
  State chain(Value* a, Value* b, const TileSteps& steps, const State& start = {});

  llvm::Type* element_type();
  llvm::Type* vector_type();
  Value* zero() { return llvm::ConstantAggregateZero::get(vector_type()); }
  Value* load_vector(Value* pointer, int64_t element);
  void store_vector(Value* v, Value* pointer, int64_t element);

 private:
  // States are the accumulators and at the end the pointers into A and B.
  Value* load_a(Value* a, int row);
  int64_t columns_at(int64_t step, int vector) const;
  Value* load_columns(Value* b, int64_t step, int vector);
  void fetch_columns(Value* b, int64_t step, int vector);
  bool packed_rows() const { return s_.rows > 1 && s_.a_row_stride == s_.unroll; }
  // a·b + c in every lane, of f32 or of the bytes of its element.
  Value* fma(Value* a, Value* b, Value* c);
  Value* call(unsigned intrinsic, std::initializer_list<llvm::Type*> types,
              std::initializer_list<Value*> args);
  // The accumulators of a unit that takes rows and columns in twos, as rows.
  State chain_in_twos(Value* a, Value* b, const TileSteps& steps);
  // `unroll` steps of k.
  State k_steps(State state, Value* turn);
  // The last steps of k, fewer than `unroll`; `begun`: there are others before them.
  State rest_steps(State state, int rest, bool begun);
  // One step of k; changes the accumulators.
  void k_step(Value* a, Value* b, State& state);
  // All steps, with loads ahead of the arithmetic: what the first fmas of an iteration need was
  // loaded in the one before. The last iteration stands by itself, so that nothing beyond the end
  // is read. Between accumulators and pointers the states have A's and B's vectors.
  State k_loop_ahead(const TileSteps& steps, State state);
  State k_steps_ahead(State state, Value* turn);  // null: the last

  llvm::IRBuilder<>& b_;
  FlowBuilder flow_;
  const TileShape s_;
  const bool two_columns_;  // registers hold B's vectors of two steps of k
  const bool pipelined_;
  std::function<void(Value* a, Value* turn)> before_steps_;
};

}  // namespace pyc::cpu
