#include "ops/support/global_pool.h"

namespace pyc::ops {

Types infer_global_pool(const InferArgs& args, const DTypeClass& accepted) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("input", x, accepted));
  PYC_TRY(require_planes("input", x));
  const Shape planes = planes_of(x);
  for (int64_t dim : planes) {
    if (dim == 0) return refuse(Code::kShapeMismatch, "the input ", x, " has an empty plane");
  }
  return one(x.dtype, with_planes(x.shape[0], x.shape[1], Shape(planes.size(), 1)));
}

Result<std::vector<ValueId>> as_one_window(ir::GraphBuilder& builder, const ir::Node& node,
                                           std::string_view op) {
  Compose c(builder, node);
  ir::Attrs attrs = node.attrs;
  attrs["kernel"] = planes_of(c.input_type(0));
  return c.outputs({c.op(op, {node.inputs[0]}, std::move(attrs))});
}

}  // namespace pyc::ops
