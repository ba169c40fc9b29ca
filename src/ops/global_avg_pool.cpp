#include "ops/support/compose.h"
#include "ops/support/infer.h"

namespace pyc::ops {
namespace {

Types infer(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("input", x, kFloats));
  PYC_TRY(require_rank("input (NCHW)", x, 4));
  if (x.shape[2] == 0 || x.shape[3] == 0) {
    return refuse(Code::kShapeMismatch, "the input ", x, " has an empty plane");
  }
  return one(x.dtype, {x.shape[0], x.shape[1], 1, 1});
}

Result<std::vector<ValueId>> decompose(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  const Shape shape = c.input_type(0).shape;
  return c.outputs({c.op("avg_pool2d", {node.inputs[0]}, {{"kernel", Ints{shape[2], shape[3]}}})});
}

}  // namespace

const ir::OpDef& op_global_avg_pool() {
  static const ir::OpDef def{
      .name = "global_avg_pool",
      .summary = "The average over each plane of x (NCHW), in the order of avg_pool2d.",
      .infer = infer,
      .decompose = decompose,
  };
  return def;
}

}  // namespace pyc::ops
