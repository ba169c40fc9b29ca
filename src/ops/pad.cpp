#include <algorithm>

#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

// One dim of the input: what is cropped in front, how many elements are left, and how many places
// come before them in the output.
struct Along {
  int64_t cropped = 0;
  int64_t left = 0;
  int64_t before = 0;
};

Along along(const Ints& pads, const Shape& shape, size_t dim) {
  const int64_t begin = pads[dim];
  const int64_t end = pads[shape.size() + dim];
  return {std::max<int64_t>(-begin, 0),
          shape[dim] + std::min<int64_t>(begin, 0) + std::min<int64_t>(end, 0),
          std::max<int64_t>(begin, 0)};
}

Status check_copied(const TensorType& x, const Ints& pads, const Shape& shape) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 || along(pads, x.shape, i).left > 0) continue;
    return refuse(Code::kShapeMismatch, "pads ", pads, " leave nothing of dim ",
                  static_cast<int64_t>(i), " of ", x, " to copy from");
  }
  return {};
}

Types infer_pad(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints& pads = args.attr_ints("pads");
  const std::string& mode = args.attr_string("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    return refuse(Code::kInvalidArgument,
                  "mode must be \"constant\", \"reflect\", \"edge\" or \"wrap\", found \"", mode,
                  "\"");
  }
  const size_t rank = x.shape.size();
  PYC_TRY(require_ints("pads", pads, 2 * rank, -ir::kMaxElements, ir::kMaxElements));
  Shape shape = x.shape;
  for (size_t i = 0; i < rank; ++i) {
    shape[i] += pads[i] + pads[rank + i];
    if (shape[i] >= 0) continue;
    return refuse(Code::kShapeMismatch, "pads ", pads, " take more from dim ",
                  static_cast<int64_t>(i), " of ", x, " than it has");
  }
  if (mode != "constant") PYC_TRY(check_copied(x, pads, shape));
  return one(x.dtype, std::move(shape));
}

Expr lower_constant(LowerContext& context, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  const Ints& pads = context.attr_ints("pads");
  Expr inside = loop::constant_int(context.pool(), DType::kBool, 1);
  Index at;
  for (size_t i = 0; i < index.size(); ++i) {
    at.push_back(index[i] - context.index(pads[i]));
    inside = inside & between(context, at[i], 0, x.shape[i]);
  }
  const Expr value = loop::constant(context.pool(), x.dtype, context.attr_float("value"));
  return context.input_if(0, at, inside, value);
}

// The element of n > 0 that stands for place i, which may be before the first or after the last.
Expr source(LowerContext& context, const std::string& mode, Expr i, int64_t n) {
  if (mode == "wrap") return floor_mod(i, context.index(n));
  const Expr last = context.index(n - 1);
  if (mode == "edge") return min(max(i, context.index(0)), last);
  // Forth and back again without repeating either end; the second min only tells the range.
  const int64_t period = std::max<int64_t>(2 * (n - 1), 1);
  const Expr forth = floor_mod(i, context.index(period));
  return min(min(forth, context.index(period) - forth), last);
}

Expr lower_pad(LowerContext& context, int, std::span<const Expr> index) {
  const std::string& mode = context.attr_string("mode");
  if (mode == "constant") return lower_constant(context, index);
  Index at;
  for (size_t i = 0; i < index.size(); ++i) {
    const Along a = along(context.attr_ints("pads"), context.input_type(0).shape, i);
    const int64_t n = std::max<int64_t>(a.left, 1);
    at.push_back(source(context, mode, index[i] - context.index(a.before), n) +
                 context.index(a.cropped));
  }
  return context.input(0, at);
}

ValueId simplify_pad(Patch& patch, const NodeView& node) {
  const Ints& pads = std::get<Ints>(node.attrs().at("pads"));
  const bool none = std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; });
  return none ? patch.by("pad_nothing", node.input(0)) : kNoId;
}

// The same for all places of a dim of `places` in the output, as numbers.
std::vector<double> sources(const std::string& mode, const Ints& pads, const Shape& shape,
                            size_t dim, int64_t places) {
  const Along a = along(pads, shape, dim);
  const auto wrapped = [](int64_t i, int64_t n) { return (i % n + n) % n; };
  std::vector<double> result;
  for (int64_t place = 0; place < places; ++place) {
    int64_t i = place - a.before;
    if (mode == "wrap") {
      i = wrapped(i, a.left);
    } else if (mode == "edge") {
      i = std::clamp<int64_t>(i, 0, a.left - 1);
    } else {
      const int64_t period = std::max<int64_t>(2 * (a.left - 1), 1);
      i = std::min(wrapped(i, period), period - wrapped(i, period));
      i = std::min(i, a.left - 1);
    }
    result.push_back(static_cast<double>(i + a.cropped));
  }
  return result;
}

ValueId gradient_pad(Backward& b) {
  const Ints& pads = b.attrs().attr_ints("pads");
  const std::string& mode = b.attrs().attr_string("mode");
  const Shape shape = b.input_type(0).shape;
  if (mode == "constant") {
    Ints back = pads;
    for (int64_t& p : back) p = -p;
    return b.op("pad", {b.g()}, {{"pads", back}});
  }
  // Every place sends its part to the element it copies, one dim after the other.
  ValueId g = b.g();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (pads[d] == 0 && pads[d + shape.size()] == 0) continue;
    const auto axis = static_cast<int64_t>(d);
    Shape now = b.type(g).shape;
    const ValueId indices =
        b.constant(DType::kI64, {now[d]}, sources(mode, pads, shape, d, now[d]));
    now[d] = shape[d];
    g = sum_at(b, indices_first(b, g, axis, 1), indices, axis, now);
  }
  return g;
}

Result<ValueId> draw_pad(Draw& d, DType t) {
  const std::string mode = d.word({"constant", "constant", "reflect", "edge", "wrap"});
  const bool copies = mode != "constant";
  const Shape shape = d.shape(0, 4, copies ? 3 : 0);
  Ints pads;
  for (size_t i = 0; i < 2 * shape.size(); ++i) {
    const int64_t most = shape[i % shape.size()] / 2;
    pads.push_back(d.chance(5) ? -d.pick(0, copies ? most / 2 : most) : d.pick(0, copies ? 2 : 3));
  }
  Attrs attrs{{"mode", mode}, {"pads", pads}};
  if (!copies && d.flip()) attrs["value"] = static_cast<double>(d.pick(0, 3));
  return d.op({d.tensor(t, shape)}, std::move(attrs));
}

}  // namespace

const ir::OpDef& op_pad() {
  static const ir::OpDef def{
      .name = "pad",
      .summary =
          "x with `value` around it, or its own elements: mirrored at the ends (mode reflect), "
          "the nearest (edge) or all over again (wrap). pads has all begins, then all ends; "
          "negative ones crop, before anything is copied.",
      .attrs = {optional("mode", std::string("constant")), required("pads", ir::AttrKind::kInts),
                optional("value", 0.0)},
      .infer = infer_pad,
      .lower = lower_pad,
      .traits = {.moves_data = true},
      .simplify = simplify_pad,
      .gradient = gradient_of_one<gradient_pad>,
      .draw = {.node = draw_pad},
  };
  return def;
}

}  // namespace pyc::ops
