#include <algorithm>

#include "ops/support/choice.h"
#include "ops/support/elementwise.h"
#include "ops/support/sample.h"
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
  };
  return def;
}

}  // namespace pyc::ops
