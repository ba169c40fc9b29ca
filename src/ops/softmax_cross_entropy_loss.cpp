#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/losses.h"

namespace pyc::ops {
namespace {

Types infer_softmax_cross_entropy_loss(const InferArgs& args) {
  PYC_TRY(require_class_targets(args));
  PYC_TRY(require_loss_reduction(args));
  return std::vector<TensorType>{{args.inputs[0].dtype, loss_shape(args)}, args.inputs[0]};
}

Result<std::vector<ValueId>> decompose_softmax_cross_entropy_loss(ir::GraphBuilder& builder,
                                                                  const ir::Node& node) {
  Compose c(builder, node);
  const DType stored = c.input_type(0).dtype;
  const ValueId log_prob = c.op("log_softmax", {c.wide_input(0)}, {{"axis", int64_t{1}}});
  std::vector<ValueId> inputs{log_prob, c.input(1)};
  if (c.inputs() > 2) inputs.push_back(c.wide_input(2));
  const ValueId loss = c.op("nll_loss", inputs, node.attrs);
  return c.outputs({c.cast(loss, stored), c.cast(log_prob, stored)});
}

}  // namespace

const ir::OpDef& op_softmax_cross_entropy_loss() {
  static const ir::OpDef def{
      .name = "softmax_cross_entropy_loss",
      .summary = "nll_loss of log_softmax(x) over axis 1; and that log_softmax.",
      .min_inputs = 2,
      .max_inputs = 3,
      .outputs = 2,
      .attrs = {optional("ignore_index", kNothingIgnored),
                optional("reduction", std::string("mean"))},
      .infer = infer_softmax_cross_entropy_loss,
      .decompose = decompose_softmax_cross_entropy_loss,
      .onnx = {.name = "SoftmaxCrossEntropyLoss", .attrs = "reduction ignore_index"},
      .draw = {.node = draw_loss},
  };
  return def;
}

}  // namespace pyc::ops
