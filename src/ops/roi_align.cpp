#include <limits>

#include "ops/draw.h"
#include "ops/support/choice.h"
#include "ops/support/elementwise.h"
#include "ops/support/sample_form.h"

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
  context.check_input(2, between(context, image, 0, shape[0]), {.last = shape[0] - 1}, "image");
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

// The samples of all rois along one dim as ops of a graph, each [rois, bins, samples].
struct RoiForm {
  int64_t rois = 0;
  int64_t bins = 0;
  int64_t samples = 0;
  int64_t size = 0;
  ValueId counts;  // [rois, 1], a float that carries no gradient
  ValueId exists;
  ValueId inside;    // and exists
  ValueId left_out;  // [rois, bins, 1]: samples exist that are none of these
  ValueId at[2];
  ValueId weight[2];
};

RoiForm roi_form(Compose& c, int dim, int64_t size) {
  const auto column = [&](int64_t i) {
    const ValueId v =
        c.scale(c.slice(c.wide_input(1), 1, i, i + 1), c.attrs().attr_float("spatial_scale"));
    return c.attrs().attr_bool("half_pixel") ? c.shift(v, -0.5) : v;
  };
  RoiForm f;
  f.rois = c.input_type(1).shape[0];
  f.bins = c.attrs().attr_ints("size")[static_cast<size_t>(dim)];
  f.size = size;
  const ValueId begin = column(dim == 0 ? 1 : 0);
  ValueId length = c.sub(column(dim == 0 ? 3 : 2), begin);
  if (!c.attrs().attr_bool("half_pixel"))
    length = c.op("max", {length, c.scalar_like(length, 1.0)});
  const ValueId bin = c.scale(length, 1.0 / static_cast<double>(f.bins));
  const DType t = c.type(bin).dtype;
  const ValueId start = c.add(begin, c.mul(c.cast(c.positions(2, 1, f.bins), t), bin));
  const int64_t ratio = c.attrs().attr_int("sampling_ratio");
  ValueId first = c.expand(c.constant(DType::kI64, {}, {0.0}), {f.rois, f.bins});
  if (ratio > 0) {
    f.samples = ratio;
    f.counts = c.expand(c.scalar_like(bin, static_cast<double>(ratio)), {f.rois, 1});
  } else {
    f.samples = 2 * (size + 1) + 6;
    f.counts =
        as_float(c, c.op("max", {whole(c, bin, "ceil"), c.constant(DType::kI64, {}, {0.0})}), bin);
    const ValueId apart = c.div(bin, c.op("max", {f.counts, c.scalar_like(bin, 1.0)}));
    const ValueId skipped = c.shift(c.div(c.shift(c.op("neg", {start}), -1.0), apart), -2.0);
    first = whole(c, clamped(c, skipped, 0.0, 1e9), "floor");
  }
  const auto each = [&](ValueId v, int64_t bins) { return c.reshape(v, {f.rois, bins, 1}); };
  const ValueId number = c.cast(c.add(each(first, f.bins), c.positions(3, 2, f.samples)), t);
  const ValueId count = each(f.counts, 1);
  const ValueId divisor = c.op("max", {count, c.scalar_like(bin, 1.0)});
  const ValueId step = c.div(c.mul(c.shift(number, 0.5), each(bin, 1)), divisor);
  const ValueId place = c.add(each(start, f.bins), step);
  const auto last = static_cast<double>(size - 1);
  const ValueId held = clamped(c, place, 0.0, last);
  f.at[0] = whole(c, held, "floor");
  f.at[1] = clamped(c, c.shift(f.at[0], 1.0), 0.0, last);
  f.weight[1] = c.sub(held, as_float(c, f.at[0], held));
  f.weight[0] = c.sub(c.scalar_like(held, 1.0), f.weight[1]);
  f.exists = c.op("less", {number, count});
  const ValueId above = c.op("less_equal", {c.scalar_like(place, -1.0), place});
  const ValueId below = c.op("less_equal", {place, c.scalar_like(place, last + 1.0)});
  f.inside = c.op("logical_and", {f.exists, c.op("logical_and", {above, below})});
  const ValueId end = c.cast(c.shift(each(first, f.bins), static_cast<double>(f.samples)), t);
  const ValueId before = c.op("less", {c.constant(DType::kI64, {}, {0.0}), each(first, f.bins)});
  f.left_out = c.op("logical_or", {before, c.op("less", {end, count})});
  return f;
}

// The average is a product with a matrix [rois, bins, size] on each side.
ValueId roi_average(Compose& c, ValueId images, const RoiForm& rows, const RoiForm& columns) {
  const auto matrix = [&](const RoiForm& f) {
    const Shape apart{f.rois, f.bins, f.samples, 1};
    const ValueId element = c.positions(4, 3, f.size);
    const auto share = [&](int i) {
      const ValueId hit = c.op("equal", {c.reshape(f.at[i], apart), element});
      const ValueId taken = c.op("logical_and", {hit, c.reshape(f.inside, apart)});
      const ValueId weight = c.reshape(f.weight[i], apart);
      return c.op("where", {taken, weight, c.scalar_like(weight, 0.0)});
    };
    const ValueId all = c.add(share(0), share(1));
    const ValueId sums = c.op("reduce_sum", {all}, {{"axes", Ints{2}}, {"keepdims", false}});
    return c.reshape(sums, {f.rois, 1, f.bins, f.size});
  };
  const ValueId turned = c.transpose(matrix(columns), {0, 1, 3, 2});
  const ValueId sums = c.op("matmul", {c.op("matmul", {matrix(rows), images}), turned});
  const ValueId count = c.mul(rows.counts, columns.counts);
  const ValueId some = c.op("max", {count, c.scalar_like(count, 1.0)});
  return c.div(sums, c.reshape(some, {rows.rois, 1, 1, 1}));
}

ValueId roi_largest(Compose& c, ValueId images, const RoiForm& rows, const RoiForm& columns) {
  const Shape shape = c.type(images).shape;
  // [rois, bins, samples, bins, samples] of rows and columns.
  const Shape of_rows{rows.rois, rows.bins, rows.samples, 1, 1};
  const Shape of_columns{rows.rois, 1, 1, columns.bins, columns.samples};
  const Shape all{rows.rois, rows.bins, rows.samples, columns.bins, columns.samples};
  const int64_t samples = rows.bins * rows.samples * columns.bins * columns.samples;
  const Shape apart{shape[0], shape[1], rows.bins, rows.samples, columns.bins, columns.samples};
  const Shape per_channel{shape[0], 1, rows.bins, rows.samples, columns.bins, columns.samples};
  const auto both = [&](std::string_view op, ValueId a, ValueId b) {
    return c.op(op, {c.reshape(a, of_rows), c.reshape(b, of_columns)});
  };
  const ValueId flat = c.reshape(images, {shape[0], shape[1], shape[2] * shape[3]});
  ValueId joined = ir::kNoId;
  for (int i = 0; i < 4; ++i) {
    const ValueId row = c.scale(rows.at[i / 2], static_cast<double>(shape[3]));
    const ValueId at = c.reshape(both("add", row, columns.at[i % 2]), {shape[0], 1, samples});
    const ValueId read =
        c.op("gather_elements", {flat, c.expand(at, {shape[0], shape[1], samples})},
             {{"axis", int64_t{2}}});
    const ValueId weight =
        c.reshape(both("mul", rows.weight[i / 2], columns.weight[i % 2]), per_channel);
    const ValueId part = c.mul(c.reshape(read, apart), weight);
    joined = i == 0 ? part : c.op("max", {joined, part});
  }
  const ValueId nothing = c.scalar_like(joined, 0.0);
  const ValueId inside = c.reshape(both("logical_and", rows.inside, columns.inside), per_channel);
  const ValueId exists = c.reshape(both("logical_and", rows.exists, columns.exists), per_channel);
  const ValueId lowest = c.scalar_like(joined, -std::numeric_limits<double>::infinity());
  const ValueId seen = c.op("where", {exists, c.op("where", {inside, joined, nothing}), lowest});
  const ValueId found = c.op("reduce_max", {seen}, {{"axes", Ints{3, 5}}, {"keepdims", false}});
  const Shape places{shape[0], 1, rows.bins, columns.bins};
  const ValueId left_out =
      c.op("logical_or", {c.reshape(rows.left_out, {shape[0], 1, rows.bins, 1}),
                          c.reshape(columns.left_out, {shape[0], 1, 1, columns.bins})});
  const ValueId more =
      c.op("where", {c.expand(left_out, places), c.op("max", {found, nothing}), found});
  const ValueId count = c.reshape(c.mul(rows.counts, columns.counts), {shape[0], 1, 1, 1});
  return c.op("where", {c.op("less", {nothing, count}), more, nothing});
}

Result<std::vector<ValueId>> gradient_form_roi_align(ir::GraphBuilder& builder,
                                                     const ir::Node& node) {
  Compose c(builder, node);
  const TensorType x = c.input_type(0);
  const bool largest = c.attrs().attr_string("mode") == "max";
  const RoiForm rows = roi_form(c, 0, x.shape[2]);
  const RoiForm columns = roi_form(c, 1, x.shape[3]);
  const ValueId images = c.op("gather", {c.wide_input(0), c.input(2)}, {{"axis", int64_t{0}}});
  const ValueId y =
      largest ? roi_largest(c, images, rows, columns) : roi_average(c, images, rows, columns);
  return c.outputs({c.cast(y, x.dtype)});
}

Result<ValueId> draw_roi_align(Draw& d, DType t) {
  const Shape shape{d.pick(1, 2), d.pick(1, 2), d.pick(2, 6), d.pick(2, 6)};
  const int64_t rois = d.pick(0, 3);
  const ValueId x = d.tensor(t, shape);
  const ValueId boxes = d.fresh(t, {rois, 4}, 0.0, 5.0);
  return d.op({x, boxes, d.indices({rois}, 0, shape[0] - 1)},
              {{"size", Ints{d.pick(1, 3), d.pick(1, 3)}},
               {"mode", d.word({"avg", "max"})},
               {"sampling_ratio", d.pick(0, 2)},
               {"spatial_scale", d.choose({1.0, 0.5})},
               {"half_pixel", d.flip()}});
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
      .gradient_form = gradient_form_roi_align,
      .draw = {.node = draw_roi_align},
  };
  return def;
}

}  // namespace pyc::ops
