#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/losses.h"

namespace pyc::ops {
namespace {

Types infer_nll_loss(const InferArgs& args) {
  PYC_TRY(require_class_targets(args));
  PYC_TRY(require_loss_reduction(args));
  return one(args.inputs[0].dtype, loss_shape(args));
}

Result<std::vector<ValueId>> decompose_nll_loss(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < c.inputs(); ++i) inputs.push_back(c.input(i));
  const int64_t ignored = c.attrs().attr_int("ignore_index");
  const ValueId terms = c.op("nll_terms", inputs, {{"ignore_index", ignored}});
  const std::string& reduction = c.attrs().attr_string("reduction");
  const ir::Attrs all{{"keepdims", false}};
  ValueId loss = terms;
  if (reduction == "sum") loss = c.op("reduce_sum", {terms}, all);
  if (reduction == "mean") {
    const bool counted = c.inputs() < 3 && ignored == kNothingIgnored;
    // The second result of nll_terms follows the first.
    loss = counted ? c.op("reduce_mean", {terms}, all)
                   : c.div(c.op("reduce_sum", {terms}, all), c.op("reduce_sum", {terms + 1}, all));
  }
  return c.outputs({c.cast(loss, c.input_type(0).dtype)});
}

}  // namespace

const ir::OpDef& op_nll_loss() {
  static const ir::OpDef def{
      .name = "nll_loss",
      .summary =
          "The negated x of each target's class, weighted, then summed or averaged by the weights "
          "on demand.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = {optional("ignore_index", kNothingIgnored),
                optional("reduction", std::string("mean"))},
      .infer = infer_nll_loss,
      .decompose = decompose_nll_loss,
      .onnx = {.name = "NegativeLogLikelihoodLoss", .attrs = "reduction ignore_index"},
      .draw = {.node = draw_loss},
  };
  return def;
}

}  // namespace pyc::ops
