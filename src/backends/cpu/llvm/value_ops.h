#pragma once

// Loop IR's scalar operations over LLVM values, one element or a vector of them, for one target.
// Only operations that LLVM 16 selects natively on the target are used: some others abort
// (llvm.maximum on x86, bf16 truncation) or become calls (frem, f64 to f16).

#include <llvm/IR/IRBuilder.h>

#include "backends/cpu/llvm/numbers.h"
#include "base/dtype.h"
#include "loop/loop.h"

namespace pyc::cpu {

// What the generated code may rely on, and how wide it is written.
struct TargetTraits {
  bool aarch64 = false;
  bool f16c = false;      // x86: f16 conversions
  bool avx512 = false;    // x86: vectors of 512 bits; AVX-512 F, DQ and VL
  bool byte_dot = false;  // four products of bytes are added at once, in vectors of native width
  int lanes = 4;          // elements per vector body
  int vector_registers = 16;
  bool slow_division = false;  // a division costs more than ten other operations
  Numbers* numbers = nullptr;  // sizes are arguments (numbers.h); null: constants
};

// Values are held like this: bool as i1, integers as themselves, f32 and f64 as float and double,
// narrower floats as the integer of their bits; what is below a byte as a byte, extended.
struct SmallFloat;

class ValueOps {
 public:
  using Value = llvm::Value;

  ValueOps(llvm::IRBuilder<>& builder, const TargetTraits& traits) : b_(builder), t_(traits) {}

  const TargetTraits& traits() const { return t_; }

  // The type of `width` elements in registers; in memory a bool is an i8.
  llvm::Type* type(DType t, int width) const;
  llvm::Type* memory_type(DType t, int width) const;
  llvm::Constant* constant(DType t, Word word, int width) const;
  // Between the two forms above.
  Value* to_memory(Value* v, DType t);
  Value* from_memory(Value* v, DType t);

  Value* unary(loop::Op op, DType t, Value* a);
  // Arithmetic, bit operations and comparisons; a and b have dtype t.
  Value* binary(loop::Op op, DType t, Value* a, Value* b);
  // As binary, for floor_div and floor_mod by a positive constant. `non_negative`: a >= 0.
  Value* floor_div(Value* a, int64_t divisor, bool non_negative);
  Value* floor_mod(Value* a, int64_t divisor, bool non_negative);
  // The same for a positive divisor that is no constant, of a's type.
  Value* floor_div(Value* a, Value* divisor, bool non_negative);
  Value* floor_mod(Value* a, Value* divisor, bool non_negative);
  Value* fma(Value* a, Value* b, Value* c);
  // x·2^n, rounded once, for vectors of f32 with a multiple of 16 elements and integers n; needs
  // AVX-512. Where `nonzero`, a vector of i1, is false the result is +0.
  Value* times_power_of_two(Value* x, Value* n, Value* nonzero);
  // Of f32, orders the zeros and prefers numbers to NaNs; needs AVX-512.
  Value* min_max_of_numbers(bool is_max, Value* a, Value* b);
  // Whether all of some bools are true, as one.
  Value* all_of(Value* v);
  // Whether any of some floats is a NaN, as one bool.
  Value* any_nan(Value* v);
  Value* convert(Value* v, DType from, DType to);
  Value* bitcast(Value* v, DType from, DType to);

  Value* splat(Value* v, int width);
  // The vector base, base+step, … of i64 or i32 elements.
  Value* iota(Value* base, int64_t step, int width);
  // The same for a step that is no constant, of base's type.
  Value* iota(Value* base, Value* step, int width);
  // Elements [begin, begin+count) of a vector; one element gives a scalar.
  Value* slice(Value* v, int begin, int count);
  // The elements of a vector, or a scalar, followed by any others.
  Value* pad(Value* v, int count);
  // The elements of vectors of one width one after another; their number is a power of two.
  Value* join(std::vector<Value*> parts);

  static int width_of(const Value* v);
  // The constant as wide as `like`.
  llvm::Constant* fp_like(const Value* like, double v) const;

 private:
  Value* min_max(bool is_max, DType t, Value* a, Value* b);
  Value* float_min_max(bool is_max, Value* a, Value* b);
  Value* compare(loop::Op op, DType t, Value* a, Value* b);
  Value* divide(bool remainder, DType t, Value* a, Value* b);
  Value* shift(loop::Op op, DType t, Value* a, Value* b);

  Value* widen_to_f32(Value* v, DType from);
  Value* narrow_from_f32(Value* v, DType to);
  Value* f64_to_f32_odd(Value* v);
  Value* int_to_float(Value* v, DType from, DType to);
  Value* int64_to_f64_odd(Value* v, bool is_signed);
  Value* float_to_int(Value* v, DType to);
  Value* per_lane(Value* v, llvm::Type* to, llvm::Instruction::CastOps op);
  // The low bits of each byte, extended as type t is: for types below a byte.
  Value* low_bits(Value* v, DType t);
  Value* small_float_to_f32(Value* v, const SmallFloat& f);
  Value* f32_to_small_float(Value* v, const SmallFloat& f);
  Value* e8m0_to_f32(Value* v);
  Value* f32_to_e8m0(Value* v);

  // Constants of the shape of `like` (an integer or float value or vector).
  llvm::Constant* int_like(const Value* like, uint64_t v) const;
  llvm::Type* with_width(llvm::Type* scalar, const Value* like) const;

  llvm::IRBuilder<>& b_;
  TargetTraits t_;
};

}  // namespace pyc::cpu
