#pragma once

// What an op's `lower` function works with. It describes one output element as an expression over
// elements of the inputs; it never sees buffers, loops or neighbours, so that the compiler is free
// to fuse, inline and schedule.

#include <functional>
#include <span>
#include <vector>

#include "base/fault.h"
#include "ir/graph.h"
#include "loop/builder.h"

namespace pyc {
struct MatrixUnit;
}

namespace pyc::ops {

using loop::Expr;

// One element of a reduction: see loop::Reduction. value2 and guard may be left out.
struct ReduceTerm {
  Expr value;
  Expr value2 = {};
  Expr guard = {};
};

class LowerContext {
 public:
  virtual ~LowerContext() = default;

  virtual const ir::Node& node() const = 0;
  virtual const ir::TensorType& input_type(int i) const = 0;
  virtual const ir::TensorType& output_type(int i) const = 0;
  int inputs() const { return static_cast<int>(node().inputs.size()); }

  virtual loop::Pool& pool() = 0;

  // The element of input i at `index` (one i64 expression per dim of the input, each in range).
  virtual Expr input(int i, std::span<const Expr> index) = 0;
  // The same where `guard` holds, else `fallback`; the index need only be in range where it holds.
  virtual Expr input_if(int i, std::span<const Expr> index, Expr guard, Expr fallback) = 0;

  // The reduction over the box of `extents` (row-major, last fastest) of the term at each index.
  // The term's dtype is the accumulator's: f32, f64 or an integer type, never a narrow float. A
  // term is evaluated even where its guard is false, so its reads need guards of their own.
  virtual Expr reduce(loop::ReduceKind kind, loop::ReduceOp op, std::span<const int64_t> extents,
                      const std::function<ReduceTerm(std::span<const Expr>)>& term,
                      int64_t segment = 0) = 0;

  // The unit in whose order this node's products are summed; null: canonical. `reduce` writes a
  // chain of two factors in it, counting the terms as they come; then it has no guard, so that a
  // term that does not count has a factor +0.
  virtual const MatrixUnit* unit() const = 0;

  // The run fails if `ok` is false for any element, with this node's name, `what`, the range and
  // the first number of input i that is not in it. `ok` must hold where the elements it reads of
  // input i are all accepted.
  virtual void check_input(int i, Expr ok, const Accepted& accepted, std::string_view what) = 0;

  // Whether every element of input i is known to be 0, less or NaN.
  virtual bool at_most_zero(int i) const = 0;

  // Shorthands. `input` converted to the dtype arithmetic is done in (f32 for narrow floats).
  Expr input_compute(int i, std::span<const Expr> index);
  Expr index(int64_t v) { return loop::index(pool(), v); }
  int64_t attr_int(std::string_view name) const;
  double attr_float(std::string_view name) const;
  bool attr_bool(std::string_view name) const;
  DType attr_dtype(std::string_view name) const;
  const std::string& attr_string(std::string_view name) const;
  const std::vector<int64_t>& attr_ints(std::string_view name) const;
};

// Segment of a contraction's fma chain (docs/NUMERICS.md).
inline constexpr int64_t kChainSegment = 256;

}  // namespace pyc::ops
