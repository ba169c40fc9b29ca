#include "train/trace.h"

#include <fmt/format.h>

#include <vector>

#include "driver/stages.h"
#include "ops/registry.h"
#include "session/model.h"
#include "train/compose.h"

namespace pyc::train {
namespace {

// What a flag says.
constexpr int32_t kFinite = 0;
constexpr int32_t kInfinite = 1;
constexpr int32_t kNan = 2;

// A value of the graph and its flag.
struct Flag {
  ValueId value;
  int32_t found = kFinite;
};

// The graph with the flags as outputs, of the given values.
Result<ir::VerifiedGraph> with_flags(const ir::VerifiedGraph& graph,
                                     const std::vector<Flag>& flags) {
  ir::Graph copy = *graph;
  copy.outputs.clear();
  ir::GraphBuilder builder(ops::all_ops(), std::move(copy));
  StepComposer c(builder);
  for (const Flag& flag : flags) {
    const ValueId nan = c.scale(c.cast(c.op("is_nan", {flag.value}), DType::kI32), kNan);
    const ValueId infinite = c.cast(c.op("is_inf", {flag.value}), DType::kI32);
    const ValueId most = c.op("reduce_max", {c.op("max", {nan, infinite})}, {{"keepdims", false}});
    PYC_TRY(c.status());
    PYC_TRY(builder.output(most));
  }
  return ir::verify_graph(std::move(builder).take(), &graph);
}

Status run_flags(const ir::VerifiedGraph& probe, std::span<const runtime::TensorView> inputs,
                 const driver::CompileOptions& options, std::vector<Flag>& flags) {
  PYC_ASSIGN(const std::unique_ptr<runtime::Model> model, session::compile(probe, options));
  std::vector<runtime::TensorView> outputs;
  for (size_t i = 0; i < flags.size(); ++i) {
    outputs.push_back({.data = &flags[i].found,
                       .dtype = DType::kI32,
                       .shape = model->outputs()[i].shape,
                       .bytes = sizeof(int32_t)});
  }
  return model->run(inputs, outputs);
}

std::string described(const ir::Graph& graph, const ir::Node& node) {
  const std::string from = node.loc.empty() ? "" : fmt::format(" from '{}'", node.loc);
  return fmt::format("op '{}' of %{}{}", node.op->name, graph.value(node.outputs[0]).name, from);
}

// Back from `v` along what is not finite, NaNs before infinities.
std::string walk_back(const ir::Graph& graph, const std::vector<int32_t>& found, ValueId v) {
  std::vector<ir::NodeId> maker(graph.values.size(), ir::kNoId);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId out : graph.nodes[n].outputs) maker[out] = n;
  }
  std::string nan_made_by;
  while (maker[v] != ir::kNoId) {
    const ir::Node& node = graph.nodes[maker[v]];
    ValueId worst = ir::kNoId;
    for (const ValueId input : node.inputs) {
      const int32_t most = worst == ir::kNoId ? kFinite : found[worst];
      if (found[input] > most) worst = input;
    }
    const int32_t before = worst == ir::kNoId ? kFinite : found[worst];
    const std::string what = found[v] == kNan ? "NaN" : "infinity";
    if (before == kFinite) {
      const std::string made =
          fmt::format("the first {} is made by {}", what, described(graph, node));
      return nan_made_by.empty() ? made : fmt::format("{}; {}", nan_made_by, made);
    }
    if (found[v] == kNan && before == kInfinite) {
      nan_made_by = fmt::format("a NaN is made of infinities by {}", described(graph, node));
    }
    v = worst;
  }
  return fmt::format("%{}, which the step takes, has elements that are not finite",
                     graph.value(v).name);
}

}  // namespace

std::string trace_not_finite(const ir::VerifiedGraph& graph,
                             std::span<const runtime::TensorView> inputs,
                             const driver::CompileOptions& given) {
  driver::CompileOptions options = given;
  options.states.clear();
  options.memory_budget = 0;
  options.cache = false;
  const auto stages = driver::stages(graph, options);
  if (!stages.ok()) return "";
  const ir::VerifiedGraph& canonical = stages->canonical;
  std::vector<Flag> flags;
  for (ValueId v = 0; v < canonical->values.size(); ++v) {
    const ir::Value& value = canonical->value(v);
    if (value.kind == ir::ValueKind::kConstant || !is_float(value.type.dtype)) continue;
    if (value.type.elements() > 0) flags.push_back({v});
  }
  const auto probe = with_flags(canonical, flags);
  options.precision = DType::kF32;  // which the canonical graph has been through
  if (!probe.ok() || !run_flags(*probe, inputs, options, flags).ok()) return "";
  std::vector<int32_t> found(canonical->values.size(), kFinite);
  for (const Flag& flag : flags) found[flag.value] = flag.found;
  for (const ValueId output : canonical->outputs) {
    if (found[output] != kFinite) return walk_back(*canonical, found, output);
  }
  return "";
}

}  // namespace pyc::train
