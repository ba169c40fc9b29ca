#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "ops/support/backward.h"
#include "ops/support/convolution.h"
#include "ops/support/draws.h"
#include "ops/support/products.h"
#include "ops/support/transposed_phases.h"
#include "ops/support/window_gradient.h"

namespace pyc::ops {
namespace {

std::vector<ir::AttrDef> attrs_conv_transpose() {
  return {required("output_shape", ir::AttrKind::kInts),
          optional("strides", Ints{}),
          optional("pads", Ints{}),
          optional("dilations", Ints{}),
          optional("group", int64_t{1}),
          wide_result_attr()};
}

Types infer_conv_transpose(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const TensorType& w = args.inputs[1];
  PYC_TRY(require_dtype("x", x, kFloats));
  PYC_TRY(require_same_dtype(x, w));
  PYC_TRY(require_planes("x", x));
  PYC_TRY(require_rank("w", w, x.rank()));
  const int64_t group = args.attr_int("group");
  PYC_TRY(check_group(group, x, x.shape[1], w, w.shape[0]));
  if (w.shape[0] != x.shape[1]) {
    return refuse(Code::kShapeMismatch, "w ", w, " takes ", w.shape[0], " channels, x ", x, " has ",
                  x.shape[1]);
  }
  const Ints& planes = args.attr_ints("output_shape");
  const size_t dims = planes_of(x).size();
  PYC_TRY(require_ints("output_shape", planes, dims, 0, kMaxWindowAttr));
  PYC_TRY(require_ints("kernel", planes_of(w), dims, 1, kMaxWindowAttr));
  for (const std::string_view name : {"strides", "pads", "dilations"}) {
    const int64_t least = name == "pads" ? 0 : 1;
    const Ints values = list_attr(args.attrs, name, dims, least);
    PYC_TRY(require_ints(name, values, dims, least, kMaxWindowAttr));
  }
  const int64_t channels = w.shape[1] * group;
  if (args.inputs.size() > 2) PYC_TRY(check_bias(x, args.inputs[2], channels));
  PYC_ASSIGN(const DType to, product_dtype(args));
  return one(to, with_planes(x.shape[0], channels, planes));
}

// One dim, and the taps of it that meet an output element: first, first + step, …, `count` of them.
// Tap k meets the element at `place` (pads included) when place - k·dilation is a multiple of the
// stride.
struct Line {
  int64_t size = 0;  // of the input
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t step = 1;
  int64_t most = 0;  // the largest count there can be
  Expr place;
  Expr first;
  Expr count;
};

int64_t inverse(int64_t a, int64_t modulus) {
  int64_t x = 1;
  int64_t y = 0;
  for (int64_t b = modulus; b != 0;) {
    const int64_t q = a / b;
    a = std::exchange(b, a - q * b);
    x = std::exchange(y, x - q * y);
  }
  return (x % modulus + modulus) % modulus;
}

void find_taps(LowerContext& context, int64_t kernel, Line& line) {
  const int64_t common = std::gcd(line.stride, line.dilation);
  line.step = line.stride / common;
  line.most = (kernel - 1) / line.step + 1;
  const Expr step = context.index(line.step);
  const Expr phase = floor_mod(line.place, context.index(line.stride));
  const Expr turns = floor_div(phase, context.index(common)) *
                     context.index(inverse(line.dilation / common, line.step));
  line.first = floor_mod(turns, step);
  line.count = floor_div(context.index(kernel - 1) - line.first, step) + context.index(1);
  const Expr met = eq(floor_mod(phase, context.index(common)), context.index(0));
  if (!always(met)) line.count = select(met, line.count, context.index(0));
}

std::vector<Line> lines_of(LowerContext& context, std::span<const Expr> index) {
  const Shape planes = planes_of(context.input_type(0));
  const Shape kernel = planes_of(context.input_type(1));
  const ir::Attrs& given = context.node().attrs;
  const Ints strides = list_attr(given, "strides", planes.size(), 1);
  const Ints pads = list_attr(given, "pads", planes.size(), 0);
  const Ints dilations = list_attr(given, "dilations", planes.size(), 1);
  std::vector<Line> lines(planes.size());
  for (size_t d = 0; d < lines.size(); ++d) {
    lines[d].size = planes[d];
    lines[d].stride = strides[d];
    lines[d].dilation = dilations[d];
    lines[d].place = index[d + 2] + context.index(pads[d]);
    find_taps(context, kernel[d], lines[d]);
  }
  return lines;
}

// a / b and a mod b for a >= 0, b > 0; with a constant b in the form that indices have.
std::pair<Expr, Expr> split(Expr a, Expr b) {
  if (b.pool->node(b.id).op == loop::Op::kConst) return {floor_div(a, b), floor_mod(a, b)};
  return {a / b, rem(a, b)};
}

// The tap of the kernel with the given number among those that meet the element, and where in the
// input it lies.
struct Met {
  Index k;
  Index at;
  Expr inside;
};

Met met_at(LowerContext& context, const std::vector<Line>& lines, Expr number) {
  Met met{Index(lines.size()), Index(lines.size()), eq(context.index(0), context.index(0))};
  for (size_t d = lines.size(); d-- > 0;) {
    const Line& line = lines[d];
    Expr j = number;
    if (d > 0) std::tie(number, j) = split(number, max(line.count, context.index(1)));
    met.k[d] = line.first + j * context.index(line.step);
    met.at[d] =
        floor_div(line.place - met.k[d] * context.index(line.dilation), context.index(line.stride));
    met.inside = met.inside & lt(j, line.count) & between(context, met.at[d], 0, line.size);
  }
  return met;
}

Expr lower_conv_transpose(LowerContext& context, int, std::span<const Expr> index) {
  const Shape& w = context.input_type(1).shape;
  const DType t = context.input_type(0).dtype;
  const int64_t group = context.attr_int("group");
  const int64_t depth = w[0] / group;
  const Expr first = first_channel(context, index[1], group, w[1], depth);
  const Expr channel = floor_mod(index[1], context.index(std::max<int64_t>(w[1], 1)));
  const std::vector<Line> lines = lines_of(context, index);
  int64_t steps = depth;
  for (const Line& line : lines) steps *= line.most;

  // Steps are numbered by the taps that exist.
  const auto term = [&](std::span<const Expr> number) {
    const auto [tap, in] = split(number[0], context.index(std::max<int64_t>(depth, 1)));
    const Met met = met_at(context, lines, tap);
    const Expr x = context.input_if(0, with_planes(index[0], first + in, met.at), met.inside,
                                    zero(context, t));
    const Expr weight =
        context.input_if(1, with_planes(first + in, channel, met.k), met.inside, zero(context, t));
    return ReduceTerm{.value = convert(x, compute_dtype(t)),
                      .value2 = convert(weight, compute_dtype(t)),
                      .guard = always(met.inside) ? Expr{} : met.inside};
  };
  const Expr sum = context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, Ints{steps}, term,
                                  kChainSegment);
  return finish_conv(context, sum, 2, index[1]);
}

ValueId simplify_conv_transpose(Patch& patch, const NodeView& node) {
  const size_t dims = planes_of(node.type()).size();
  const Window window{.kernel = planes_of(node.input_type(1)),
                      .strides = list_attr(node.attrs(), "strides", dims, 1),
                      .begin = list_attr(node.attrs(), "pads", dims, 0),
                      .end = {},
                      .dilations = list_attr(node.attrs(), "dilations", dims, 1)};
  const int64_t group = std::get<int64_t>(node.attrs().at("group"));
  return patch.by("conv_transpose_phases", transposed_phases(patch, node, window, group));
}

Grads gradient_conv_transpose(ir::GraphBuilder& builder, const ir::Node& node,
                              std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // A convolution of what arrives; its elements behind the last tap were never met.
  const Shape x = planes_of(b.input_type(0));
  Window window{.kernel = planes_of(b.input_type(1)),
                .strides = list_attr(node.attrs, "strides", x.size(), 1),
                .begin = list_attr(node.attrs, "pads", x.size(), 0),
                .end = Ints(x.size(), 0),
                .dilations = list_attr(node.attrs, "dilations", x.size(), 1)};
  ValueId g = b.stored(b.g(), 0);
  for (size_t d = 0; d < x.size(); ++d) {
    const int64_t size = b.attrs().attr_ints("output_shape")[d];
    const int64_t met = (x[d] - 1) * window.strides[d] + window.reach(d) - window.begin[d];
    window.end[d] = std::max<int64_t>(met - size, 0);
    if (met < size) g = b.slice(g, static_cast<int64_t>(d) + 2, 0, std::max<int64_t>(met, 0));
  }
  const int64_t group = b.attrs().attr_int("group");
  const ValueId of_x = padded_conv(b, g, b.input(1), window, group);
  std::vector<ValueId> result{of_x, conv_weight_gradient(b, g, b.input(0), window, group)};
  if (b.inputs() > 2) {
    Ints axes = int_range(1, b.input_type(0).rank());
    axes[0] = 0;  // all but the channels
    result.push_back(b.stored(b.sum(b.g(), axes, false), 2));
  }
  return b.outputs(result);
}

Result<ValueId> draw_conv_transpose(Draw& d, DType t) {
  const int64_t dims = d.pick(1, 2);
  const DrawnGroups g = drawn_groups(d);
  Shape planes;
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints pads;
  Ints to;
  for (int64_t i = 0; i < dims; ++i) {
    planes.push_back(d.pick(1, 4));
    kernel.push_back(d.pick(1, 3));
    strides.push_back(d.pick(1, 2));
    dilations.push_back(d.pick(1, 2));
    pads.push_back(d.pick(0, kernel.back() - 1));
    const int64_t reach = (kernel.back() - 1) * dilations.back() + 1;
    to.push_back(
        std::max<int64_t>(1, (planes.back() - 1) * strides.back() + reach - 2 * pads.back()));
  }
  Shape x{d.pick(1, 2), g.groups * g.in};
  x.insert(x.end(), planes.begin(), planes.end());
  std::vector<ValueId> inputs{d.tensor(t, x),
                              d.tensor(t, drawn_weights(g.groups * g.in, g.out, kernel))};
  if (d.flip()) inputs.push_back(d.tensor(t, {g.groups * g.out}));
  return d.op(std::move(inputs), {{"output_shape", to},
                                  {"strides", strides},
                                  {"pads", pads},
                                  {"dilations", dilations},
                                  {"group", g.groups}});
}

}  // namespace

const ir::OpDef& op_conv_transpose() {
  static const ir::OpDef def{
      .name = "conv_transpose",
      .summary =
          "Transposed convolution of x (NC, planes) with w (CO, kernel), plus a bias if "
          "given: element i, tap k go to i·stride + k·dilation - pads[d] of output_shape.",
      .min_inputs = 2,
      .max_inputs = 3,
      .attrs = attrs_conv_transpose(),
      .infer = infer_conv_transpose,
      .lower = lower_conv_transpose,
      .traits = {.product = true, .factors = 2, .adds_input = true},
      .simplify = simplify_conv_transpose,
      .gradient = gradient_conv_transpose,
      .draw = {.node = draw_conv_transpose},
  };
  return def;
}

}  // namespace pyc::ops
