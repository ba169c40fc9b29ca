#include "ops/support/scatter_gradient.h"

namespace pyc::ops {
namespace {

// `v` with 1 where it is 0.
ValueId without_zeros(Backward& b, ValueId v) {
  return b.where(b.is(v, 0.0), b.scalar_like(v, 1.0), v);
}

// The product of what else was multiplied into the place of each update.
ValueId other_factors(Backward& b, const ScatterAccess& access) {
  const ValueId updates = b.x(2);
  const DType t = b.type(updates).dtype;
  const auto marks = [&](ValueId v) { return b.cast(b.is(v, 0.0), t); };
  const ValueId zeros = access.read(access.write(marks(b.x(0)), marks(updates), "add"));
  const ValueId product =
      access.read(access.write(without_zeros(b, b.x(0)), without_zeros(b, updates), "mul"));
  const ValueId of_zero = b.only(b.is(zeros, 1.0), product);
  const ValueId of_other = b.only(b.is(zeros, 0.0), b.div(product, without_zeros(b, updates)));
  return b.where(b.is(updates, 0.0), of_zero, of_other);
}

}  // namespace

ValueId last_written(Backward& b, const ScatterAccess& access, const Shape& data) {
  const ValueId nobody = b.expand(b.constant(DType::kI64, {}, {-1.0}), data);
  return b.equal(access.read(access.write(nobody, access.numbers, "none")), access.numbers);
}

ScatterGradients scatter_gradients(Backward& b, const ScatterAccess& access) {
  const std::string& reduction = b.attrs().attr_string("reduction");
  const ValueId g = b.g();
  const ValueId at_updates = access.read(g);
  const Shape data = b.input_type(0).shape;
  if (reduction == "none") {
    const ValueId nothing = b.zeros(b.type(g).dtype, b.input_type(2).shape);
    return {access.write(g, nothing, "none"), b.only(last_written(b, access, data), at_updates)};
  }
  if (reduction == "add") return {g, at_updates};
  if (reduction == "mul") {
    const ValueId ones = b.expand(b.scalar_like(g, 1.0), data);
    return {b.mul(g, access.write(ones, b.x(2), "mul")),
            b.mul(at_updates, other_factors(b, access))};
  }
  const ValueId data_taken = b.equal(b.x(0), b.y());
  const ValueId update_taken = b.equal(b.x(2), access.read(b.y()));
  const auto marks = [&](ValueId v) { return b.cast(v, b.type(g).dtype); };
  const ValueId share = b.div(g, access.write(marks(data_taken), marks(update_taken), "add"));
  return {b.only(data_taken, share), b.only(update_taken, access.read(share))};
}

}  // namespace pyc::ops
