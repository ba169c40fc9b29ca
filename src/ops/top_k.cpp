#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer_top_k(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_axis(args.attr_int("axis"), x));
  const auto axis = static_cast<size_t>(from_front(args.attr_int("axis"), x.rank()));
  const int64_t k = args.attr_int("k");
  if (k < 0 || k > x.shape[axis]) {
    return refuse(Code::kInvalidArgument, "k must lie in [0,", x.shape[axis], "], found ", k);
  }
  Shape shape = x.shape;
  shape[axis] = k;
  return std::vector<TensorType>{{x.dtype, shape}, {DType::kI64, shape}};
}

Result<std::vector<ValueId>> decompose_top_k(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const int64_t axis = std::get<int64_t>(node.attrs.at("axis"));
  const ValueId sorted =
      c.op("sort", {node.inputs[0]}, {{"axis", axis}, {"descending", node.attrs.at("largest")}});
  const ir::Attrs first{{"axes", Ints{axis}},
                        {"starts", Ints{0}},
                        {"ends", Ints{std::get<int64_t>(node.attrs.at("k"))}}};
  return c.outputs({c.op("slice", {sorted}, first), c.op("slice", {sorted + 1}, first)});
}

Result<ValueId> draw_top_k(Draw& d, DType t) {
  const Shape shape = d.shape(1, 4, 1);
  const int64_t axis = d.axis(std::ssize(shape));
  return d.op({d.tensor(t, shape)},
              {{"axis", axis},
               {"k", d.pick(0, shape[static_cast<size_t>(from_front(axis, std::ssize(shape)))])},
               {"largest", d.flip()},
               {"sorted", d.flip()}});
}

}  // namespace

const ir::OpDef& op_top_k() {
  static const ir::OpDef def{
      .name = "top_k",
      .summary =
          "The k largest (or smallest) elements along an axis and where they were, in "
          "order whether or not `sorted` asks for it; of equal ones those that come first.",
      .outputs = 2,
      .attrs = {required("k", ir::AttrKind::kInt), optional("axis", int64_t{-1}),
                optional("largest", true), optional("sorted", true)},
      .infer = infer_top_k,
      .decompose = decompose_top_k,
      .draw = {.node = draw_top_k, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
