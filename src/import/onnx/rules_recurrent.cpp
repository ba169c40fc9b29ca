#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/rules.h"

namespace pyc::onnx {

int64_t stream_of(CloseContext& c) {
  // FNV-1a of the node's name, which is its own: the same node draws the same numbers in every run,
  // however the graph around it is cut and simplified.
  uint64_t h = 1469598103934665603ULL;
  for (const char ch : c.node().name) h = (h ^ static_cast<unsigned char>(ch)) * 1099511628211ULL;
  return static_cast<int64_t>(h >> 1);
}

namespace {

// "Sigmoid", "Tanh" … as the op's one string: "sigmoid,tanh".
std::string activations_of(CloseContext& c) {
  std::string joined;
  const auto* names = c.attr_strings("activations");
  if (names == nullptr) return joined;
  for (const std::string& name : *names) {
    if (!joined.empty()) joined += ",";
    for (size_t i = 0; i < name.size(); ++i) {
      const bool upper = name[i] >= 'A' && name[i] <= 'Z';
      if (upper && i > 0) joined += '_';
      joined += upper ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
    }
  }
  return joined;
}

Attrs recurrent_attrs(CloseContext& c, const Operands& o) {
  Attrs attrs{{"with", o.with},
              {"direction", c.attr_string("direction", "forward")},
              {"activations", activations_of(c)},
              {"layout", c.attr_int("layout", 0)}};
  if (c.has_attr("activation_alpha")) attrs["alphas"] = c.attr_floats("activation_alpha");
  if (c.has_attr("activation_beta")) attrs["betas"] = c.attr_floats("activation_beta");
  if (c.has_attr("clip")) attrs["clip"] = c.attr_float("clip", 0.0);
  return attrs;
}

Status finish(CloseContext& c, ValueId y) {
  for (size_t i = 0; i < c.outputs() && c.ok(); ++i) c.set(i, c.result(y, i));
  return c.status();
}

Status lstm(CloseContext& c) {
  const Operands o = operands_of(c, 3, "b sequence_lens initial_h initial_c p");
  Attrs attrs = recurrent_attrs(c, o);
  attrs["input_forget"] = c.attr_int("input_forget", 0) != 0;
  return finish(c, c.op("lstm", o.inputs, std::move(attrs)));
}

Status gru(CloseContext& c) {
  const Operands o = operands_of(c, 3, "b sequence_lens initial_h");
  Attrs attrs = recurrent_attrs(c, o);
  attrs["linear_before_reset"] = c.attr_int("linear_before_reset", 0) != 0;
  return finish(c, c.op("gru", o.inputs, std::move(attrs)));
}

Status rnn(CloseContext& c) {
  const Operands o = operands_of(c, 3, "b sequence_lens initial_h");
  return finish(c, c.op("rnn", o.inputs, recurrent_attrs(c, o)));
}

int64_t seed_of(CloseContext& c) { return int_of(c, c.attr_float("seed", 0.0)); }

ValueId uniform(CloseContext& c, Shape shape, DType t) {
  return c.op("random_uniform", {},
              {{"shape", std::move(shape)},
               {"dtype", t},
               {"lo", c.attr_float("low", 0.0)},
               {"hi", c.attr_float("high", 1.0)},
               {"seed", seed_of(c)},
               {"stream", stream_of(c)}});
}

ValueId normal(CloseContext& c, Shape shape, DType t) {
  return c.op("random_normal", {},
              {{"shape", std::move(shape)},
               {"dtype", t},
               {"mean", c.attr_float("mean", 0.0)},
               {"scale", c.attr_float("scale", 1.0)},
               {"seed", seed_of(c)},
               {"stream", stream_of(c)}});
}

Status random_uniform(CloseContext& c) {
  return c.give(uniform(c, c.attr_ints("shape"), dtype_attr(c, "dtype", DType::kF32)));
}
Status random_normal(CloseContext& c) {
  return c.give(normal(c, c.attr_ints("shape"), dtype_attr(c, "dtype", DType::kF32)));
}
Status random_uniform_like(CloseContext& c) {
  const TensorType x = c.type(c.input(0));
  return c.give(uniform(c, x.shape, dtype_attr(c, "dtype", x.dtype)));
}
Status random_normal_like(CloseContext& c) {
  const TensorType x = c.type(c.input(0));
  return c.give(normal(c, x.shape, dtype_attr(c, "dtype", x.dtype)));
}

Status bernoulli(CloseContext& c) {
  return c.give(c.op("bernoulli", {c.input(0)},
                     {{"dtype", dtype_attr(c, "dtype", c.dtype(c.input(0)))},
                      {"seed", seed_of(c)},
                      {"stream", stream_of(c)}}));
}

Status multinomial(CloseContext& c) {
  return c.give(c.op("multinomial", {c.input(0)},
                     {{"sample_size", c.attr_int("sample_size", 1)},
                      {"dtype", dtype_attr(c, "dtype", DType::kI32)},
                      {"seed", seed_of(c)},
                      {"stream", stream_of(c)}}));
}

template <Name Kind>
Status window(CloseContext& c) {
  return c.give(c.op("window_function", {},
                     {{"kind", std::string(Kind.text)},
                      {"size", c.int_value(c.input(0))},
                      {"periodic", c.attr_int("periodic", 1) != 0},
                      {"dtype", dtype_attr(c, "output_datatype", DType::kF32)}}));
}

Status mel_weight_matrix(CloseContext& c) {
  const auto number = [&](size_t i) { return c.float_value(c.input(i)); };
  return c.give(c.op("mel_weight_matrix", {},
                     {{"num_mel_bins", int_of(c, number(0))},
                      {"dft_length", int_of(c, number(1))},
                      {"sample_rate", int_of(c, number(2))},
                      {"lower_edge_hertz", number(3)},
                      {"upper_edge_hertz", number(4)},
                      {"dtype", dtype_attr(c, "output_datatype", DType::kF32)}}));
}

Status dft(CloseContext& c) {
  int64_t axis = c.attr_int("axis", c.version() < 20 ? 1 : -2);
  if (c.version() >= 20 && c.has(2)) axis = c.int_value(c.input(2));
  const int64_t length = c.has(1) ? c.int_value(c.input(1)) : 0;
  return c.give(c.op("dft", {c.input(0)},
                     {{"axis", axis},
                      {"length", length},
                      {"inverse", c.attr_int("inverse", 0) != 0},
                      {"onesided", c.attr_int("onesided", 0) != 0}}));
}

// The standard has a last dim of 1 for real signals; exporters leave it out, and ONNX Runtime takes
// that.
ValueId with_real_dim(CloseContext& c, ValueId signal) {
  if (c.rank(signal) != 2) return signal;
  const Shape& shape = c.type(signal).shape;
  return c.reshape(signal, {shape[0], shape[1], 1});
}

Status stft(CloseContext& c) {
  std::vector<ValueId> in{with_real_dim(c, c.input(0))};
  if (c.has(2)) in.push_back(c.input(2));
  const int64_t step = c.int_value(c.input(1));
  const int64_t length = c.has(3) ? c.int_value(c.input(3)) : 0;
  return c.give(c.op("stft", in,
                     {{"frame_step", step},
                      {"frame_length", length},
                      {"onesided", c.attr_int("onesided", 1) != 0}}));
}

constexpr Rule kRecurrentRules[] = {
    {.op = "Bernoulli", .close = bernoulli, .random = true},
    {"BlackmanWindow", window<"blackman">},
    {"DFT", dft},
    {"GRU", gru},
    {"HammingWindow", window<"hamming">},
    {"HannWindow", window<"hann">},
    {"LSTM", lstm},
    {"MelWeightMatrix", mel_weight_matrix},
    {.op = "Multinomial", .close = multinomial, .random = true},
    {"RNN", rnn},
    {.op = "RandomNormal", .close = random_normal, .random = true},
    {.op = "RandomNormalLike", .close = random_normal_like, .random = true},
    {.op = "RandomUniform", .close = random_uniform, .random = true},
    {.op = "RandomUniformLike", .close = random_uniform_like, .random = true},
    {"STFT", stft},
};

}  // namespace

Rules recurrent_rules() { return kRecurrentRules; }

}  // namespace pyc::onnx
