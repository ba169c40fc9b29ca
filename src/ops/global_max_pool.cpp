#include <numeric>

#include "ops/support/draws.h"
#include "ops/support/global_pool.h"
#include "ops/support/onnx.h"

namespace pyc::ops {
namespace {

Result<std::vector<ValueId>> decompose_global_max_pool(ir::GraphBuilder& builder,
                                                       const ir::Node& node) {
  Compose c(builder, node);
  Ints axes(static_cast<size_t>(c.input_type(0).rank() - 2));
  std::iota(axes.begin(), axes.end(), 2);
  return c.outputs({c.op("reduce_max", {node.inputs[0]}, {{"axes", axes}})});
}

}  // namespace

const ir::OpDef& op_global_max_pool() {
  static const ir::OpDef def{
      .name = "global_max_pool",
      .summary = "The largest of each plane of x (NC, planes).",
      .infer = [](const InferArgs& args) { return infer_global_pool(args, kNumbers); },
      .decompose = decompose_global_max_pool,
      .onnx = {.name = "GlobalMaxPool", .dtypes = kOnnxFloats},
      .draw = {.node = draw_planes},
  };
  return def;
}

}  // namespace pyc::ops
