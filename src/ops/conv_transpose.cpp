#include <numeric>
#include <utility>

#include "ops/support/convolution.h"

namespace pyc::ops {
namespace {

std::vector<ir::AttrDef> attrs() {
  return {required("output_shape", ir::AttrKind::kInts), optional("strides", Ints{}),
          optional("pads", Ints{}), optional("dilations", Ints{}), optional("group", int64_t{1})};
}

Types infer(const InferArgs& args) {
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
  return one(x.dtype, with_planes(x.shape[0], channels, planes));
}

// The taps of one dim that meet an output element: first, first + step, … , `count` of them. Tap k
// meets element `place` (pads included) when place - k·dilation is a multiple of the stride.
struct Taps {
  Expr place;
  Expr first;
  Expr count;
  int64_t step = 1;
  int64_t most = 0;  // the largest count there can be
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

Taps taps_of(LowerContext& context, Expr place, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t common = std::gcd(stride, dilation);
  const int64_t step = stride / common;
  const Expr phase = floor_mod(place, context.index(stride));
  const Expr turns =
      floor_div(phase, context.index(common)) * context.index(inverse(dilation / common, step));
  const Expr first = floor_mod(turns, context.index(step));
  const Expr met = eq(floor_mod(phase, context.index(common)), context.index(0));
  const Expr count =
      floor_div(context.index(kernel - 1) - first, context.index(step)) + context.index(1);
  return {.place = place,
          .first = first,
          .count = always(met) ? count : select(met, count, context.index(0)),
          .step = step,
          .most = (kernel - 1) / step + 1};
}

// a / b and a mod b for a >= 0, b > 0; with a constant b in the form that indices have.
std::pair<Expr, Expr> split(Expr a, Expr b) {
  if (b.pool->node(b.id).op == loop::Op::kConst) return {floor_div(a, b), floor_mod(a, b)};
  return {a / b, rem(a, b)};
}

Expr lower(LowerContext& context, int, std::span<const Expr> index) {
  const Shape& w = context.input_type(1).shape;
  const Shape planes = planes_of(context.input_type(0));
  const size_t dims = planes.size();
  const ir::Attrs& given = context.node().attrs;
  const Ints strides = list_attr(given, "strides", dims, 1);
  const Ints pads = list_attr(given, "pads", dims, 0);
  const Ints dilations = list_attr(given, "dilations", dims, 1);
  const int64_t group = context.attr_int("group");
  const int64_t per_group = w[0] / group;
  const Expr first = first_channel(context, index[1], group, w[1], per_group);
  const Expr channel = floor_mod(index[1], context.index(std::max<int64_t>(w[1], 1)));

  std::vector<Taps> taps;
  int64_t steps = per_group;
  for (size_t d = 0; d < dims; ++d) {
    taps.push_back(taps_of(context, index[d + 2] + context.index(pads[d]), w[d + 2], strides[d],
                           dilations[d]));
    steps *= taps[d].most;
  }
  const DType t = context.input_type(0).dtype;
  // The steps are numbered by the taps that exist, so that their count divides the number.
  const auto term = [&](std::span<const Expr> number) {
    const Expr depth = context.index(std::max<int64_t>(per_group, 1));
    const Expr in = first + floor_mod(number[0], depth);
    Expr rest = floor_div(number[0], depth);
    Index at(dims);
    Index k(dims);
    Expr inside = eq(context.index(0), context.index(0));
    for (size_t d = dims; d-- > 0;) {
      const Expr count = max(taps[d].count, context.index(1));
      const Expr j = d == 0 ? rest : split(rest, count).second;
      if (d > 0) rest = split(rest, count).first;
      k[d] = taps[d].first + j * context.index(taps[d].step);
      at[d] =
          floor_div(taps[d].place - k[d] * context.index(dilations[d]), context.index(strides[d]));
      inside = inside & lt(j, taps[d].count) & between(context, at[d], 0, planes[d]);
    }
    const Expr x = context.input_if(0, with_planes(index[0], in, at), inside, zero(context, t));
    const Expr weight = context.input_if(1, with_planes(in, channel, k), inside, zero(context, t));
    return ReduceTerm{.value = convert(x, compute_dtype(t)),
                      .value2 = convert(weight, compute_dtype(t)),
                      .guard = always(inside) ? Expr{} : inside};
  };
  const Expr sum = context.reduce(loop::ReduceKind::kChain, loop::ReduceOp::kSum, Ints{steps}, term,
                                  kChainSegment);
  return finish_conv(context, sum, 2, index[1]);
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
      .attrs = attrs(),
      .infer = infer,
      .lower = lower,
  };
  return def;
}

}  // namespace pyc::ops
