#include "ops/support/convolution.h"
#include "ops/support/products.h"

namespace pyc::ops {
namespace {

std::vector<ir::AttrDef> attrs_conv() {
  auto result = conv_attrs();
  result.push_back(wide_result_attr());
  return result;
}

Types infer_conv(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_same_dtype(x, args.inputs[1]));
  PYC_ASSIGN(Shape shape, conv_shape(args));
  if (args.inputs.size() > 2) PYC_TRY(check_bias(x, args.inputs[2], shape[1]));
  PYC_ASSIGN(const DType to, product_dtype(args));
  return one(to, std::move(shape));
}

Expr lower_conv(LowerContext& context, int, std::span<const Expr> index) {
  const Window window = conv_window(context);
  const Expr sum = sum_conv(context, window, index, [&](const ConvStep& step) {
    const Tap tap = tap_at(context, window, index.subspan(2), step.k);
    ReduceTerm term = read_tap(context, tap, index[0], step.channel);
    term.value2 = context.input_compute(1, step.w);
    return term;
  });
  return finish_conv(context, sum, 2, index[1]);
}

}  // namespace

const ir::OpDef& op_conv() {
  static const ir::OpDef def{
      .name = "conv",
      .summary =
          "Convolution of x (NC, planes) with w (OI, kernel), plus a bias per output channel "
          "if given.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = attrs_conv(),
      .infer = infer_conv,
      .lower = lower_conv,
      .traits = {.product = true},
  };
  return def;
}

}  // namespace pyc::ops
