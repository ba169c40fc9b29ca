#include <algorithm>

#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/scan.h"

namespace pyc::ops {
namespace {

Expr combine_cumprod(Expr total, Expr x) { return total * x; }

void kernel_cumprod(KernelContext& context) { scan(context, 1.0, combine_cumprod); }

ValueId gradient_cumprod(Backward& b) {
  // Element k is left out of every product behind it: [k, i] is the product of all up to i but k.
  // Takes n² elements for a row of n, and is right with zeros.
  const TensorType type = b.input_type(0);
  const int64_t axis = from_front(b.attrs().attr_int("axis"), type.rank());
  const int64_t n = type.shape[static_cast<size_t>(axis)];
  const auto rows = [&](ValueId v) {
    return b.reshape(axis_last(b, v, axis), {type.elements() / std::max<int64_t>(n, 1), 1, n});
  };
  const ValueId self = b.equal(b.positions(3, 1, n), b.positions(3, 2, n));
  const ValueId x = rows(b.x());
  const ValueId left_out = b.where(self, b.scalar_like(x, 1.0), x);
  ir::Attrs along = b.node_attrs();
  along["axis"] = int64_t{2};
  const ValueId products = b.op("cumprod", {left_out}, along);
  // Which results have element k among their factors.
  const bool exclusive = b.attrs().attr_bool("exclusive");
  const bool reverse = b.attrs().attr_bool("reverse");
  const ValueId first = b.positions(3, reverse ? 2 : 1, n);
  const ValueId second = b.positions(3, reverse ? 1 : 2, n);
  const ValueId has = b.op(exclusive ? "less" : "less_equal", {first, second});
  const ValueId sums = b.sum(b.only(has, b.mul(rows(b.g()), products)), {2}, false);
  Shape moved = type.shape;
  moved.erase(moved.begin() + axis);
  moved.push_back(n);
  return axis_back(b, b.reshape(sums, moved), axis);
}

}  // namespace

const ir::OpDef& op_cumprod() {
  static const ir::OpDef def{
      .name = "cumprod",
      .summary =
          "Running products along an axis; exclusive: without the element itself; reverse: from "
          "the end.",
      .attrs = scan_attrs(),
      .infer = infer_scan,
      .kernel = kernel_cumprod,
      .gradient = gradient_of_one<gradient_cumprod>,
      .draw = {.node = draw_scan},
  };
  return def;
}

}  // namespace pyc::ops
