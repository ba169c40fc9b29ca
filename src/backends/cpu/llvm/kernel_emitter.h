#pragma once

// Writes a kernel's statements: the loop over parallel points, loops one iteration at a time or in
// vectors, and their reductions. The order in which a reduction takes its elements is fixed by
// loop.h; only how many of its independent chains run at once is chosen here.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/llvm/emitter.h"
#include "backends/cpu/llvm/interior.h"
#include "backends/cpu/llvm/zones.h"

namespace pyc::cpu {

class KernelEmitter {
 public:
  KernelEmitter(const loop::Kernel& kernel, const TargetTraits& traits, llvm::IRBuilder<>& builder,
                llvm::Function* function)
      : k_(kernel), b_(builder), ex_(kernel, traits, builder, function), ops_(ex_.ops()) {}
  // The interior's kernel, which must outlive this.
  KernelEmitter(const Interior& interior, const TargetTraits& traits, llvm::IRBuilder<>& builder,
                llvm::Function* function)
      : KernelEmitter(interior.kernel, traits, builder, function) {
    interior_ = &interior;
  }

  void run();

 private:
  using Value = llvm::Value;
  using State = std::vector<Value*>;

  struct Bounds {
    Value* begin = nullptr;
    Value* end = nullptr;
    std::optional<int64_t> count;  // if it is the same everywhere
    bool nonempty = false;
    int64_t alignment = 0;  // divides begin; 0: begin is 0
  };
  using Body = std::function<State(Value* index, const State& state)>;

  // for (i = begin; i < end; i += step) state = body(i, state), in a scope of its own.
  State counted(Value* begin, Value* end, int64_t step, bool nonempty, const State& init,
                const Body& body);
  // state = condition ? body(state) : state, in a scope of its own.
  State when(Value* condition, const State& init, const std::function<State(const State&)>& body);

  // What a point runs: of an interior's kernel one of two loops.
  void run_point();
  void statements(const std::vector<loop::Stmt>& body);
  void store(const loop::Store& store);
  // How many stores from there on write elements that lie side by side, each every so many; 1:
  // none.
  size_t interleaved_at(const std::vector<loop::Stmt>& body, size_t first);
  // All values are there before the first is stored.
  void store_interleaved(std::span<const loop::Stmt> stores);
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
  bool skips_all_lanes(const loop::Loop& loop, const loop::Reduction& reduction);
  Value* take_if(const loop::Loop& loop, const loop::Reduction& reduction, Value* index,
                 Value* accumulator);
  State close_strip(const Serial& serial, int64_t strip, Value* at, Value* end, State state);
  void fill_lanes(Value* lanes, DType t, loop::ReduceOp op, int width);
  Value* join_lanes(Value* lanes, DType t, loop::ReduceOp op, int width, int64_t active);

  void vector_loop(const loop::Loop& loop);
  // Elements per body: several vectors, so that their chains of operations overlap.
  int width_of(const loop::Loop& loop, const Zone& zone = {}) const;
  // The widths in which a loop of `count` iterations (if known) is worked off, descending to 1.
  std::vector<int> widths_of(const loop::Loop& loop, std::optional<int64_t> count,
                             const Zone& zone = {}) const;
  std::vector<Zone> worthwhile_zones(const loop::Loop& loop) const;
  bool flags_nans(const loop::Reduction& reduction) const;
  // Two accumulators of a vector loop. Where it flags NaNs the result does not tell of them.
  Value* join(const loop::Reduction& reduction, Value* a, Value* b);
  State vector_stage(const loop::Loop& loop, const Zone& zone, Bounds& left, int width,
                     const State& accumulators);

  // A vector loop with tree reductions being written.
  struct Tree {
    const loop::Loop& loop;
    int width;                  // elements per body
    bool in_registers;          // lanes are values within a block, else in memory
    std::vector<Value*> lanes;  // per reduction: memory of 64 elements, null for exact ones
    Value* extent;              // of the loop
    Value* main_end;            // of the main part of all blocks: a multiple of unit()

    int64_t unit() const { return in_registers ? 64 : width; }
  };
  void tree_loop(const loop::Loop& loop);
  State tree_super_block(const Tree& tree, Value* base, const State& state);
  State tree_blocks(const Tree& tree, Value* begin, Value* end, const State& state);
  State tree_block(const Tree& tree, Value* base, State state);
  State tree_main(const Tree& tree, Value* begin, Value* end, bool nonempty, const State& state);
  State tree_tail(const Tree& tree, State state);
  // Lanes [at, at+width) of one of its tree reductions, in memory.
  Value* load_lanes(const Tree& tree, size_t reduction, Value* at, int width);
  void store_lanes(const Tree& tree, size_t reduction, Value* at, Value* v);
  // One body of any width, lanes in memory.
  State tree_step(const Tree& tree, Value* index, int width, const State& state);

  // Elements per body of either loop of an interior's kernel.
  int window_width() const;
  void interior_body(const loop::Loop& loop, bool tap_by_tap);

  // Sums of products of bytes, four at a time, of so many elements (emit_byte_sums.cpp).
  static constexpr int kByteBlock = 16;
  struct ByteProducts {
    std::vector<loop::ExprId> taps;  // of all sums, each once; neighbours follow each other
    // Four of them times weights, kNone for those that do not count, are added to a sum.
    struct Product {
      size_t first;
      size_t sum;
      std::vector<loop::ExprId> weights;
    };
    std::vector<Product> products;
    int64_t factor = 0;        // the sums begin with this times all weights
    Value* weights = nullptr;  // as the products take them
  };
  void plan_byte_products();
  void write_weights();
  int64_t bytes_of_weights() const;
  // Those of 16 elements from `element` on, and one product's of them.
  Value* weights_at(Value* element);
  Value* place_in(Value* weights, int64_t place);
  // In bodies whose first elements are multiples of `alignment`: weights are laid in blocks of 16.
  bool takes_byte_sums(int64_t alignment) const;
  // The results of a body of `width` elements from i on.
  State byte_sums(Value* i, int width);
  State block_of_sums(Value* weights);

  // One element (or one per lane) goes into an accumulator.
  Value* take(const loop::Reduction& reduction, Value* accumulator);
  Value* combine(loop::ReduceOp op, DType t, Value* a, Value* b);
  // A vector of accumulators joined by halving, down to `width`.
  Value* fold(loop::ReduceOp op, DType t, Value* v, int width);
  llvm::Constant* identity(loop::ReduceOp op, DType t, int width);
  DType type_of(const loop::Reduction& r) const { return k_.pool.var_info(r.result).dtype; }
  // Roughly the number of operations of one iteration in a zone, those of loops in it counted once.
  int cost_of(const loop::Loop& loop, const Zone& zone = {}) const;

  // What the bodies of a loop fetch before it is needed.
  struct Fetch {
    const loop::Loop* in;
    uint32_t buffer;
    int64_t stride;  // from one parallel point to the next
    int64_t ahead;   // from this point's row to the one that is fetched
    int64_t offset;
    bool write;  // to be written; else to be read
  };
  void plan_fetches();
  std::optional<Fetch> row_of(const loop::Loop& l, uint32_t buffer, loop::ExprId offset) const;
  // Of a body of `width` elements from i + offset on.
  void fetch_ahead(const loop::Loop& loop, Value* i, int64_t offset, int width);

  Value* index(int64_t v) { return b_.getInt64(static_cast<uint64_t>(v)); }
  // A size, or what follows from sizes.
  Value* number(int64_t v) { return ex_.number(v); }
  bool any_size() const { return ex_.any_size(); }

  const loop::Kernel& k_;
  llvm::IRBuilder<>& b_;
  ExprEmitter ex_;
  ValueOps& ops_;
  const Interior* interior_ = nullptr;
  std::optional<ByteProducts> bytes_;
  Value* fault_ = nullptr;
  const loop::Loop* fetching_ = nullptr;
  std::vector<Fetch> fetches_;
};

}  // namespace pyc::cpu
