#include <numeric>

#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/elementwise.h"
#include "ops/support/window.h"

namespace pyc::ops {
namespace {

std::vector<ir::AttrDef> attrs_col2im() {
  auto result = window_attrs();
  result.insert(result.begin(), {required("image_shape", ir::AttrKind::kInts),
                                 required("block_shape", ir::AttrKind::kInts)});
  return result;
}

int64_t product(const Ints& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{1}, std::multiplies<>());
}

Types infer_col2im(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& image = args.attr_ints("image_shape");
  const Ints& block = args.attr_ints("block_shape");
  PYC_TRY(require_dtype("input", x, kNumbers));
  PYC_TRY(require_rank("input", x, 3));
  PYC_TRY(require_ints("image_shape", image, image.size(), 1, kMaxWindowAttr));
  PYC_TRY(require_ints("block_shape", block, image.size(), 1, kMaxWindowAttr));
  PYC_ASSIGN(const Window window, make_window(args.attrs, block));
  PYC_ASSIGN(const Ints counts, count_windows(window, image));
  PYC_TRY(ir::check_type({DType::kU8, counts}));
  if (x.shape[1] % product(block) != 0 || x.shape[2] != product(counts)) {
    return refuse(Code::kShapeMismatch, "the input ", x, " must have a multiple of ",
                  product(block), " rows and ", product(counts), " columns");
  }
  return one(x.dtype, with_planes(x.shape[0], x.shape[1] / product(block), image));
}

Expr lower_col2im(LowerContext& context, int, std::span<const Expr> index) {
  const Ints& block = context.attr_ints("block_shape");
  const Window window = window_of(context.node().attrs, block);
  const Ints counts = *count_windows(window, context.attr_ints("image_shape"));
  const DType t = context.input_type(0).dtype;
  const auto term = [&](std::span<const Expr> k) {
    Index at;
    Expr inside = eq(context.index(0), context.index(0));
    for (size_t d = 0; d < window.dims(); ++d) {
      const Expr place =
          index[d + 2] + context.index(window.begin[d]) - k[d] * context.index(window.dilations[d]);
      const Expr stride = context.index(window.strides[d]);
      at.push_back(floor_div(place, stride));
      inside = inside & eq(floor_mod(place, stride), context.index(0)) &
               between(context, at.back(), 0, counts[d]);
    }
    const Expr row = index[1] * context.index(product(block)) + position(context, k, block);
    const Expr x = context.input_if(0, Index{index[0], row, position(context, at, counts)}, inside,
                                    zero(context, t));
    return ReduceTerm{.value = convert(x, compute_dtype(t)),
                      .guard = always(inside) ? Expr{} : inside};
  };
  return rounded(context,
                 context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, block, term));
}

ValueId gradient_col2im(Backward& b) {
  // The blocks of what arrives, cut out dim by dim: [N, C, block…, places…].
  const Ints& block = b.attrs().attr_ints("block_shape");
  const Window window = window_of(b.node_attrs(), block);
  const Ints counts = *count_windows(window, b.attrs().attr_ints("image_shape"));
  const size_t dims = window.dims();
  Ints pads(2 * (dims + 2), 0);
  for (size_t d = 0; d < dims; ++d) {
    pads[d + 2] = window.begin[d];
    pads[d + 2 + dims + 2] = window.end[d];
  }
  ValueId v = b.op("pad", {b.g()}, {{"pads", pads}});
  Ints order{0, 1};
  for (size_t d = 0; d < dims; ++d) {
    std::vector<double> at;
    for (int64_t k = 0; k < block[d]; ++k) {
      for (int64_t o = 0; o < counts[d]; ++o) {
        at.push_back(static_cast<double>(o * window.strides[d] + k * window.dilations[d]));
      }
    }
    const auto axis = static_cast<int64_t>(2 + 2 * d);
    const ValueId indices = b.constant(DType::kI64, {block[d], counts[d]}, at);
    v = b.op("gather", {v, indices}, {{"axis", axis}});
    order.push_back(axis);
  }
  for (size_t d = 0; d < dims; ++d) order.push_back(static_cast<int64_t>(3 + 2 * d));
  return b.reshape(b.transpose(v, order), b.input_type(0).shape);
}

Result<ValueId> draw_col2im(Draw& d, DType t) {
  DrawnWindow w = drawn_window(d, d.pick(1, 2));
  int64_t block = 1;
  int64_t count = 1;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    block *= w.kernel[i];
    count *= w.counts[i];
  }
  const ValueId x = d.tensor(t, {d.pick(1, 2), block * d.pick(1, 2), count});
  w.attrs["image_shape"] = w.planes;
  w.attrs["block_shape"] = w.kernel;
  return d.op({x}, std::move(w.attrs));
}

}  // namespace

const ir::OpDef& op_col2im() {
  static const ir::OpDef def{
      .name = "col2im",
      .summary =
          "Images from columns of blocks (N, C·block, number of blocks): what overlaps is "
          "added in the order of the block's elements.",
      .attrs = attrs_col2im(),
      .infer = infer_col2im,
      .lower = lower_col2im,
      .gradient = gradient_of_one<gradient_col2im>,
      .draw = {.node = draw_col2im},
  };
  return def;
}

}  // namespace pyc::ops
