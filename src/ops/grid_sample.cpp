#include <algorithm>

#include "ops/draw.h"
#include "ops/support/choice.h"
#include "ops/support/elementwise.h"
#include "ops/support/sample.h"
#include "ops/support/sample_form.h"
#include "ops/support/window.h"

namespace pyc::ops {
namespace {

constexpr std::string_view kModes[] = {"linear", "nearest", "cubic"};
constexpr std::string_view kPaddings[] = {"zeros", "border", "reflection"};

Types infer_grid_sample(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& grid = args.inputs[1];
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_same_dtype(x, grid));
  PYC_TRY(require_planes("x", x));
  PYC_TRY(require_rank("grid", grid, x.rank()));
  PYC_TRY(require_choice("mode", args.attr_string("mode"), kModes));
  PYC_TRY(require_choice("padding", args.attr_string("padding"), kPaddings));
  if (grid.shape[0] != x.shape[0] || grid.shape.back() != x.rank() - 2) {
    return refuse(Code::kShapeMismatch, "grid ", grid, " must have ", x.shape[0], " images and ",
                  x.rank() - 2, " coordinates for x ", x);
  }
  const Shape planes = planes_of(x);
  if (std::find(planes.begin(), planes.end(), 0) != planes.end()) {
    return refuse(Code::kShapeMismatch, "x ", x, " has an empty plane");
  }
  return one(x.dtype, with_planes(x.shape[0], x.shape[1],
                                  Shape(grid.shape.begin() + 1, grid.shape.end() - 1)));
}

struct Sampler {
  LowerContext& context;
  std::string mode;
  std::string padding;
  bool align_corners;

  // The place in a dim of `size` elements that the normalised coordinate g means.
  Expr place(Expr g, int64_t size) const {
    const auto n = static_cast<double>(size);
    if (align_corners) return (g + 1.0) / 2.0 * (n - 1);
    return ((g + 1.0) * n - 1.0) / 2.0;
  }

  // x mirrored at the borders until it lies between them.
  static Expr mirrored(Expr x, double low, double high) {
    const double range = high - low;
    if (range == 0) return like(x, low);
    const Expr below = lt(x, like(x, low));
    const Expr distance = select(below, like(x, low) - x, x - high);
    const Expr times = trunc(distance / range);
    const Expr rest = distance - times * range;
    const Expr even = eq(times, floor(times / 2.0) * 2.0);
    // An even number of turns ends at the border that was crossed.
    const auto same = [](Expr a, Expr b) { return (a & b) | (~a & ~b); };
    return select(same(below, even), rest + low, like(x, high) - rest);
  }

  // What the padding makes of a place outside the borders.
  Expr moved_inside(Expr x, int64_t size) const {
    if (padding == "zeros") return x;
    const auto n = static_cast<double>(size);
    const double low = align_corners ? 0.0 : -0.5;
    const double high = align_corners ? n - 1 : n - 0.5;
    const Expr outside = lt(x, like(x, low)) | lt(like(x, high), x);
    const Expr inside =
        padding == "border" ? min(max(x, like(x, 0.0)), like(x, n - 1)) : mirrored(x, low, high);
    return select(outside, inside, x);
  }

  // Element `i` of the dim as the padding sees it.
  SampleTap tap(Expr i, Expr weight, int64_t size) const {
    if (padding == "zeros") return {i, weight, between(context, i, 0, size)};
    const Expr last = context.index(size - 1);
    if (padding == "reflection" && size > 1) {
      const int64_t period = align_corners ? 2 * size - 2 : 2 * size;
      const Expr turned = floor_mod(i, context.index(period));
      const Expr back = context.index(align_corners ? period : period - 1) - turned;
      i = select(lt(turned, context.index(size)), turned, back);
    }
    return {min(max(i, context.index(0)), last), weight};
  }

  SampleTaps taps(Expr g, int64_t size) const {
    Expr x = place(g, size);
    if (mode == "nearest") {
      x = moved_inside(round_even(x), size);
      return {tap(convert(x, DType::kI64), like(x, 1.0), size)};
    }
    x = moved_inside(x, size);
    const Expr below = floor(x);
    const Expr first = convert(below, DType::kI64);
    const Expr t = x - below;
    const std::vector<Expr> weights =
        mode == "cubic" ? cubic_weights(t) : std::vector<Expr>{like(t, 1.0) - t, t};
    const int64_t before = mode == "cubic" ? 1 : 0;
    SampleTaps result;
    for (size_t i = 0; i < weights.size(); ++i) {
      const Expr at = first + context.index(static_cast<int64_t>(i) - before);
      result.push_back(tap(at, weights[i], size));
    }
    return result;
  }
};

Expr lower_grid_sample(LowerContext& context, int, std::span<const Expr> index) {
  const Sampler sampler{context, context.attr_string("mode"), context.attr_string("padding"),
                        context.attr_bool("align_corners")};
  const Shape planes = planes_of(context.input_type(0));
  std::vector<SampleTaps> dims;
  for (size_t d = 0; d < planes.size(); ++d) {
    Index at{index[0]};
    at.insert(at.end(), index.begin() + 2, index.end());
    // Coordinates are given for the last dim first.
    at.push_back(context.index(static_cast<int64_t>(planes.size() - 1 - d)));
    dims.push_back(sampler.taps(context.input_compute(1, at), planes[d]));
  }
  return rounded(context, interpolate(context, index[0], index[1], dims));
}

// The Sampler's steps as ops of a graph.
struct GridForm {
  Compose& c;
  std::string mode;
  std::string padding;
  bool align_corners;

  ValueId place(ValueId g, double n) const {
    if (align_corners) return c.scale(c.shift(g, 1.0), 0.5 * (n - 1));
    return c.scale(c.shift(c.scale(c.shift(g, 1.0), n), -1.0), 0.5);
  }
  ValueId mirrored(ValueId x, double low, double high) const {
    const double range = high - low;
    if (range == 0) return c.expand(c.scalar_like(x, low), c.type(x).shape);
    const ValueId below = c.op("less", {x, c.scalar_like(x, low)});
    const ValueId under = c.sub(c.scalar_like(x, low), x);
    const ValueId distance = c.op("where", {below, under, c.shift(x, -high)});
    const ValueId times = whole(c, c.scale(distance, 1.0 / range), "trunc");
    const ValueId rest = c.sub(distance, c.scale(as_float(c, times, x), range));
    const ValueId parity = c.op("mod", {times, c.scalar_like(times, 2.0)});
    const ValueId even = c.op("equal", {parity, c.scalar_like(times, 0.0)});
    const ValueId differ = c.op("logical_xor", {below, even});
    return c.op("where", {differ, c.sub(c.scalar_like(x, high), rest), c.shift(rest, low)});
  }
  ValueId moved_inside(ValueId x, double n) const {
    if (padding == "zeros") return x;
    const double low = align_corners ? 0.0 : -0.5;
    const double high = align_corners ? n - 1 : n - 0.5;
    const ValueId under = c.op("less", {x, c.scalar_like(x, low)});
    const ValueId over = c.op("less", {c.scalar_like(x, high), x});
    const ValueId inside = padding == "border" ? clamped(c, x, 0.0, n - 1) : mirrored(x, low, high);
    return c.op("where", {c.op("logical_or", {under, over}), inside, x});
  }
  PlacedTap tap(ValueId i, ValueId weight, int64_t size) const {
    const auto n = static_cast<double>(size);
    if (padding == "zeros") return {i, weight, is_between(c, i, 0.0, n)};
    if (padding == "reflection" && size > 1) {
      const double period = align_corners ? 2 * n - 2 : 2 * n;
      const ValueId turned = c.op("mod", {i, c.scalar_like(i, period)});
      const ValueId back = c.sub(c.scalar_like(i, align_corners ? period : period - 1), turned);
      i = c.op("where", {c.op("less", {turned, c.scalar_like(i, n)}), turned, back});
    }
    return {i, weight};  // clamped where it is read
  }
  ValueId cubic(ValueId t, bool far) const {
    constexpr double kA = -0.75;
    if (far) {
      const ValueId outer = c.shift(c.mul(c.shift(c.scale(t, kA), -5 * kA), t), 8 * kA);
      return c.shift(c.mul(outer, t), -4 * kA);
    }
    const ValueId inner = c.mul(c.shift(c.scale(t, kA + 2), -(kA + 3)), t);
    return c.shift(c.mul(inner, t), 1.0);
  }
  PlacedTaps taps(ValueId g, int64_t size) const {
    const auto n = static_cast<double>(size);
    const ValueId x = place(g, n);
    if (mode == "nearest") {
      const ValueId at = whole(c, moved_inside(c.op("round", {x}), n), "trunc");
      return {tap(at, c.expand(c.scalar_like(x, 1.0), c.type(x).shape), size)};
    }
    const ValueId moved = moved_inside(x, n);
    const ValueId first = whole(c, moved, "floor");
    const ValueId t = c.sub(moved, as_float(c, first, moved));
    const ValueId rest = c.sub(c.scalar_like(t, 1.0), t);
    if (mode != "cubic") return {tap(first, rest, size), tap(c.shift(first, 1.0), t, size)};
    return {tap(c.shift(first, -1.0), cubic(c.shift(t, 1.0), true), size),
            tap(first, cubic(t, false), size), tap(c.shift(first, 1.0), cubic(rest, false), size),
            tap(c.shift(first, 2.0), cubic(c.shift(rest, 1.0), true), size)};
  }
};

Result<std::vector<ValueId>> gradient_form_grid_sample(ir::GraphBuilder& builder,
                                                       const ir::Node& node) {
  Compose c(builder, node);
  const TensorType x = c.input_type(0);
  const Shape grid = c.input_type(1).shape;
  const int64_t count = x.rank() - 2;
  const int64_t places = TensorType{DType::kU8, {grid.begin() + 1, grid.end() - 1}}.elements();
  const ValueId coordinates = c.reshape(c.wide_input(1), {x.shape[0], places, count});
  const GridForm form{c, c.attrs().attr_string("mode"), c.attrs().attr_string("padding"),
                      c.attrs().attr_bool("align_corners")};
  std::vector<PlacedTaps> dims;
  for (int64_t d = 0; d < count; ++d) {
    const ValueId g = c.slice(coordinates, 2, count - 1 - d, count - d);
    dims.push_back(
        form.taps(c.reshape(g, {x.shape[0], places}), x.shape[static_cast<size_t>(d) + 2]));
  }
  const ValueId y = interpolate(c, c.wide_input(0), dims);
  const Shape shape = with_planes(x.shape[0], x.shape[1], Shape(grid.begin() + 1, grid.end() - 1));
  return c.outputs({c.cast(c.reshape(y, shape), x.dtype)});
}

Result<ValueId> draw_grid_sample(Draw& d, DType t) {
  const int64_t dims = d.pick(1, 3);
  Shape shape{d.pick(1, 2), d.pick(1, 2)};
  Shape grid{shape[0]};
  for (int64_t i = 0; i < dims; ++i) {
    shape.push_back(d.pick(1, 5));
    grid.push_back(d.pick(1, 4));
  }
  grid.push_back(dims);
  const ValueId x = d.tensor(t, shape);
  return d.op({x, d.fresh(t, grid, -1.5, 1.5)},
              {{"mode", d.word({"linear", "nearest", "cubic"})},
               {"padding", d.word({"zeros", "border", "reflection"})},
               {"align_corners", d.flip()}});
}

}  // namespace

const ir::OpDef& op_grid_sample() {
  static const ir::OpDef def{
      .name = "grid_sample",
      .summary =
          "x (NC, planes) at the places grid (N, output planes, coordinates) names, -1 and 1 "
          "being the borders; coordinates are those of the last dim first.",
      .min_inputs = 2,
      .max_inputs = 2,
      .attrs = {optional("mode", std::string("linear")), optional("padding", std::string("zeros")),
                optional("align_corners", false)},
      .infer = infer_grid_sample,
      .lower = lower_grid_sample,
      .gradient_form = gradient_form_grid_sample,
      .onnx = {.name = "GridSample", .attrs = "mode padding_mode=padding align_corners"},
      .draw = {.node = draw_grid_sample},
  };
  return def;
}

}  // namespace pyc::ops
