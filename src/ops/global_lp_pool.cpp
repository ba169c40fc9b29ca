#include "ops/support/draws.h"
#include "ops/support/global_pool.h"

namespace pyc::ops {
namespace {

Types infer_global_lp_pool(const InferArgs& args) {
  if (args.attr_int("p") < 1) {
    return refuse(Code::kInvalidArgument, "p must be positive, found ", args.attr_int("p"));
  }
  return infer_global_pool(args, kFloats);
}

Result<ValueId> draw_global_lp_pool(Draw& d, DType t) {
  return drawn_planes(d, t, {{"p", d.pick(1, 3)}});
}

}  // namespace

const ir::OpDef& op_global_lp_pool() {
  static const ir::OpDef def{
      .name = "global_lp_pool",
      .summary = "The p-norm of each plane of x (NC, planes), in the order of lp_pool.",
      .attrs = {optional("p", int64_t{2})},
      .infer = infer_global_lp_pool,
      .decompose = [](ir::GraphBuilder& builder,
                      const ir::Node& node) { return as_one_window(builder, node, "lp_pool"); },
      .onnx = {.name = "GlobalLpPool", .attrs = "p", .since = 2},
      .draw = {.node = draw_global_lp_pool},
  };
  return def;
}

}  // namespace pyc::ops
