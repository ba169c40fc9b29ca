#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_repeat(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& times = args.attr_ints("times");
  PYC_TRY(require_ints("times", times, x.shape.size(), 1, ir::kMaxElements));
  Shape shape = x.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > ir::kMaxElements / times[i]) {
      return refuse(Code::kInvalidArgument, "", x, " times ", times, " is too large");
    }
    shape[i] *= times[i];
  }
  return one(x.dtype, std::move(shape));
}

Expr lower_repeat(LowerContext& context, int, std::span<const Expr> index) {
  const Ints& times = context.attr_ints("times");
  Index at;
  for (size_t i = 0; i < index.size(); ++i) {
    at.push_back(floor_div(index[i], context.index(times[i])));
  }
  return context.input(0, at);
}

ValueId gradient_repeat(Backward& b) {
  ValueId g = b.g();
  const Ints& times = b.attrs().attr_ints("times");
  for (size_t d = 0; d < times.size(); ++d) g = sum_copies(b, g, d, times[d], true);
  return g;
}

Result<ValueId> draw_repeat(Draw& d, DType t) { return drawn_repeats(d, t, "times", 1); }

}  // namespace

const ir::OpDef& op_repeat() {
  static const ir::OpDef def{
      .name = "repeat",
      .summary = "Each element repeated times[d] times along dim d.",
      .attrs = {required("times", ir::AttrKind::kInts)},
      .infer = infer_repeat,
      .lower = lower_repeat,
      .traits = {.moves_data = true},
      .gradient = gradient_of_one<gradient_repeat>,
      .draw = {.node = draw_repeat},
  };
  return def;
}

}  // namespace pyc::ops
