#pragma once

// What an op's `draw.node` works with: it draws sizes, operands and attributes for one node of a
// random graph, valid by construction. Whoever draws graphs implements it (tests/support/draw.h).

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/op_def.h"
#include "ir/types.h"

namespace pyc::ops {

using ir::Attrs;
using ir::Shape;
using ir::ValueId;
using Ints = std::vector<int64_t>;

class Draw {
 public:
  virtual ~Draw() = default;

  // Whether values are moderate ones inside of each op's domain. Otherwise infinities, NaN, -0, the
  // smallest and largest are among them.
  bool tame() const { return tame_; }
  virtual uint64_t bits() = 0;           // 64 random ones
  int64_t pick(int64_t lo, int64_t hi);  // both included
  bool chance(int64_t n) { return pick(1, n) == 1; }
  bool flip() { return chance(2); }
  double real(double lo, double hi);
  template <class T>
  T choose(std::initializer_list<T> list) {
    return *(list.begin() + pick(0, static_cast<int64_t>(list.size()) - 1));
  }
  std::string word(std::initializer_list<const char*> list) { return choose(list); }

  // Sizes. Dims may be 0 where `least` is.
  int64_t dim(int64_t least = 1);
  Shape shape(int64_t min_rank = 0, int64_t max_rank = 8, int64_t least = 0);
  Shape broadcastable(const Shape& shape);
  int64_t axis(int64_t rank);  // counted from the front or the back; requires a rank
  Ints axes(int64_t rank);     // some of them, or none
  Ints permutation(int64_t rank);
  DType float_dtype();
  DType any_dtype();

  // Operands: values that are there, seen through reshapes, slices, transposes and casts, or new
  // inputs and constants.
  virtual ValueId tensor(DType t, const Shape& shape) = 0;
  // A new one, always within [lo, hi).
  virtual ValueId fresh(DType t, const Shape& shape, double lo, double hi) = 0;
  // Within when tame.
  ValueId tensor_in(DType t, const Shape& shape, double lo, double hi);
  ValueId indices(const Shape& shape, int64_t lo, int64_t hi);  // i32 or i64

  // Makes the node, of the op that is drawn.
  virtual Result<ValueId> op(std::vector<ValueId> inputs, Attrs attrs = {}) = 0;

 protected:
  explicit Draw(bool tame) : tame_(tame) {}

 private:
  bool tame_;
};

}  // namespace pyc::ops
