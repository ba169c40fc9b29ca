#include "ops/support/sample_form.h"

namespace pyc::ops {

ValueId whole(Compose& c, ValueId x, std::string_view rounding) {
  return c.cast(c.op(rounding, {x}), DType::kI64);
}

ValueId as_float(Compose& c, ValueId i, ValueId like) { return c.cast(i, c.type(like).dtype); }

ValueId is_between(Compose& c, ValueId i, double lo, double hi) {
  const ValueId above = c.op("greater_equal", {i, c.scalar_like(i, lo)});
  return c.op("logical_and", {above, c.op("less", {i, c.scalar_like(i, hi)})});
}

ValueId clamped(Compose& c, ValueId i, double lo, double hi) {
  return c.op("clip", {i, c.scalar_like(i, lo), c.scalar_like(i, hi)});
}

PlacedTaps linear_taps(Compose& c, ValueId x, int64_t size) {
  const auto n = static_cast<double>(size);
  const ValueId first = whole(c, x, "floor");
  const ValueId second = c.shift(first, 1.0);
  const ValueId t = c.sub(x, as_float(c, first, x));
  return {{first, c.sub(c.scalar_like(t, 1.0), t), is_between(c, first, 0.0, n)},
          {second, t, is_between(c, second, 0.0, n)}};
}

ValueId interpolate(Compose& c, ValueId x, const std::vector<PlacedTaps>& dims) {
  const Shape shape = c.type(x).shape;
  const Shape places = c.type(dims[0][0].at).shape;
  int64_t plane = 1;
  for (size_t d = 2; d < shape.size(); ++d) plane *= shape[d];
  const ValueId flat = c.reshape(x, {shape[0], shape[1], plane});
  size_t combinations = 1;
  for (const PlacedTaps& taps : dims) combinations *= taps.size();
  ValueId sum = ir::kNoId;
  for (size_t i = 0; i < combinations; ++i) {
    ValueId at = ir::kNoId;
    ValueId weight = ir::kNoId;
    ValueId inside = ir::kNoId;
    size_t rest = i;
    for (size_t d = 0; d < dims.size(); ++d) {
      const PlacedTap& tap = dims[d][rest % dims[d].size()];
      rest /= dims[d].size();
      const ValueId row = clamped(c, tap.at, 0.0, static_cast<double>(shape[d + 2] - 1));
      at = d == 0 ? row : c.add(c.scale(at, static_cast<double>(shape[d + 2])), row);
      weight = d == 0 ? tap.weight : c.mul(weight, tap.weight);
      if (tap.inside == ir::kNoId) continue;
      inside = inside == ir::kNoId ? tap.inside : c.op("logical_and", {inside, tap.inside});
    }
    if (inside != ir::kNoId) weight = c.op("where", {inside, weight, c.scalar_like(weight, 0.0)});
    const auto per_channel = [&](ValueId v) { return c.reshape(v, {places[0], 1, places[1]}); };
    const ValueId index = c.expand(per_channel(at), {shape[0], shape[1], places[1]});
    const ValueId read = c.op("gather_elements", {flat, index}, {{"axis", int64_t{2}}});
    const ValueId part = c.mul(read, per_channel(weight));
    sum = sum == ir::kNoId ? part : c.add(sum, part);
  }
  return sum;
}

}  // namespace pyc::ops
