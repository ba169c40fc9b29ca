#include "ops/support/draws.h"
#include "ops/support/global_pool.h"

namespace pyc::ops {

const ir::OpDef& op_global_avg_pool() {
  static const ir::OpDef def{
      .name = "global_avg_pool",
      .summary = "The average over each plane of x (NC, planes), in the order of avg_pool.",
      .infer = [](const InferArgs& args) { return infer_global_pool(args, kFloats); },
      .decompose = [](ir::GraphBuilder& builder,
                      const ir::Node& node) { return as_one_window(builder, node, "avg_pool"); },
      .onnx = {.name = "GlobalAveragePool"},
      .draw = {.node = draw_planes},
  };
  return def;
}

}  // namespace pyc::ops
