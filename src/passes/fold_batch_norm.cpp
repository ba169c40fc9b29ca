#include <fmt/format.h>

#include <cmath>

#include "base/convert.h"
#include "ir/patch.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

constexpr std::string_view kName = "fold_batch_norm";
enum Parameter : size_t { kGamma = 1, kBeta, kMean, kVar };

std::vector<int> count_readers(const ir::Graph& graph) {
  std::vector<int> readers(graph.values.size(), 0);
  for (const ir::Node& node : graph.nodes) {
    for (const ir::ValueId v : node.inputs) ++readers[v];
  }
  for (const ir::ValueId v : graph.outputs) ++readers[v];
  return readers;
}

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
  if (is_narrow_float(norm.type().dtype)) return "narrow_float";
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

ir::ValueId folded(ir::Patch& patch, const ir::NodeView& norm, const ir::NodeView& conv) {
  const ir::TensorType& type = norm.input_type(kVar);
  const ir::ValueId epsilon = patch.constant(
      {type.dtype, {}},
      ir::splat_data({type.dtype, {}}, std::get<double>(norm.attrs().at("epsilon"))));
  const ir::ValueId deviation = patch.op("sqrt", {patch.op("add", {norm.input(kVar), epsilon})});
  const ir::ValueId scale = patch.op("div", {norm.input(kGamma), deviation});
  ir::Shape per_channel(static_cast<size_t>(conv.input_type(1).rank()), 1);
  per_channel[0] = type.shape[0];
  const ir::ValueId column = patch.op("reshape", {scale}, {{"shape", per_channel}});
  const ir::ValueId weights = patch.op("mul", {conv.input(1), column});
  const ir::ValueId centred = conv.inputs() > 2
                                  ? patch.op("sub", {conv.input(2), norm.input(kMean)})
                                  : patch.op("neg", {norm.input(kMean)});
  const ir::ValueId bias = patch.op("add", {patch.op("mul", {centred, scale}), norm.input(kBeta)});
  return patch.op(conv.op().name, {conv.input(0), weights, bias}, conv.attrs());
}

}  // namespace

Result<bool> fold_batch_norm(ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, context.ops);
  const std::vector<int> readers = count_readers(graph);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    const ir::NodeView norm = patch.node(n);
    if (!norm.is("batch_norm")) continue;
    const ir::NodeView conv = patch.producer(norm.input(0));
    if (!conv.is("conv2d")) continue;
    const std::string& name = graph.value(norm.outputs()[0]).name;
    const std::string_view why_not = obstacle(patch, norm, conv, readers[norm.input(0)]);
    if (!why_not.empty()) {
      context.decide(kName, name, "kept", std::string(why_not));
      continue;
    }
    patch.at(n);
    patch.replace(norm.outputs()[0], folded(patch, norm, conv));
    context.decide(kName, name, "folded into convolution", "value_changing",
                   fmt::format("weights {}", conv.input_type(1).to_string()));
  }
  return patch.apply();
}

}  // namespace pyc::passes
