#include "ops/support/sample.h"

namespace pyc::ops {
namespace {

constexpr double kCubic = -0.75;

Expr interpolate_rest(LowerContext& context, Index& at, Expr inside,
                      std::span<const SampleTaps> dims) {
  const DType t = context.input_type(0).dtype;
  if (dims.empty()) {
    if (!inside.valid()) return context.input_compute(0, at);
    return convert(context.input_if(0, at, inside, zero(context, t)), compute_dtype(t));
  }
  Expr sum;
  for (const SampleTap& tap : dims.front()) {
    Expr both = inside.valid() ? inside : tap.inside;
    if (inside.valid() && tap.inside.valid()) both = inside & tap.inside;
    at.push_back(tap.at);
    const Expr value = interpolate_rest(context, at, both, dims.subspan(1)) * tap.weight;
    at.pop_back();
    sum = sum.valid() ? sum + value : value;
  }
  return sum;
}

}  // namespace

SampleTaps linear_taps(LowerContext& context, Expr x, int64_t size) {
  const Expr below = floor(x);
  const Expr t = x - below;
  const Expr first = convert(below, DType::kI64);
  const Expr second = first + context.index(1);
  return {{first, like(t, 1.0) - t, between(context, first, 0, size)},
          {second, t, between(context, second, 0, size)}};
}

std::vector<Expr> cubic_weights(Expr t) {
  const auto far = [](Expr x) {
    return ((x * kCubic - 5 * kCubic) * x + 8 * kCubic) * x - 4 * kCubic;
  };
  const auto near = [](Expr x) { return (x * (kCubic + 2) - (kCubic + 3)) * x * x + 1.0; };
  const Expr rest = like(t, 1.0) - t;
  return {far(t + 1.0), near(t), near(rest), far(like(t, 2.0) - t)};
}

Expr interpolate(LowerContext& context, Expr batch, Expr channel,
                 std::span<const SampleTaps> dims) {
  Index at{batch, channel};
  return interpolate_rest(context, at, {}, dims);
}

}  // namespace pyc::ops
