#include "ops/support/choice.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

constexpr int64_t kMaxSamples = int64_t{1} << 20;
constexpr std::string_view kRoiModes[] = {"avg", "max"};

Types infer_roi_align(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& rois = args.inputs[1];
  const TensorType& images = args.inputs[2];
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_same_dtype(x, rois));
  PYC_TRY(require_dtype("images", images, kIndices));
  PYC_TRY(require_rank("x", x, 4));
  PYC_TRY(require_rank("images", images, 1));
  if (x.shape[2] == 0 || x.shape[3] == 0) {
    return refuse(Code::kShapeMismatch, "x ", x, " has an empty plane");
  }
  if (rois.shape != Shape{images.shape[0], 4}) {
    return refuse(Code::kShapeMismatch, "rois must have shape [", images.shape[0], ",4], found ",
                  rois);
  }
  const Ints& size = args.attr_ints("size");
  PYC_TRY(require_ints("size", size, 2, 1, ir::kMaxElements));
  PYC_TRY(require_choice("mode", args.attr_string("mode"), kRoiModes));
  const int64_t ratio = args.attr_int("sampling_ratio");
  if (ratio < 0 || ratio > kMaxSamples) {
    return refuse(Code::kInvalidArgument, "sampling_ratio must lie in [0,", kMaxSamples,
                  "], found ", ratio);
  }
  return one(x.dtype, {images.shape[0], x.shape[1], size[0], size[1]});
}

// The samples of one bin along one dim of `size` elements: numbers 0 … count-1, of which those from
// `first` on, at most `steps`, can lie within the image.
struct RoiLine {
  Expr start;  // of the bin
  Expr bin;    // its length
  Expr count;  // a float
  Expr first;  // an i64
  int64_t steps = 0;
  int64_t size = 0;
};

RoiLine line_of(LowerContext& context, Expr roi, int dim, Expr output, int64_t size) {
  const auto corner = [&](int i) {
    const Expr v = context.input_compute(1, Index{roi, context.index(i)});
    const Expr scaled = v * context.attr_float("spatial_scale");
    return context.attr_bool("half_pixel") ? scaled - 0.5 : scaled;
  };
  const Expr begin = corner(dim == 0 ? 1 : 0);
  Expr length = corner(dim == 0 ? 3 : 2) - begin;
  if (!context.attr_bool("half_pixel")) length = max(length, like(length, 1.0));
  RoiLine line;
  line.size = size;
  const int64_t bins = context.attr_ints("size")[static_cast<size_t>(dim)];
  line.bin = length / static_cast<double>(bins);
  line.start = begin + convert(output, begin.dtype()) * line.bin;
  const int64_t ratio = context.attr_int("sampling_ratio");
  if (ratio > 0) {
    line.count = like(begin, static_cast<double>(ratio));
    line.first = context.index(0);
    line.steps = ratio;
    return line;
  }
  line.count = max(ceil(line.bin), like(begin, 0.0));
  // Samples are more than half an element apart when there are several. Two in front of the
  // first that can be inside make up for rounding.
  constexpr double kFar = 1e9;
  const Expr skipped = (-line.start - 1.0) / (line.bin / line.count) - 2.0;
  line.first = convert(floor(min(max(skipped, like(begin, 0.0)), like(begin, kFar))), DType::kI64);
  line.steps = 2 * (size + 1) + 6;
  return line;
}

// The two elements around a sample, their weights, and whether it exists and lies in the image.
struct Neighbours {
  Expr exists;
  Expr inside;
  Expr at[2];
  Expr weight[2];
};

Neighbours neighbours_of(LowerContext& context, const RoiLine& line, Expr step) {
  const Expr number = convert(line.first + step, line.start.dtype());
  const Expr x = line.start + (number + 0.5) * line.bin / line.count;
  const auto last = static_cast<double>(line.size - 1);
  const Expr held = min(max(x, like(x, 0.0)), like(x, last));
  const Expr below = floor(held);
  const Expr rest = held - below;
  const Expr first = convert(below, DType::kI64);
  return {.exists = lt(number, line.count),
          .inside = le(like(x, -1.0), x) & le(x, like(x, last + 1.0)),
          .at = {first, min(first + context.index(1), context.index(line.size - 1))},
          .weight = {like(x, 1.0) - rest, rest}};
}

// The four weighted elements around a sample, joined by their sum or their largest.
Expr sample(LowerContext& context, Expr image, Expr channel, const Neighbours& y,
            const Neighbours& x, bool largest) {
  const DType t = context.input_type(0).dtype;
  const Expr inside = y.exists & y.inside & x.exists & x.inside &
                      between(context, image, 0, context.input_type(0).shape[0]);
  Expr joined;
  for (int i = 0; i < 4; ++i) {
    const Index at{image, channel, y.at[i / 2], x.at[i % 2]};
    const Expr v = convert(context.input_if(0, at, inside, zero(context, t)), compute_dtype(t));
    const Expr weighted = y.weight[i / 2] * x.weight[i % 2] * v;
    if (i == 0) {
      joined = weighted;
    } else {
      joined = largest ? max(joined, weighted) : joined + weighted;
    }
  }
  return select(inside, joined, like(joined, 0.0));
}

// Whether samples exist before the first step or behind the last: all lie outside of the image.
Expr left_out(LowerContext& context, const RoiLine& line) {
  const Expr end = convert(line.first + context.index(line.steps), line.count.dtype());
  return lt(context.index(0), line.first) | lt(end, line.count);
}

Expr lower_roi_align(LowerContext& context, int, std::span<const Expr> index) {
  const Shape& shape = context.input_type(0).shape;
  const bool largest = context.attr_string("mode") == "max";
  const Expr image = convert(context.input(2, index.first(1)), DType::kI64);
  context.check(between(context, image, 0, shape[0]), "image out of range");
  const RoiLine rows = line_of(context, index[0], 0, index[2], shape[2]);
  const RoiLine columns = line_of(context, index[0], 1, index[3], shape[3]);
  const auto term = [&](std::span<const Expr> k) {
    const Neighbours y = neighbours_of(context, rows, k[0]);
    const Neighbours x = neighbours_of(context, columns, k[1]);
    return ReduceTerm{.value = sample(context, image, index[1], y, x, largest),
                      .guard = y.exists & x.exists};
  };
  const Ints extents{rows.steps, columns.steps};
  const Expr count = rows.count * columns.count;
  if (!largest) {
    const Expr sum = context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, extents, term);
    return rounded(context, sum / max(count, like(count, 1.0)));
  }
  const Expr found = context.reduce(loop::ReduceKind::kExact, loop::ReduceOp::kMax, extents, term);
  const Expr nothing = like(count, 0.0);
  const Expr more = left_out(context, rows) | left_out(context, columns);
  const Expr with_outside = select(more, max(found, nothing), found);
  return rounded(context, select(lt(nothing, count), with_outside, nothing));
}

}  // namespace

const ir::OpDef& op_roi_align() {
  static const ir::OpDef def{
      .name = "roi_align",
      .summary =
          "For each roi (x1, y1, x2, y2) of image images[r]: `size` bins, each the average or "
          "largest of its samples; sampling_ratio 0 takes one sample per element.",
      .min_inputs = 3,
      .max_inputs = 3,
      .attrs = {required("size", ir::AttrKind::kInts), optional("mode", std::string("avg")),
                optional("sampling_ratio", int64_t{0}), optional("spatial_scale", 1.0),
                optional("half_pixel", true)},
      .infer = infer_roi_align,
      .lower = lower_roi_align,
  };
  return def;
}

}  // namespace pyc::ops
