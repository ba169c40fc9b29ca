#include <algorithm>

#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_tile(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& repeats = args.attr_ints("repeats");
  PYC_TRY(require_ints("repeats", repeats, x.shape.size(), 0, ir::kMaxElements));
  PYC_ASSIGN(Shape shape, scaled_shape(x, repeats));
  return one(x.dtype, std::move(shape));
}

Expr lower_tile(LowerContext& context, int, std::span<const Expr> index) {
  const Shape& shape = context.input_type(0).shape;
  Index at;
  for (size_t i = 0; i < index.size(); ++i) {
    at.push_back(floor_mod(index[i], context.index(std::max<int64_t>(shape[i], 1))));
  }
  return context.input(0, at);
}

ValueId gradient_tile(Backward& b) {
  ValueId g = b.g();
  const Ints& repeats = b.attrs().attr_ints("repeats");
  for (size_t d = 0; d < repeats.size(); ++d) g = sum_copies(b, g, d, repeats[d], false);
  return g;
}

Result<ValueId> draw_tile(Draw& d, DType t) { return drawn_repeats(d, t, "repeats", 0); }

}  // namespace

const ir::OpDef& op_tile() {
  static const ir::OpDef def{
      .name = "tile",
      .summary = "x repeated as a whole, repeats[d] times along dim d.",
      .attrs = {required("repeats", ir::AttrKind::kInts)},
      .infer = infer_tile,
      .lower = lower_tile,
      .traits = {.moves_data = true},
      .gradient = gradient_of_one<gradient_tile>,
      .draw = {.node = draw_tile},
  };
  return def;
}

}  // namespace pyc::ops
