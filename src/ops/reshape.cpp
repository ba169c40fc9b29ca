#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

constexpr int64_t kRest = -1;  // stands for whatever the other dims leave

Types infer_reshape(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  TensorType y{x.dtype, args.attr_ints("shape")};
  int64_t* rest = nullptr;
  for (int64_t& dim : y.shape) {
    if (dim != kRest) continue;
    if (rest != nullptr) {
      return refuse(Code::kInvalidArgument, "shape ", y.shape, " has -1 more than once");
    }
    rest = &dim;
  }
  if (rest != nullptr) *rest = 1;
  PYC_TRY(ir::check_type(y));
  if (rest != nullptr && y.elements() > 0 && x.elements() % y.elements() == 0) {
    *rest = x.elements() / y.elements();
  }
  if (y.elements() != x.elements() || (rest != nullptr && y.elements() == 0 && *rest != 0)) {
    return refuse(Code::kShapeMismatch, "", x, " with ", x.elements(),
                  " elements does not fit shape ", args.attr_ints("shape"));
  }
  return one(y.dtype, std::move(y.shape));
}

ir::Attrs canonical(const InferArgs& args) {
  ir::Attrs attrs = args.attrs;
  attrs["shape"] = infer_reshape(args).value().front().shape;
  return attrs;
}

ValueId simplify_reshape(Patch& patch, const NodeView& node) {
  if (const ValueId x = input_if_same(node, 0); x != kNoId) return patch.by("reshape_same", x);
  if (const auto& data = patch.constant(node.input(0))) {
    return patch.by("reshape_constant", patch.constant(node.type(), data));
  }
  const NodeView inner = patch.producer(node.input(0));
  if (!inner.is("reshape")) return kNoId;
  return patch.by("reshape_reshape",
                  patch.op("reshape", {inner.input(0)}, {{"shape", node.type().shape}}));
}

ValueId gradient_reshape(Backward& b) { return b.reshape(b.g(), b.input_type(0).shape); }

// The dims of another shape with as many elements, sometimes with a -1.
Result<ValueId> draw_reshape(Draw& d, DType t) {
  Shape to = d.shape();
  const ir::TensorType type{t, to};
  Shape from{type.elements()};
  if (d.flip()) from.insert(from.begin() + d.pick(0, 1), 1);
  if (type.elements() % 2 == 0 && d.flip()) from = {2, type.elements() / 2};
  const ValueId x = d.tensor(t, from);
  if (type.elements() > 0 && !to.empty() && d.chance(3)) {
    to[static_cast<size_t>(d.pick(0, std::ssize(to) - 1))] = -1;
  }
  return d.op({x}, {{"shape", to}});
}

}  // namespace

const ir::OpDef& op_reshape() {
  static const ir::OpDef def{
      .name = "reshape",
      .summary = "The same elements in row-major order under another shape; one dim may be -1.",
      .attrs = {required("shape", ir::AttrKind::kInts)},
      .infer = infer_reshape,
      .lower = same_position,
      .traits = {.moves_data = true},
      .canonical_attrs = canonical,
      .simplify = simplify_reshape,
      .gradient = gradient_of_one<gradient_reshape>,
      .draw = {.node = draw_reshape},
  };
  return def;
}

}  // namespace pyc::ops
