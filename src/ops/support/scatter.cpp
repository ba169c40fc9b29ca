#include "ops/support/scatter.h"

#include <algorithm>

namespace pyc::ops {

ir::AttrDef reduction_attr() { return optional("reduction", std::string("none")); }

Status require_scatter(const InferArgs& args) {
  constexpr std::string_view kReductions[] = {"none", "add", "mul", "max", "min"};
  const std::string& reduction = args.attr_string("reduction");
  if (std::find(std::begin(kReductions), std::end(kReductions), reduction) ==
      std::end(kReductions)) {
    return refuse(Code::kInvalidArgument, "reduction must be none, add, mul, max or min, found '",
                  reduction, "'");
  }
  const TensorType& data = args.inputs[0];
  if (reduction != "none") PYC_TRY(require_dtype("data", data, kNumbers));
  PYC_TRY(require_dtype("indices", args.inputs[1], kIndices));
  return require_same_dtype(data, args.inputs[2]);
}

bool combines(const LowerContext& context) { return context.attr_string("reduction") != "none"; }

Expr updated(LowerContext& context, Expr old, Expr update) {
  if (!combines(context)) return update;
  const DType t = old.dtype();
  const Expr a = convert(old, compute_dtype(t));
  const Expr b = convert(update, compute_dtype(t));
  const std::string& reduction = context.attr_string("reduction");
  const Expr y = reduction == "add"   ? a + b
                 : reduction == "mul" ? a * b
                 : reduction == "max" ? max(a, b)
                                      : min(a, b);
  return convert(y, t);
}

}  // namespace pyc::ops
