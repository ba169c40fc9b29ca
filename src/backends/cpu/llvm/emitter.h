#pragma once

// Evaluates Loop IR expressions into LLVM IR, one element at a time or several lanes at once.
//
// Code is written into nested scopes: the function, the parallel point, every loop body. An
// expression is computed in the innermost scope that defines one of its variables (so loop
// invariants are hoisted by construction) and kept there; what reads memory that the kernel itself
// writes is computed where it is used and forgotten at the next store. In a vector body one
// variable, the lane variable, stands for width() consecutive iterations: what depends on it is a
// vector, everything else stays a scalar until it meets a vector.

#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backends/cpu/llvm/value_ops.h"
#include "backends/cpu/quantize_by.h"
#include "loop/loop.h"

namespace pyc::cpu {

class ExprEmitter {
 public:
  using Value = llvm::Value;
  using ExprId = loop::ExprId;
  using VarId = loop::VarId;

  // Code goes into `function`, whose entry block is the outermost scope.
  ExprEmitter(const loop::Kernel& kernel, const TargetTraits& traits, llvm::IRBuilder<>& builder,
              llvm::Function* function);

  const loop::Kernel& kernel() const { return k_; }
  ValueOps& ops() { return ops_; }
  llvm::IRBuilder<>& builder() { return b_; }
  llvm::Function* function() { return function_; }

  // The pointer to element 0 of a buffer, defined in the outermost scope.
  void set_buffer(uint32_t buffer, Value* pointer) { buffers_[buffer] = pointer; }
  Value* buffer(uint32_t buffer) const { return buffers_[buffer]; }

  void push_scope(llvm::BasicBlock* block);
  void pop_scope();
  // Writes the body in an inner scope with a block of its own, so that code hoisted into the outer
  // one may split that; the builder goes on where the body ended.
  void scoped(const std::function<void()>& body);
  // The block in which the innermost scope's code goes on.
  llvm::BasicBlock* block() const { return scopes_.back().block; }
  void set_block(llvm::BasicBlock* block) { scopes_.back().block = block; }
  llvm::BasicBlock* new_block(const char* name);
  // Lets the builder write at the end of the innermost scope.
  void here() { at(scopes_.back()); }

  // Variables of the innermost scope. bind gives one value for all lanes, or a vector of width()
  // elements. bind_lanes makes `var` the lane variable: base + offset + 0 … width-1, where
  // base is a multiple of `alignment`.
  void bind(VarId var, Value* value);
  void bind_lanes(VarId var, Value* base, int64_t offset, int width, int64_t alignment);
  // In the innermost scope the bool expression is known; it depends on a variable of that scope.
  void assume(ExprId id, bool value);
  int width() const { return scopes_.back().width; }
  // The value a variable was bound to.
  Value* value_of(VarId var);

  // The value: a scalar if it is the same in all lanes, else a vector of width() elements.
  Value* eval(ExprId id);
  // The value as width() elements.
  Value* eval_wide(ExprId id);
  // From here on, in its scope, the value of an expression that was not asked for yet.
  void give(ExprId id, Value* value) {
    cached(id, kWhole, [&] { return value; });
  }
  // The value in one lane.
  Value* eval_lane(ExprId id, int lane);
  // The product of two i32 that are bytes or differences of bytes, where words have a shorter way
  // to it, at the end of the innermost scope; null elsewhere.
  Value* product_of_words(ExprId a, ExprId b) { return product_of_words(a, b, scopes_.back()); }
  bool is_varying(ExprId id) { return width() > 1 && analyse(id).varying; }
  // Of a load, guarded or converted or not: elements from each lane to the next, if that is the
  // same everywhere.
  std::optional<int64_t> stride_of_load(ExprId id);

  // Where the element of a load lies, in the first lane, whatever its guard.
  Value* place_of(ExprId load);
  // So many elements of a buffer from there on.
  Value* load_at(uint32_t buffer, Value* place, int count) {
    return raw_load(buffer, place, count);
  }

  // Elements from each lane to the next, if that is the same everywhere.
  std::optional<int64_t> stride_of(ExprId offset) { return lane_stride(offset); }

  void store(uint32_t buffer, ExprId offset, Value* value);
  // The first lanes of all values side by side from the offset on, then the second ones, …
  void store_interleaved(uint32_t buffer, ExprId offset, const std::vector<Value*>& values);
  // To be called after stores and around loops: values read from written buffers are stale.
  void forget_loads() { volatile_.clear(); }

  // Whether sizes are arguments of the code (numbers.h).
  bool any_size() const { return ops_.traits().numbers != nullptr; }
  // A size, or what follows from sizes: a constant, or an argument.
  Value* number(int64_t value);

  // On aarch64 NaNs may be made canonical by the mode of the processor; write_mode, when the
  // function is complete, sets that mode in it if it is needed.
  void may_set_mode() { may_set_mode_ = ops_.traits().aarch64; }
  void write_mode();

  // Memory of the function for `count` values.
  llvm::AllocaInst* stack_slot(llvm::Type* type, int count);

 private:
  struct Scope {
    llvm::BasicBlock* block;
    int width;
    std::unordered_map<uint64_t, Value*> values;
    std::vector<std::pair<VarId, uint32_t>> shadowed;  // bindings to restore when it ends
    std::vector<ExprId> assumed;
  };
  struct Binding {
    int depth = 0;
    Value* value = nullptr;
    bool lanes = false;  // the lane variable: value is its base
    int64_t offset = 0;
    int64_t alignment = 1;
  };
  struct Info {
    int depth = -1;  // of the scope that computes it; -1: not yet known
    bool varying = false;
    bool is_volatile = false;
  };

  const Info& analyse(ExprId id);
  void bind(VarId var, const Binding& binding);
  void at(Scope& scope);
  Scope& scope_of(ExprId id);
  // Forms in which a value is kept, with a width or a lane added. A uniform value lives in a scope
  // outside the vector body and may be widened for bodies of different widths.
  enum Form : uint32_t {
    kWhole = 0,
    kLane = 0x1000,
    kSplat = 0x2000,
    kI32 = 0x3000,
    // of a divisor: see Reciprocal
    kHigh = 0x4000,
    kLow = 0x5000,
    kShortHigh = 0x6000,
    kShortLow = 0x7000,
    kIsModerate = 0x8000,
    kWord = 0x9000,
  };
  // Finds or makes the value of `id` in the form `kind` (whole, one lane, …) in its scope.
  template <class Make>
  Value* cached(ExprId id, uint32_t kind, Make make);

  Value* emit(ExprId id);
  Value* emit_var(ExprId id);
  Value* emit_lane(ExprId id, int lane);
  Value* emit_arithmetic(ExprId id, int width);
  // The value without a call around it.
  ExprId whole(ExprId id) const { return whole_[id]; }
  // Prepares the calls of exp for AVX-512, and emits the product that is one; null if it is none.
  void find_exp();
  Value* emit_exp(ExprId id);
  // Constant addends of fmas on NEON, and the load of one; null where it is not worth it.
  void find_addends();
  llvm::GlobalVariable* addend_data(int width);
  Value* load_addend(ExprId id, int width);
  // A byte quantized by a constant, and its parts; null if it is none.
  struct Quantized {
    ExprId x;
    QuantizeBy by;
    int32_t zero = 0;
    bool in_type = false;  // with the zero point; else the byte is what is left of it
    bool nan_is_least = false;
  };
  std::optional<double> constant_value(ExprId id) const;
  const Quantized* quantized(ExprId id);
  std::optional<Quantized> find_quantized(ExprId id) const;
  Value* emit_quantized(ExprId id);
  // Such a byte as a float again; null if it is none.
  Value* emit_steps(ExprId id);
  Value* steps_of(const Quantized& q, Value* given);
  Value* number_or_zero(const Quantized& q, Value* steps, Value* made);
  // Whether emit_division makes it: a vector over a divisor that is the same in all lanes.
  bool by_reciprocal(ExprId id);
  Value* emit_division(ExprId id);
  // Whether it makes the NaNs of such a quotient canonical, which they are.
  bool is_canonical_already(ExprId id);
  // Whether it makes the NaNs of a result canonical that the mode makes so.
  bool is_canonical_by_mode(ExprId id);
  bool may_be_left_out(ExprId operand) const;
  bool may_be_constant(ExprId id) const;
  // What is kept of a divisor c: 1/c in two parts, in f64 and in f32, and whether c is moderate.
  struct Reciprocal {
    Value* high;
    Value* low;
    Value* short_high;
    Value* short_low;
    Value* is_moderate;
  };
  Reciprocal reciprocal(ExprId divisor);
  Value* divide_long(Value* x, const Reciprocal& r);
  Value* all_moderate(Value* x);
  Value* is_ordinary(Value* v);
  // i32 expressions that are bytes or differences of bytes, as vectors of i16.
  bool is_word(ExprId id) const;
  Value* eval_word(ExprId id);
  Value* product_of_words(ExprId a, ExprId b, Scope& scope);
  // i64 expressions that fit 32 bits, as vectors of i32.
  bool fits_i32(ExprId id, int depth = 0);
  Value* eval_i32(ExprId id);
  Value* emit_i32(ExprId id);

  // How much an i64 expression grows from lane to lane, if that is the same everywhere.
  std::optional<int64_t> lane_stride(ExprId id);
  // A number that divides the value in lane 0.
  int64_t lane_alignment(ExprId id);
  const Binding& lane_binding() const { return bindings_[var_binding_[lane_var_]]; }

  // An integer that the kernel's text has, as number does: in the sum `id` the coefficient of term
  // `part` or the constant (kConstantPart), or operand kOperandPart + 0, 1, 2 of the operation
  // `id`. One argument each: what is equal at these sizes need not be so at others.
  static constexpr uint32_t kConstantPart = UINT32_MAX;
  static constexpr uint32_t kOperandPart = UINT32_MAX - 4;
  Value* written(ExprId id, uint32_t part, int64_t value);
  // The operand `x`, which is number `i`, of the operation `id`, in so many lanes.
  Value* operand_of(ExprId id, uint32_t i, ExprId x, int width);
  Value* written(ExprId id, uint32_t part, const loop::ExprNode& constant);
  bool is_number(ExprId id) const;
  void find_counts();
  // floor_div or floor_mod of `a`, one or several i64 or i32.
  Value* divide_floor(ExprId id, Value* a);
  // The first operand of such a division, where it is one value for all lanes.
  Value* dividend(ExprId id);

  Value* address(uint32_t buffer, ExprId offset, int lane);
  Value* emit_load(ExprId id);
  // Whether a load reads, where that is the same everywhere in this scope; then what it would be
  // otherwise is not written.
  std::optional<bool> known_guard(const loop::ExprNode& load);
  // One element, the same for all lanes.
  Value* load_one(ExprId id);
  // Consecutive elements, upwards or downwards; the guard is the same for all lanes.
  Value* load_row(ExprId id, bool reversed);
  // Every second element; the guard is the same for all lanes.
  Value* load_every_second(ExprId id);
  // Consecutive elements with a guard per lane.
  Value* load_row_masked(ExprId id);
  // Consecutive elements of one of several places, or zeros, by conditions that are the same in all
  // lanes (the parts of a concatenation, the taps of a window): one load, since choosing a pointer
  // costs less than choosing vectors. Null where the expression is something else.
  Value* load_chosen_row(ExprId id);
  struct Rows {
    DType dtype;
    int budget = 1024;  // expressions to look at
    std::set<uint32_t> buffers = {};
  };
  bool is_chosen_row(ExprId id, Rows& rows);
  Value* chosen_row(ExprId id);
  Value* load_each_lane(ExprId id);
  Value* lane_load(ExprId id, int lane);
  Value* emit_table(ExprId id);
  Value* raw_load(uint32_t buffer, Value* pointer, int width);
  // Memory that has zeros for a vector of any width.
  Value* safe();
  // The pointer, or readable memory if the guard is false.
  Value* guarded(Value* guard, Value* pointer);
  llvm::GlobalVariable* table_data(uint32_t table);
  void tag(llvm::Instruction* access, uint32_t buffer);

  loop::Kernel k_;             // with its calls written out
  std::vector<ExprId> whole_;  // per node: the one that computes it
  struct Scaled {
    ExprId value;
    ExprId exponent;
    ExprId argument;  // of exp
  };
  std::unordered_map<ExprId, std::optional<Quantized>> quantized_;
  std::unordered_map<ExprId, Scaled> exp_;  // products that are exp: value · 2^exponent
  bool may_set_mode_ = false;
  bool sets_mode_ = false;
  std::unordered_map<ExprId, size_t> addend_places_;        // per fma: its place in the tables
  std::unordered_map<int, llvm::GlobalVariable*> addends_;  // per width
  llvm::IRBuilder<>& b_;
  ValueOps ops_;
  llvm::Function* function_;
  std::vector<Value*> buffers_;
  std::vector<llvm::MDNode*> alias_scopes_;
  std::vector<llvm::MDNode*> no_alias_;
  std::vector<llvm::GlobalVariable*> tables_;
  llvm::GlobalVariable* safe_ = nullptr;  // what guarded loads read when their guard is false

  std::vector<Scope> scopes_;
  std::vector<Binding> bindings_;      // index 0 is unused
  std::vector<uint32_t> var_binding_;  // per variable
  VarId lane_var_ = loop::kNone;
  std::unordered_map<ExprId, bool> assumed_;
  std::vector<Info> info_;
  std::unordered_map<uint64_t, Value*> volatile_;
  std::unordered_map<uint64_t, Value*> written_;  // by expression and part
  std::unordered_set<ExprId> counts_;             // constants that floats are divided by
};

template <class Make>
llvm::Value* ExprEmitter::cached(ExprId id, uint32_t kind, Make make) {
  id = whole(id);
  const uint64_t key = (static_cast<uint64_t>(kind) << 32) | id;
  auto& values = analyse(id).is_volatile ? volatile_ : scope_of(id).values;
  if (const auto it = values.find(key); it != values.end()) return it->second;
  Value* v = make();
  values[key] = v;
  return v;
}

// What every NaN of f32 that is stored is.
Word canonical_nan();

// Writes the whole kernel as one function `symbol` into the module.
llvm::Function* emit_kernel(const loop::Kernel& kernel, const TargetTraits& traits,
                            llvm::Module& module, const std::string& symbol);

}  // namespace pyc::cpu
