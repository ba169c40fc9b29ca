#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "base/convert.h"
#include "base/fp_state.h"
#include "passes/look.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

constexpr std::string_view kFoldBatchNorm = "fold_batch_norm";
enum Parameter : size_t { kGamma = 1, kBeta, kMean, kVar };

// Whether every element is finite and, with `offset` added, above `above`.
bool all_elements(const ir::Patch& patch, ir::ValueId v, double offset, double above) {
  const auto& data = patch.constant(v);
  if (data == nullptr) return false;
  const DType t = patch.type(v).dtype;
  for (int64_t i = 0; i < patch.type(v).elements(); ++i) {
    const double x = word_to_double(load_word(data->bytes.data() + i * dtype_size(t), t), t);
    if (!std::isfinite(x) || !(x + offset > above)) return false;
  }
  return true;
}

// "" when the norm can go into the convolution, or the reason why not.
std::string_view obstacle(const ir::Patch& patch, const ir::NodeView& norm,
                          const ir::NodeView& conv, int readers) {
  if (is_narrow_float(conv.input_type(1).dtype)) return "narrow_float";
  if (readers != 1) return "convolution_read_elsewhere";
  for (size_t i = 1; i < conv.inputs(); ++i) {
    if (patch.constant(conv.input(i)) == nullptr) return "weights_not_constant";
  }
  for (size_t i = kGamma; i <= kVar; ++i) {
    if (patch.constant(norm.input(i)) == nullptr) return "parameters_not_constant";
  }
  const double epsilon = std::get<double>(norm.attrs().at("epsilon"));
  for (size_t i = kGamma; i < kVar; ++i) {
    if (!all_elements(patch, norm.input(i), 0.0, -HUGE_VAL)) return "parameters_not_finite";
  }
  if (!all_elements(patch, norm.input(kVar), epsilon, 0.0)) return "variance_not_positive";
  return "";
}

template <class T>
std::vector<T> elements(const ir::Patch& patch, ir::ValueId v) {
  const SharedBytes& bytes = patch.constant(v)->bytes;
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());  // at any address
  return out;
}

template <class T>
ir::ValueId constant(ir::Patch& patch, const ir::TensorType& type, std::vector<T> values) {
  for (T& x : values) {
    if (x != x) x = std::numeric_limits<T>::quiet_NaN();
  }
  const auto bytes = std::as_bytes(std::span(values));
  return patch.constant(type, ir::dense_data(std::vector<std::byte>(bytes.begin(), bytes.end())));
}

// The convolution that does both. Weights can be large, and each is multiplied once: by the machine
// instead of the evaluator.
template <class T>
ir::ValueId folded(ir::Patch& patch, const ir::NodeView& norm, const ir::NodeView& conv) {
  const FpStateGuard state;
  const auto parameter = [&](size_t i) { return elements<T>(patch, norm.input(i)); };
  const std::vector<T> gamma = parameter(kGamma);
  const std::vector<T> beta = parameter(kBeta);
  const std::vector<T> mean = parameter(kMean);
  const std::vector<T> var = parameter(kVar);
  const auto epsilon = static_cast<T>(std::get<double>(norm.attrs().at("epsilon")));
  const size_t channels = var.size();
  const std::vector<T> conv_bias =
      conv.inputs() > 2 ? elements<T>(patch, conv.input(2)) : std::vector<T>(channels, T{-0.0});
  std::vector<T> scale(channels);
  std::vector<T> bias(channels);
  for (size_t c = 0; c < channels; ++c) {
    const T r = T{1} / std::sqrt(var[c] + epsilon);
    scale[c] = gamma[c] * r;
    const T scaled = (conv_bias[c] - mean[c]) * scale[c];
    bias[c] = scaled + beta[c];
  }
  const std::vector<T> given = elements<T>(patch, conv.input(1));
  std::vector<T> weights(given.size());
  const size_t per_channel = given.size() / std::max<size_t>(channels, 1);
  for (size_t i = 0; i < given.size(); ++i) weights[i] = given[i] * scale[i / per_channel];
  return patch.op(conv.op().name,
                  {conv.input(0), constant(patch, conv.input_type(1), std::move(weights)),
                   constant(patch, norm.input_type(kBeta), std::move(bias))},
                  conv.attrs());
}

}  // namespace

Result<bool> fold_batch_norm(ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, context.ops);
  const std::vector<int> readers = count_readers(graph);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    const ir::NodeView norm = patch.node(n);
    if (!norm.is("batch_norm")) continue;
    const ir::NodeView conv = patch.producer(norm.input(0));
    if (!conv.is("conv")) continue;
    const std::string& name = graph.value(norm.outputs()[0]).name;
    const std::string_view why_not = obstacle(patch, norm, conv, readers[norm.input(0)]);
    if (!why_not.empty()) {
      context.decide(kFoldBatchNorm, name, "kept", std::string(why_not));
      continue;
    }
    patch.at(n);
    const bool wide = norm.type().dtype == DType::kF64;
    patch.replace(norm.outputs()[0],
                  wide ? folded<double>(patch, norm, conv) : folded<float>(patch, norm, conv));
    context.count("conv_batch_norm");
    context.decide(kFoldBatchNorm, name, "folded into convolution", "value_changing",
                   fmt::format("weights {}", conv.input_type(1).to_string()));
  }
  return patch.apply();
}

}  // namespace pyc::passes
