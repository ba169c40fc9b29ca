#pragma once

// For gradient rules, so that a rule reads like its formula. As in a decomposition, the first call
// that is refused makes all later ones do nothing. Arithmetic is done as forward: narrow floats are
// widened, and each gradient is rounded once, to its input's dtype.

#include <span>
#include <string_view>
#include <vector>

#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {

using Grads = Result<std::vector<ValueId>>;

class Backward : public Compose {
 public:
  Backward(ir::GraphBuilder& builder, const ir::Node& node, std::span<const ValueId> grads)
      : Compose(builder, node), grads_(grads) {}

  // Input i, output i and the gradient that arrives for output i (zeros if none does), wide.
  ValueId x(size_t i = 0) { return wide_input(i); }
  ValueId y(size_t i = 0) { return wide(node_.outputs[i]); }
  ValueId g(size_t i = 0);
  bool arrives(size_t i) const { return grads_[i] != ir::kNoId; }
  const ir::Attrs& node_attrs() const { return node_.attrs; }
  // Output i as it is stored; for indices.
  ValueId output(size_t i) const { return node_.outputs[i]; }

  ValueId reshape(ValueId v, ir::Shape shape) {
    return type(v).shape == shape ? v : Compose::reshape(v, std::move(shape));
  }
  ValueId wide(ValueId v) { return cast(v, compute_dtype(type(v).dtype)); }
  ValueId fn(std::string_view name, ValueId v) { return op(name, {v}); }
  ValueId neg(ValueId v) { return op("neg", {v}); }
  ValueId less(ValueId a, ValueId b) { return op("less", {a, b}); }
  ValueId equal(ValueId a, ValueId b) { return op("equal", {a, b}); }
  ValueId where(ValueId condition, ValueId a, ValueId b) { return op("where", {condition, a, b}); }
  // `v` where the condition holds, else 0; and the other way round.
  ValueId only(ValueId condition, ValueId v) { return where(condition, v, scalar_like(v, 0.0)); }
  ValueId except(ValueId condition, ValueId v) { return where(condition, scalar_like(v, 0.0), v); }
  ValueId is(ValueId v, double value) { return equal(v, scalar_like(v, value)); }
  ValueId zeros(DType t, ir::Shape shape) {
    return expand(constant(t, {}, {0.0}), std::move(shape));
  }
  ValueId sum(ValueId v, const Ints& axes, bool keepdims);

  // `v`, of the shape the inputs are broadcast to, as the gradient of input i: summed over the dims
  // that were broadcast, and of its dtype.
  ValueId to_input(ValueId v, size_t i) { return stored(sum_to(v, input_type(i).shape), i); }
  // `v` summed to a shape that broadcasts to its own.
  ValueId sum_to(ValueId v, const ir::Shape& shape);
  // `v` rounded to the dtype of input i.
  ValueId stored(ValueId v, size_t i) { return cast(v, input_type(i).dtype); }

 private:
  std::span<const ValueId> grads_;
};

// The rule of an op with one float input, from one formula of the gradient of that input.
template <auto Formula>
Grads gradient_of_one(ir::GraphBuilder& builder, const ir::Node& node,
                      std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const ValueId result = b.stored(Formula(b), 0);
  return b.outputs({result});
}

// The sum of `updates` [indices…, before…, after…] into zeros [before…, extent, after…] at
// indices along `axis`, in row-major order of the indices; negative ones count from the end.
ValueId sum_at(Backward& b, ValueId updates, ValueId indices, int64_t axis, const Shape& shape);
// For `v` [before…, indices…, after…]: [indices…, before…, after…], the indices having `rank` dims.
ValueId indices_first(Backward& b, ValueId v, int64_t axis, int64_t rank);
// `v` with `axis` as its last dim, and back.
ValueId axis_last(Backward& b, ValueId v, int64_t axis);
ValueId axis_back(Backward& b, ValueId v, int64_t axis);
// Dim d of `v` holds `copies` of each element, next to one another or as a whole: their sums.
ValueId sum_copies(Backward& b, ValueId v, size_t d, int64_t copies, bool adjacent);

// [a, a + 1, …, b - 1].
Ints int_range(int64_t a, int64_t b);

}  // namespace pyc::ops
