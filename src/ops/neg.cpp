#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/onnx.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

ValueId simplify_neg(Patch& patch, const NodeView& node) {
  const NodeView inner = patch.producer(node.input(0));
  return inner.is("neg") ? patch.by("neg_neg", inner.input(0)) : kNoId;
}

bool is_minus_magnitude(const ir::Graph& graph, const ir::Node& node) {
  const ir::Node* inner = graph.producer(node.inputs[0]);
  return inner != nullptr && inner->op->name == "abs";
}

ValueId gradient_neg(Backward& b) { return b.neg(b.g()); }

}  // namespace

const ir::OpDef& op_neg() {
  static const ir::OpDef def{
      .name = "neg",
      .summary = "-x; the smallest integer stays itself.",
      .infer = [](const InferArgs& args) { return infer_elementwise(args, kSigned); },
      .lower = lower_unary<[](Expr x) { return -x; }>,
      .traits = {.elementwise = true},
      .at_most_zero = is_minus_magnitude,
      .simplify = simplify_neg,
      .gradient = gradient_of_one<gradient_neg>,
      .onnx = {.name = "Neg", .dtypes = kOnnxSigned},
  };
  return def;
}

}  // namespace pyc::ops
