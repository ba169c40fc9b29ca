#include <numeric>

#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_split(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& sizes = args.attr_ints("sizes");
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  const auto axis = static_cast<size_t>(from_front(args.attr_int("axis"), x.rank()));
  int64_t rest = x.shape[axis];
  for (int64_t size : sizes) {
    if (size < 0 || size > rest) rest = -1;
    if (rest >= 0) rest -= size;
  }
  if (sizes.empty() || rest != 0) {
    return refuse(Code::kShapeMismatch, "sizes ", sizes, " do not make up dim ",
                  static_cast<int64_t>(axis), " of ", x);
  }
  std::vector<TensorType> parts(sizes.size(), x);
  for (size_t i = 0; i < sizes.size(); ++i) parts[i].shape[axis] = sizes[i];
  return parts;
}

Expr lower_split(LowerContext& context, int output, std::span<const Expr> index) {
  const Ints& sizes = context.attr_ints("sizes");
  const int64_t begin = std::accumulate(sizes.begin(), sizes.begin() + output, int64_t{0});
  Index at = to_index(index);
  Expr& along =
      at[static_cast<size_t>(from_front(context.attr_int("axis"), context.input_type(0).rank()))];
  along = along + context.index(begin);
  return context.input(0, at);
}

Grads gradient_split(ir::GraphBuilder& builder, const ir::Node& node,
                     std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  std::vector<ValueId> parts;
  for (size_t i = 0; i < node.outputs.size(); ++i) parts.push_back(b.g(i));
  return b.outputs({b.stored(b.concat(parts, b.attrs().attr_int("axis")), 0)});
}

Result<ValueId> draw_split(Draw& d, DType t) {
  Shape shape = d.shape(1);
  const int64_t axis = d.axis(std::ssize(shape));
  const size_t at = static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis);
  Ints sizes;
  shape[at] = 0;
  for (int64_t i = d.pick(1, 4); i > 0; --i) {
    sizes.push_back(d.pick(d.chance(5) ? 0 : 1, 4));
    shape[at] += sizes.back();
  }
  return d.op({d.tensor(t, shape)}, {{"axis", axis}, {"sizes", sizes}});
}

}  // namespace

const ir::OpDef& op_split() {
  static const ir::OpDef def{
      .name = "split",
      .summary = "x cut along an axis into parts of the given sizes, one output each.",
      .outputs = ir::kVariadic,
      .attrs = {optional("axis", int64_t{0}), required("sizes", ir::AttrKind::kInts)},
      .infer = infer_split,
      .lower = lower_split,
      .traits = {.moves_data = true},
      .gradient = gradient_split,
      .draw = {.node = draw_split},
  };
  return def;
}

}  // namespace pyc::ops
