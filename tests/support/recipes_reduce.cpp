// Reductions, scans, norms and what else works along axes.

#include "support/draw.h"

namespace pyc::test {
namespace {

// All reductions but for their names: axes and keepdims.
Result<ValueId> reduce(Draw& d, DType t, std::string_view op) {
  const Shape shape = d.shape();
  Attrs attrs{{"keepdims", d.flip()}};
  if (!d.chance(5)) attrs["axes"] = d.axes(std::ssize(shape));
  return d.op(op, {d.tensor(t, shape)}, std::move(attrs));
}
Result<ValueId> reduce_l1(Draw& d, DType t) { return reduce(d, t, "reduce_l1"); }
Result<ValueId> reduce_l2(Draw& d, DType t) { return reduce(d, t, "reduce_l2"); }
Result<ValueId> reduce_log_sum(Draw& d, DType t) { return reduce(d, t, "reduce_log_sum"); }
Result<ValueId> reduce_log_sum_exp(Draw& d, DType t) { return reduce(d, t, "reduce_log_sum_exp"); }
Result<ValueId> reduce_max(Draw& d, DType t) { return reduce(d, t, "reduce_max"); }
Result<ValueId> reduce_mean(Draw& d, DType t) { return reduce(d, t, "reduce_mean"); }
Result<ValueId> reduce_min(Draw& d, DType t) { return reduce(d, t, "reduce_min"); }
Result<ValueId> reduce_prod(Draw& d, DType t) { return reduce(d, t, "reduce_prod"); }
Result<ValueId> reduce_sum(Draw& d, DType t) { return reduce(d, t, "reduce_sum"); }
Result<ValueId> reduce_sum_square(Draw& d, DType t) { return reduce(d, t, "reduce_sum_square"); }

// One axis.
Result<ValueId> along(Draw& d, DType t, std::string_view op, Attrs attrs = {}) {
  const Shape shape = d.shape(1);
  attrs["axis"] = d.axis(std::ssize(shape));
  return d.op(op, {d.tensor(t, shape)}, std::move(attrs));
}
Result<ValueId> cumsum(Draw& d, DType t) {
  return along(d, t, "cumsum", {{"exclusive", d.flip()}, {"reverse", d.flip()}});
}
Result<ValueId> cumprod(Draw& d, DType t) {
  return along(d, t, "cumprod", {{"exclusive", d.flip()}, {"reverse", d.flip()}});
}
Result<ValueId> softmax(Draw& d, DType t) { return along(d, t, "softmax"); }
Result<ValueId> log_softmax(Draw& d, DType t) { return along(d, t, "log_softmax"); }
Result<ValueId> hardmax(Draw& d, DType t) { return along(d, t, "hardmax"); }
Result<ValueId> lp_normalization(Draw& d, DType t) {
  return along(d, t, "lp_normalization", {{"p", d.pick(1, 2)}});
}
Result<ValueId> layer_norm_stats(Draw& d, DType t) { return along(d, t, "layer_norm_stats"); }

Shape from_axis(const Shape& shape, int64_t axis) {
  return {shape.begin() + (axis < 0 ? axis + std::ssize(shape) : axis), shape.end()};
}

Result<ValueId> layer_norm(Draw& d, DType t) {
  const Shape shape = d.shape(1);
  const int64_t axis = d.axis(std::ssize(shape));
  std::vector<ValueId> inputs{d.tensor(t, shape), d.tensor(t, from_axis(shape, axis))};
  if (d.flip()) inputs.push_back(d.tensor(t, from_axis(shape, axis)));
  return d.op("layer_norm", std::move(inputs), {{"axis", axis}});
}

Result<ValueId> rms_norm(Draw& d, DType t) {
  const Shape shape = d.shape(1);
  const int64_t axis = d.axis(std::ssize(shape));
  return d.op("rms_norm", {d.tensor(t, shape), d.tensor(t, from_axis(shape, axis))},
              {{"axis", axis}});
}

// x and `count` parameters per channel. The last one is a variance, which tame
// values keep positive.
std::vector<ValueId> with_channels(Draw& d, DType t, int count, int64_t channels,
                                   int64_t min_rank = 2) {
  Shape shape = d.shape(min_rank, 5, 1);
  shape[1] = channels;
  std::vector<ValueId> inputs{d.tensor(t, shape)};
  for (int i = 1; i <= count; ++i) {
    inputs.push_back(i == count ? d.tensor_in(t, {channels}, 0.5, 1.5) : d.tensor(t, {channels}));
  }
  return inputs;
}
Result<ValueId> batch_norm(Draw& d, DType t) {
  return d.op("batch_norm", with_channels(d, t, 4, d.pick(1, 5)));
}
Result<ValueId> batch_norm_training(Draw& d, DType t) {
  return d.op("batch_norm_training", with_channels(d, t, 4, d.pick(1, 5)), {{"momentum", 0.75}});
}
Result<ValueId> instance_norm(Draw& d, DType t) {
  return d.op("instance_norm", with_channels(d, t, 2, d.pick(1, 5), 3));
}
Result<ValueId> group_norm(Draw& d, DType t) {
  const int64_t groups = d.pick(1, 3);
  return d.op("group_norm", with_channels(d, t, 2, groups * d.pick(1, 3)),
              {{"num_groups", groups}});
}

Result<ValueId> mean_variance_normalization(Draw& d, DType t) {
  const Shape shape = d.shape();
  return d.op("mean_variance_normalization", {d.tensor(t, shape)},
              {{"axes", d.axes(std::ssize(shape))}});
}

constexpr Recipe kReduceRecipes[] = {
    {"batch_norm", batch_norm},
    {"batch_norm_training", batch_norm_training},
    {"cumprod", cumprod},
    {"cumsum", cumsum},
    {"group_norm", group_norm},
    {"hardmax", hardmax, true},
    {"instance_norm", instance_norm},
    {"layer_norm", layer_norm},
    {"layer_norm_stats", layer_norm_stats},
    {"log_softmax", log_softmax},
    {"lp_normalization", lp_normalization},
    {"mean_variance_normalization", mean_variance_normalization},
    {"reduce_l1", reduce_l1},
    {"reduce_l2", reduce_l2},
    {"reduce_log_sum", reduce_log_sum},
    {"reduce_log_sum_exp", reduce_log_sum_exp},
    {"reduce_max", reduce_max},
    {"reduce_mean", reduce_mean},
    {"reduce_min", reduce_min},
    {"reduce_prod", reduce_prod},
    {"reduce_sum", reduce_sum},
    {"reduce_sum_square", reduce_sum_square},
    {"rms_norm", rms_norm},
    {"softmax", softmax},
};

}  // namespace

Recipes reduce_recipes() { return kReduceRecipes; }

}  // namespace pyc::test
