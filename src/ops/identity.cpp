#include "ops/lowering.h"
#include "ops/support/backward.h"
#include "ops/support/infer.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

ValueId simplify_identity(Patch& patch, const NodeView& node) {
  return patch.by("identity", node.input(0));
}

ValueId gradient_identity(Backward& b) { return b.g(); }

}  // namespace

const ir::OpDef& op_identity() {
  static const ir::OpDef def{
      .name = "identity",
      .summary = "The input, bit for bit.",
      .infer = [](const InferArgs& args) -> Types {
        return one(args.inputs[0].dtype, args.inputs[0].shape);
      },
      .lower = [](LowerContext& context, int,
                  std::span<const Expr> index) { return context.input(0, index); },
      .traits = {.elementwise = true, .moves_data = true},
      .simplify = simplify_identity,
      .gradient = gradient_of_one<gradient_identity>,
      .onnx = {.name = "Identity", .small = true},
  };
  return def;
}

}  // namespace pyc::ops
