#pragma once

// Loop IR: the small language every backend implements. One Kernel is one function over buffers.
//
// Execution. A kernel runs its body once for every point of the box given by its parallel
// variables (row-major, the last one fastest). Points may run on different threads and in any
// order; no point may read what another one stores, and no two points store to the same element
// (verify_kernel proves it). Within a point, statements run in order. An element of a written or
// scratch buffer that its point has not stored yet has no particular value.
//   Store  writes `value` (of the buffer's dtype) to element `offset` of a buffer.
//   Loop   runs its body for var = 0 … extent-1 ascending; a chunked loop only for the part
//          [p*chunk, min(extent, (p+1)*chunk)) where p is a parallel variable. After the body of
//          each iteration its reductions take one element each. When the loop ends, each
//          reduction's result variable has its value; it may be used by later statements of the
//          same or an inner scope, never inside the loop itself.
//          A carried variable is `init`, computed before the loop, in the first iteration and
//          `next` of the iteration before in the others; all of them step at once, after the
//          reductions. Its last `next` (or `init`, if there was no iteration) is the value of
//          its result variable, which is used as a reduction's is.
//          `vector` is a promise that iterations are independent but for the reductions (none of
//          them of kind chain); a backend may then evaluate several at once. Nothing is carried.
//          `ordered` allows iterations to store to one element several times and to read
//          elements of a written buffer; elsewhere a loop's iterations store to different
//          elements of written buffers (verify_kernel proves it).
//   Check  sets the run's fault code when `ok` is false. The run then fails; its outputs are void.
//
// Reductions. Bits are fixed by the kind, never by how a backend evaluates it (docs/NUMERICS.md):
//   chain  total = +0; per segment of `segment` iterations: acc = +0; acc = fma(value, value2, acc)
//          ascending; total = total + acc. A false guard skips the iteration but counts it. Without
//          value2 acc = acc + value. Integers wrap. segment = 0: one segment.
//   tree   the canonical sum (or product): element i goes to lane i mod 64 of block i div 1024;
//          lanes start at the identity and take elements ascending, join by halving distance
//          32 … 1; 1024 blocks join ascending from the identity to a super-block, and super-blocks
//          join ascending from the identity. i is the iteration number, guard as above. A tree
//          reduction's loop is never chunked. Of a single super-block that last join changes no
//          bit: a sum from +0 is never -0.
//   exact  max, min, or integer/bool sum, product, and, or: order cannot change the result.
//
// Values. An expression is a node of the kernel's pool, pure and hash-consed: equal structure means
// equal id. Floats are IEEE f32 and f64, each operation rounded once to nearest even; nothing is
// contracted. Narrower floats and integers below a byte can only be loaded, stored, selected,
// bitcast and converted. Integers wrap; div truncates, x/0 = 0, x rem 0 = 0, MIN/-1 = MIN; shifts
// by the width or more give 0 (arithmetic right: the sign). floor_div and floor_mod are for indices
// (i64, divisor > 0). min and max on floats are IEEE 754-2019 minimum and maximum: NaN wins, -0 <
// +0. Comparisons with NaN are false but ne. Which payload a NaN has is not specified inside a
// kernel; conversions, neg and abs of NaN give a NaN; select, loads and stores keep bits. A load
// with a guard reads memory only where the guard is true and gives `fallback` elsewhere.
//
// Calls. A function is one expression over its parameters, with no memory but tables; a call has
// the value of that expression with the arguments in place of the parameters, bit by bit. A
// definition calls only functions that were there before it, so there is no recursion (function.h).

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/convert.h"
#include "base/dtype.h"
#include "base/inline_vector.h"

namespace pyc::loop {

using ExprId = uint32_t;
using VarId = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;

enum class Op : uint8_t {
  kConst,  // word
  kVar,    // imm = VarId
  kLoad,   // imm = buffer, a = offset, b = guard or kNone, c = fallback or kNone
  kTable,  // imm = table, a = index (i64, must be in range)
  kAdd,
  kSub,
  kMul,
  kDiv,
  kRem,
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  kAnd,  // integers and bool
  kOr,
  kXor,
  kShl,
  kShr,  // arithmetic for signed, logical for unsigned
  kEq,   // comparisons give bool
  kNe,
  kLt,
  kLe,
  kNeg,
  kNot,  // integers and bool
  kAbs,
  kSqrt,
  kFloor,  // floats, to an integral value
  kCeil,
  kTrunc,
  kRoundEven,
  kFma,      // floats: fma(a, b, c)
  kSelect,   // a ? b : c
  kConvert,  // between any two dtypes, by the rules of docs/NUMERICS.md
  kBitcast,  // between dtypes of as many bits
  kCall,     // imm = function; a, b, c = its arguments, kNone where it has fewer parameters
};

inline bool is_comparison(Op op) { return op >= Op::kEq && op <= Op::kLe; }

struct ExprNode {
  Op op = Op::kConst;
  DType dtype = DType::kI64;
  ExprId a = kNone;
  ExprId b = kNone;
  ExprId c = kNone;
  int64_t imm = 0;
  Word word = 0;   // kConst only
  int64_t lo = 0;  // integers: every value lies in [lo, hi]
  int64_t hi = 0;
};

struct Table {
  DType dtype;
  std::vector<Word> words;
};

// A loop or parallel variable (i64, in [0, extent)), the result of a reduction (extent kResult), or
// a carried variable or its result (either: with an extent its values are proven to lie in it).
inline constexpr int64_t kResult = -1;

struct Var {
  std::string name;
  DType dtype = DType::kI64;
  int64_t extent = kResult;
};

enum class Access : uint8_t { kRead, kWrite, kScratch };

struct Buffer {
  std::string name;
  DType dtype = DType::kF32;
  int64_t elements = 0;
  Access access = Access::kRead;
  // A written buffer may be the very memory of this read one (in_place.h says of which), or kNone;
  // an element that is not stored then has the value it had there.
  // All other buffers that are not read only overlap no other one.
  uint32_t in_place_of = kNone;
};

// Of a tree reduction.
inline constexpr int kTreeLanes = 64;
inline constexpr int64_t kTreeBlock = 1024;
inline constexpr int64_t kTreeSuperBlock = 1024 * kTreeBlock;

enum class ReduceKind : uint8_t { kChain, kTree, kExact };
enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin, kAnd, kOr };

struct Reduction {
  ReduceKind kind = ReduceKind::kTree;
  ReduceOp op = ReduceOp::kSum;
  ExprId value = kNone;
  ExprId value2 = kNone;  // chain only: the second factor, or kNone
  ExprId guard = kNone;   // kNone: every iteration counts
  int64_t segment = 0;    // chain only
  VarId result = kNone;   // its dtype is the accumulator's and the operands'
};

struct Carry {
  VarId var = kNone;  // inside the loop
  ExprId init = kNone;
  ExprId next = kNone;
  VarId result = kNone;  // after it; same dtype and extent as `var`
};

struct Store {
  uint32_t buffer = 0;
  ExprId offset = kNone;
  ExprId value = kNone;
};

struct Check {
  ExprId ok = kNone;
  int32_t code = 1;
};

enum class StmtKind : uint8_t { kStore, kLoop, kCheck };

// Names an entry of the kernel's stores, loops or checks.
struct Stmt {
  StmtKind kind;
  uint32_t index;
};

struct Loop {
  VarId var = kNone;
  int64_t extent = 0;
  VarId chunk_var = kNone;  // a parallel variable, or kNone
  int64_t chunk = 0;
  bool vector = false;
  bool ordered = false;
  std::vector<Stmt> body = {};
  std::vector<Reduction> reductions = {};
  std::vector<Carry> carries = {};
};

struct Affine;
struct Function;

// Owns the expressions of one kernel. Making a node folds and orders integer arithmetic (sums of
// products of index variables get one normal form), never floats.
class Pool {
 public:
  ExprId constant(DType t, Word word);
  ExprId integer(int64_t value) { return constant(DType::kI64, static_cast<Word>(value)); }
  VarId new_var(std::string name, DType t, int64_t extent);
  ExprId var(VarId v);
  ExprId load(uint32_t buffer, DType t, ExprId offset, ExprId guard = kNone,
              ExprId fallback = kNone);
  uint32_t table(DType t, std::vector<Word> words);
  ExprId table_load(uint32_t table, ExprId index);
  // The number of a function in this pool; one and the same for equal definitions.
  uint32_t function(const std::shared_ptr<const Function>& function);
  ExprId call(uint32_t function, ExprId a, ExprId b = kNone, ExprId c = kNone);
  ExprId unary(Op op, ExprId a);
  ExprId binary(Op op, ExprId a, ExprId b);
  ExprId fma(ExprId a, ExprId b, ExprId c);
  ExprId select(ExprId cond, ExprId a, ExprId b);
  ExprId convert(ExprId a, DType to);
  ExprId bitcast(ExprId a, DType to);
  // What `n`, an operation or a load, is with these operands; buffers, tables and functions keep
  // their numbers.
  ExprId like(const ExprNode& n, ExprId a, ExprId b, ExprId c);

  const ExprNode& node(ExprId id) const { return nodes_[id]; }
  DType dtype(ExprId id) const { return nodes_[id].dtype; }
  size_t size() const { return nodes_.size(); }
  const Var& var_info(VarId v) const { return vars_[v]; }
  size_t var_count() const { return vars_.size(); }
  const std::vector<Table>& tables() const { return tables_; }
  const std::vector<std::shared_ptr<const Function>>& functions() const { return functions_; }
  bool is_integer(ExprId id, int64_t value) const;

 private:
  ExprId intern(ExprNode node);
  void recombine(Affine& sum);
  ExprId fold_integer(Op op, ExprId a, ExprId b);
  ExprId floor_div(ExprId a, int64_t divisor);
  ExprId floor_mod(ExprId a, int64_t divisor);

  std::vector<ExprNode> nodes_;
  std::vector<Var> vars_;
  std::vector<Table> tables_;
  std::vector<std::shared_ptr<const Function>> functions_;
  // Where nodes are found by what they are: a table of a power of two slots, half of them free,
  // with the next free one for what does not fit at its own.
  struct Slot {
    uint32_t hash = 0;
    ExprId id = kNone;
  };
  void grow_index();
  std::vector<Slot> index_;
};

inline constexpr size_t kMaxParams = 3;

// Made by make_function, then never changed: kernels share it. The result of a float function lies
// in [lo, hi] or is NaN; that of an integer one in the range of `value`.
struct Function {
  std::string name;  // letters, digits and '_'
  Pool pool;
  std::vector<VarId> params;  // variables of `pool`
  ExprId value = kNone;
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
  std::string text;                                    // as it stands in a kernel's text
  std::vector<std::shared_ptr<const Function>> calls;  // the functions it calls, each once
  int64_t operations = 0;  // nodes of the definition once its own calls are written out
  const ExprNode& result() const { return pool.node(value); }
};

// An i64 expression as a sum: constant + Σ coefficient · atom, atoms ascending by id, no zero
// coefficients. An atom is anything that is not itself such a sum.
struct Affine {
  int64_t constant = 0;
  InlineVector<std::pair<ExprId, int64_t>, 6> terms;
  int64_t coefficient(ExprId atom) const;
  int64_t coefficient(const Pool& pool, VarId var) const;
};
Affine affine_of(const Pool& pool, ExprId id);
ExprId from_affine(Pool& pool, const Affine& sum);

// Whether the expression depends on the variable.
bool depends_on(const Pool& pool, ExprId id, VarId var);

struct Kernel {
  std::string name;
  Pool pool;
  std::vector<Buffer> buffers;  // in the order of the kernel ABI's pointer table
  std::vector<VarId> parallel;  // may be empty: one point
  std::vector<Stmt> body;
  std::vector<Store> stores;
  std::vector<Loop> loops;
  std::vector<Check> checks;

  // Number of points of the parallel box.
  int64_t parallel_size() const;
  // Byte offset of each scratch buffer within a thread's scratch memory (others: -1), and the
  // total, every buffer 64-byte aligned.
  std::vector<int64_t> scratch_offsets() const;
  int64_t scratch_bytes() const;
};

// The kernel as text, one statement a line. Equal text means equal kernels: it names nothing by
// graph names, so it is also the key by which equal kernels are compiled once.
std::string print(const Kernel& kernel);

}  // namespace pyc::loop
