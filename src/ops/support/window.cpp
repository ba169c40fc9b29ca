#include "ops/support/window.h"

#include <limits>

namespace pyc::ops {
namespace {

constexpr int64_t kMaxAttr = std::numeric_limits<int32_t>::max();

std::array<int64_t, 2> pair(const Ints& values, size_t at = 0) {
  return {values[at], values[at + 1]};
}

Window trusted_window(const Ints& kernel, const Ints& strides, const Ints& pads,
                      const Ints& dilations) {
  return {pair(kernel), pair(strides), pair(pads), pair(pads, 2), pair(dilations)};
}

}  // namespace

Result<Window> make_window(const Ints& kernel, const Ints& strides, const Ints& pads,
                           const Ints& dilations) {
  PYC_TRY(require_ints("kernel", kernel, 2, 1, kMaxAttr));
  PYC_TRY(require_ints("strides", strides, 2, 1, kMaxAttr));
  PYC_TRY(require_ints("pads", pads, 4, 0, kMaxAttr));
  PYC_TRY(require_ints("dilations", dilations, 2, 1, kMaxAttr));
  return trusted_window(kernel, strides, pads, dilations);
}

Result<std::array<int64_t, 2>> count_windows(const Window& window, const TensorType& x) {
  std::array<int64_t, 2> counts{};
  for (size_t d = 0; d < 2; ++d) {
    const int64_t padded = x.shape[d + 2] + window.begin[d] + window.end[d];
    const int64_t reach = (window.kernel[d] - 1) * window.dilations[d] + 1;
    if (reach > padded) {
      return refuse(Code::kShapeMismatch, "the window reaches over ", reach,
                    d == 0 ? " rows" : " columns", ", the padded input ", x, " has ", padded);
    }
    counts[d] = (padded - reach) / window.strides[d] + 1;
  }
  return counts;
}

Tap tap_at(LowerContext& context, const Window& window, Expr oh, Expr ow, Expr kh, Expr kw) {
  const Shape& shape = context.input_type(0).shape;
  const auto place = [&](size_t d, Expr o, Expr k) {
    return o * context.index(window.strides[d]) + k * context.index(window.dilations[d]) -
           context.index(window.begin[d]);
  };
  const Expr h = place(0, oh, kh);
  const Expr w = place(1, ow, kw);
  return {h, w, between(context, h, 0, shape[2]) & between(context, w, 0, shape[3])};
}

Expr count_taps(LowerContext& context, const Window& window, Expr oh, Expr ow) {
  const Shape& shape = context.input_type(0).shape;
  const auto along = [&](size_t d, Expr o) {
    const Expr first = o * context.index(window.strides[d]) - context.index(window.begin[d]);
    const Expr last = first + context.index(window.kernel[d]);
    return min(last, context.index(shape[d + 2])) - max(first, context.index(0));
  };
  return along(0, oh) * along(1, ow);
}

Window conv_window(const LowerContext& context) {
  const Shape& w = context.input_type(1).shape;
  return trusted_window({w[2], w[3]}, context.attr_ints("strides"), context.attr_ints("pads"),
                        context.attr_ints("dilations"));
}

std::vector<ir::AttrDef> pool_attrs() {
  return {required("kernel", ir::AttrKind::kInts), optional("strides", Ints{1, 1}),
          optional("pads", Ints{0, 0, 0, 0})};
}

Types infer_pool(const InferArgs& args, const DTypeClass& accepted) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("input", x, accepted));
  PYC_TRY(require_rank("input (NCHW)", x, 4));
  PYC_ASSIGN(const Window window, make_window(args.attr_ints("kernel"), args.attr_ints("strides"),
                                              args.attr_ints("pads"), {1, 1}));
  for (size_t d = 0; d < 2; ++d) {
    if (x.shape[d + 2] == 0) {
      return refuse(Code::kShapeMismatch, "the input ", x, " has an empty plane");
    }
    if (window.begin[d] >= window.kernel[d] || window.end[d] >= window.kernel[d]) {
      return refuse(Code::kInvalidArgument, "pads ", args.attr_ints("pads"),
                    " must be smaller than the kernel ", args.attr_ints("kernel"));
    }
  }
  PYC_ASSIGN(const auto counts, count_windows(window, x));
  return one(x.dtype, {x.shape[0], x.shape[1], counts[0], counts[1]});
}

Window pool_window(const LowerContext& context) {
  return trusted_window(context.attr_ints("kernel"), context.attr_ints("strides"),
                        context.attr_ints("pads"), {1, 1});
}

}  // namespace pyc::ops
