// Ops that work element by element, and those that make tensors of nothing.

#include "support/draw.h"

namespace pyc::test {
namespace {

Result<ValueId> bernoulli(Draw& d, DType t) {
  const DType to = d.any_dtype();
  return d.op("bernoulli", {d.tensor_in(t, d.shape(), 0.0, 1.0)},
              {{"dtype", to}, {"seed", d.pick(0, 99)}, {"stream", d.pick(0, 3)}});
}

Result<ValueId> bitcast(Draw& d, DType t) {
  DType to = d.any_dtype();
  while (dtype_bits(to) != dtype_bits(t)) to = d.any_dtype();
  return d.op("bitcast", {d.tensor(t, d.shape())}, {{"to", to}});
}

Result<ValueId> cast(Draw& d, DType t) {
  Attrs attrs{{"to", d.any_dtype()}, {"saturate", d.flip()}};
  if (std::get<DType>(attrs["to"]) == DType::kF8E8M0) {
    attrs["round_mode"] = d.word({"up", "down", "nearest"});
  }
  return d.op("cast", {d.tensor_in(t, d.shape(), 0.0, 6.0)}, std::move(attrs));
}

Result<ValueId> clip(Draw& d, DType t) {
  const ValueId x = d.tensor(t, d.shape());
  if (!d.tame()) return d.op("clip", {x, d.tensor(t, {}), d.tensor(t, {})});
  return d.op("clip", {x, d.fresh(t, {}, 0.0, 1.0), d.fresh(t, {}, 1.0, 5.0)});
}

// Tame divisors are not 0.
Result<ValueId> divided(Draw& d, DType t, std::string_view op, Attrs attrs) {
  const Shape shape = d.shape();
  const ValueId a = d.tensor(t, shape);
  return d.op(op, {a, d.tensor_in(t, d.broadcastable(shape), 1.0, 3.9)}, std::move(attrs));
}
Result<ValueId> div(Draw& d, DType t) { return divided(d, t, "div", {}); }
Result<ValueId> mod(Draw& d, DType t) { return divided(d, t, "mod", {{"fmod", d.flip()}}); }

Result<ValueId> gelu(Draw& d, DType t) {
  return d.op("gelu", {d.tensor(t, d.shape())}, {{"approximate", d.word({"none", "tanh"})}});
}

Result<ValueId> pow(Draw& d, DType t) {
  const Shape shape = d.shape();
  const DType exponent = d.flip() ? t : d.choose({DType::kF32, DType::kI32, DType::kI64});
  const ValueId x = d.tensor(t, shape);
  return d.op("pow", {x, d.tensor_in(exponent, d.broadcastable(shape), 0.0, 3.0)});
}

Result<ValueId> where(Draw& d, DType t) {
  const Shape shape = d.shape();
  return d.op("where", {d.tensor(DType::kBool, d.broadcastable(shape)), d.tensor(t, shape),
                        d.tensor(t, d.broadcastable(shape))});
}

Result<ValueId> eye(Draw& d, DType t) {
  return d.op("eye", {},
              {{"rows", d.dim(0)}, {"cols", d.dim(0)}, {"k", d.pick(-3, 3)}, {"dtype", t}});
}

Result<ValueId> iota(Draw& d, DType t) {
  const Shape shape = d.shape(1);
  return d.op("iota", {},
              {{"axis", d.axis(std::ssize(shape))},
               {"shape", shape},
               {"dtype", t},
               {"start", static_cast<double>(d.pick(-3, 9))},
               {"step", static_cast<double>(d.pick(-2, 2))}});
}

Result<ValueId> window_function(Draw& d, DType t) {
  return d.op("window_function", {},
              {{"kind", d.word({"hann", "hamming", "blackman"})},
               {"size", d.dim(0)},
               {"periodic", d.flip()},
               {"dtype", t}});
}

Result<ValueId> mel_weight_matrix(Draw& d, DType t) {
  return d.op("mel_weight_matrix", {},
              {{"num_mel_bins", d.pick(1, 6)},
               {"dft_length", d.pick(8, 40)},
               {"sample_rate", int64_t{8000}},
               {"lower_edge_hertz", static_cast<double>(d.pick(0, 500))},
               {"upper_edge_hertz", static_cast<double>(d.pick(1000, 3500))},
               {"dtype", t}});
}

Result<ValueId> random_uniform(Draw& d, DType t) {
  return d.op("random_uniform", {},
              {{"shape", d.shape()}, {"dtype", t}, {"seed", d.pick(0, 99)}, {"hi", 2.0}});
}
Result<ValueId> random_normal(Draw& d, DType t) {
  return d.op("random_normal", {},
              {{"shape", d.shape()}, {"dtype", t}, {"seed", d.pick(0, 99)}, {"scale", 2.0}});
}

constexpr Recipe kElementwiseRecipes[] = {
    {"acos", nullptr, false, -0.9, 0.9},
    {"acosh", nullptr, false, 1.1, 3.0},
    {"asin", nullptr, false, -0.9, 0.9},
    {"atanh", nullptr, false, -0.9, 0.9},
    {"bernoulli", bernoulli, true},
    {"bitcast", bitcast, true},
    {"cast", cast, true},
    {"ceil", nullptr, true, -3.0, 3.0},
    {"clip", clip},
    {"div", div},
    {"equal", nullptr, true},
    {"eye", eye},
    {"floor", nullptr, true, -3.0, 3.0},
    {"gelu", gelu},
    {"greater", nullptr, true},
    {"greater_equal", nullptr, true},
    {"iota", iota},
    {"is_inf", nullptr, true},
    {"is_nan", nullptr, true},
    {"less", nullptr, true},
    {"less_equal", nullptr, true},
    {"mel_weight_matrix", mel_weight_matrix},
    {"mod", mod, true},
    {"not_equal", nullptr, true},
    {"pow", pow},
    {"random_normal", random_normal},
    {"random_uniform", random_uniform},
    {"round", nullptr, true, -3.0, 3.0},
    {"shrink", nullptr, true, -3.0, 3.0},
    {"sign", nullptr, true, -3.0, 3.0},
    {"thresholded_relu", nullptr, true, -3.0, 3.0},
    {"trunc", nullptr, true, -3.0, 3.0},
    {"where", where},
    {"window_function", window_function},
};

}  // namespace

Recipes elementwise_recipes() { return kElementwiseRecipes; }

}  // namespace pyc::test
