#include "ops/support/window.h"

#include <algorithm>

namespace pyc::ops {

Ints list_attr(const ir::Attrs& attrs, std::string_view name, size_t count, int64_t fallback) {
  const auto& values = std::get<Ints>(attrs.find(name)->second);
  return values.empty() ? Ints(count, fallback) : values;
}

std::vector<ir::AttrDef> window_attrs() {
  return {optional("strides", Ints{}), optional("pads", Ints{}), optional("dilations", Ints{})};
}

Window window_of(const ir::Attrs& attrs, Ints kernel) {
  const size_t dims = kernel.size();
  const Ints pads = list_attr(attrs, "pads", 2 * dims, 0);
  const auto half = pads.begin() + static_cast<std::ptrdiff_t>(dims);
  return {.kernel = std::move(kernel),
          .strides = list_attr(attrs, "strides", dims, 1),
          .begin = Ints(pads.begin(), half),
          .end = Ints(half, pads.end()),
          .dilations = list_attr(attrs, "dilations", dims, 1)};
}

Result<Window> make_window(const ir::Attrs& attrs, const Ints& kernel) {
  const size_t dims = kernel.size();
  const auto require = [&](std::string_view name, size_t count, int64_t least) {
    return require_ints(name, list_attr(attrs, name, count, least), count, least, kMaxWindowAttr);
  };
  PYC_TRY(require_ints("kernel", kernel, dims, 1, kMaxWindowAttr));
  PYC_TRY(require("strides", dims, 1));
  PYC_TRY(require("pads", 2 * dims, 0));
  PYC_TRY(require("dilations", dims, 1));
  return window_of(attrs, kernel);
}

Result<Ints> count_windows(const Window& window, const Shape& planes) {
  Ints counts;
  for (size_t d = 0; d < window.dims(); ++d) {
    const int64_t padded = planes[d] + window.begin[d] + window.end[d];
    if (window.reach(d) > padded) {
      return refuse(Code::kShapeMismatch, "the window reaches over ", window.reach(d),
                    " elements of dim ", static_cast<int64_t>(d), " of the planes ", planes,
                    ", with pads there are ", padded);
    }
    counts.push_back((padded - window.reach(d)) / window.strides[d] + 1);
  }
  return counts;
}

Status require_planes(std::string_view what, const TensorType& type) {
  if (type.rank() >= 3) return {};
  return refuse(Code::kRankMismatch, what, " must have rank 3 or more, found ", type);
}

Shape with_planes(int64_t batch, int64_t channels, const Shape& planes) {
  Shape shape{batch, channels};
  shape.insert(shape.end(), planes.begin(), planes.end());
  return shape;
}

Index with_planes(Expr batch, Expr channel, std::span<const Expr> planes) {
  Index index{batch, channel};
  index.insert(index.end(), planes.begin(), planes.end());
  return index;
}

Tap tap_at(LowerContext& context, const Window& window, std::span<const Expr> o,
           std::span<const Expr> k) {
  const Shape& shape = context.input_type(0).shape;
  Tap tap;
  for (size_t d = 0; d < window.dims(); ++d) {
    const Expr at = o[d] * context.index(window.strides[d]) +
                    k[d] * context.index(window.dilations[d]) - context.index(window.begin[d]);
    const Expr inside = between(context, at, 0, shape[d + 2]);
    tap.inside = d == 0 ? inside : tap.inside & inside;
    tap.at.push_back(at);
  }
  return tap;
}

ReduceTerm read_tap(LowerContext& context, const Tap& tap, Expr batch, Expr channel) {
  const DType t = context.input_type(0).dtype;
  const Expr x =
      context.input_if(0, with_planes(batch, channel, tap.at), tap.inside, zero(context, t));
  return {.value = convert(x, compute_dtype(t)), .guard = always(tap.inside) ? Expr{} : tap.inside};
}

std::vector<ir::AttrDef> pool_attrs() {
  auto attrs = window_attrs();
  attrs.insert(attrs.begin(), required("kernel", ir::AttrKind::kInts));
  return attrs;
}

Types infer_pool(const InferArgs& args, const DTypeClass& accepted) {
  const TensorType& x = args.inputs[0];
  PYC_TRY(require_dtype("input", x, accepted));
  PYC_TRY(require_planes("input", x));
  const Shape planes = planes_of(x);
  if (std::find(planes.begin(), planes.end(), 0) != planes.end()) {
    return refuse(Code::kShapeMismatch, "the input ", x, " has an empty plane");
  }
  const Ints& kernel = args.attr_ints("kernel");
  PYC_TRY(require_ints("kernel", kernel, planes.size(), 1, kMaxWindowAttr));
  PYC_ASSIGN(const Window window, make_window(args.attrs, kernel));
  PYC_ASSIGN(const Ints counts, count_windows(window, planes));
  return one(x.dtype, with_planes(x.shape[0], x.shape[1], counts));
}

Window pool_window(const LowerContext& context) {
  return window_of(context.node().attrs, context.attr_ints("kernel"));
}

Tap pool_tap(LowerContext& context, const Window& window, std::span<const Expr> index,
             std::span<const Expr> k) {
  return tap_at(context, window, index.subspan(2), k);
}

ReduceTerm pool_term(LowerContext& context, const Window& window, std::span<const Expr> index,
                     std::span<const Expr> k) {
  return read_tap(context, pool_tap(context, window, index, k), index[0], index[1]);
}

}  // namespace pyc::ops
