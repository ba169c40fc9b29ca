#pragma once

// Writes a kernel's statements: the loop over parallel points, loops one iteration at a time or in
// vectors, and their reductions. The order in which a reduction takes its elements is fixed by
// loop.h; only how many of its independent chains run at once is chosen here.

#include <functional>
#include <optional>
#include <vector>

#include "backends/cpu/emitter.h"

namespace pyc::cpu {

class KernelEmitter {
 public:
  KernelEmitter(const loop::Kernel& kernel, const TargetTraits& traits, llvm::IRBuilder<>& builder,
                llvm::Function* function)
      : k_(kernel), b_(builder), ex_(kernel, traits, builder, function), ops_(ex_.ops()) {}

  void run();

 private:
  using Value = llvm::Value;
  using State = std::vector<Value*>;

  struct Bounds {
    Value* begin = nullptr;
    Value* end = nullptr;
    std::optional<int64_t> count;   // if it is the same everywhere
    bool nonempty = false;
    int64_t alignment = 0;          // divides begin; 0: begin is 0
  };
  // How a vector loop without tree sums runs: bodies of `width` elements, `copies` at a time.
  struct Shape {
    int width;
    int copies;
  };
  using Body = std::function<State(Value* index, const State& state)>;

  // for (i = begin; i < end; i += step) state = body(i, state), in a scope of its own.
  State counted(Value* begin, Value* end, int64_t step, bool nonempty, const State& init,
                const Body& body);
  // state = condition ? body(state) : state, in a scope of its own.
  State when(Value* condition, const State& init, const std::function<State(const State&)>& body);
  // Writes code in an inner scope that goes on in the same block.
  void nested(const std::function<void()>& body);

  void statements(const std::vector<loop::Stmt>& body);
  void store(const loop::Store& store);
  void check(const loop::Check& check);
  void loop(const loop::Loop& loop);
  Bounds bounds_of(const loop::Loop& loop);
  void bind_identities(const loop::Loop& loop);

  void serial_loop(const loop::Loop& loop);
  // A serial loop being written, and where the 64 lanes of each of its tree reductions are.
  struct Serial {
    const loop::Loop& loop;
    std::vector<Value*> lanes;
  };
  State start_serial(Serial& serial);
  State step_serial(const Serial& serial, Value* index, const State& state);
  State close_strip(const Serial& serial, int64_t strip, Value* at, Value* end, State state);
  void fill_lanes(Value* lanes, DType t, loop::ReduceOp op, int width);
  Value* join_lanes(Value* lanes, DType t, loop::ReduceOp op, int width, int64_t active);

  void vector_loop(const loop::Loop& loop);
  Shape shape_of(const loop::Loop& loop) const;
  void vector_stage(const loop::Loop& loop, Bounds& left, Shape shape,
                    std::vector<State>& accumulators);

  // A vector loop with tree reductions being written.
  struct Tree {
    const loop::Loop& loop;
    bool in_registers;          // lanes are values within a block, else in memory
    int copies;                 // bodies per iteration when they are in memory
    std::vector<Value*> lanes;  // per reduction: memory of 64 elements, null for exact ones
  };
  void tree_loop(const loop::Loop& loop);
  State tree_block(const Tree& tree, Value* base, State state);
  State tree_main(const Tree& tree, Value* begin, Value* end, bool nonempty, State state);
  State tree_tail(const Tree& tree, State state);
  // One body; lanes in memory. `exact`: the exact reductions' accumulators.
  void tree_step(const Tree& tree, Value* index, int64_t offset, int width, State& exact);

  // One element (or one per lane) goes into an accumulator.
  Value* take(const loop::Reduction& reduction, Value* accumulator);
  Value* combine(loop::ReduceOp op, DType t, Value* a, Value* b);
  // A vector of accumulators joined by halving, down to `width`.
  Value* fold(loop::ReduceOp op, DType t, Value* v, int width);
  llvm::Constant* identity(loop::ReduceOp op, DType t, int width);
  DType type_of(const loop::Reduction& r) const { return k_.pool.var_info(r.result).dtype; }
  // Roughly the number of operations of one iteration, nested loops counted as large.
  int cost_of(const loop::Loop& loop) const;

  Value* index(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }

  const loop::Kernel& k_;
  llvm::IRBuilder<>& b_;
  ExprEmitter ex_;
  ValueOps& ops_;
  Value* fault_ = nullptr;
};

}  // namespace pyc::cpu
