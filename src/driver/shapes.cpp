#include "driver/shapes.h"

#include <fmt/format.h>

#include <set>

#include "ir/rules.h"

namespace pyc::driver {
namespace {

using Dim = ir::OpenType::Dim;

std::string suggestion(const std::string& name, const std::set<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  return ir::did_you_mean(ir::closest_name(name, names));
}

Status check_size(const std::string& what, int64_t size) {
  if (size >= 0) return {};
  return {Code::kInvalidArgument,
          fmt::format("{}: expected a size of 0 or more, found {}", what, size)};
}

Status check_names(const ir::OpenGraph& graph, const ShapeChoice& choice) {
  std::set<std::string> inputs;
  std::set<std::string> dims;
  for (const ir::OpenId v : graph.inputs) {
    inputs.insert(graph.values[v].name);
    if (!graph.values[v].type.shape) continue;
    for (const Dim& d : *graph.values[v].type.shape) {
      if (!d.symbol.empty()) dims.insert(d.symbol);
    }
  }
  for (const auto& [name, shape] : choice.inputs) {
    for (const int64_t size : shape) PYC_TRY(check_size(fmt::format("input '{}'", name), size));
    if (inputs.contains(name)) continue;
    return {Code::kInvalidArgument,
            fmt::format("the model has no input '{}'{}", name, suggestion(name, inputs))};
  }
  for (const auto& [name, size] : choice.dims) {
    PYC_TRY(check_size(fmt::format("dim '{}'", name), size));
    if (dims.contains(name)) continue;
    return {Code::kInvalidArgument,
            fmt::format("no input of the model has a dim '{}'{}", name, suggestion(name, dims))};
  }
  return {};
}

// A value that has the chosen shape: contradictions are found as those of a run are.
DynValue stand_in(const ir::OpenType& type, const std::vector<int64_t>& shape) {
  if (type.kind == ir::OpenType::Kind::kOptional && type.element != nullptr) {
    return stand_in(*type.element, shape);
  }
  DynValue value;
  value.kind = type.kind == ir::OpenType::Kind::kStrings ? DynValue::Kind::kStrings
                                                         : DynValue::Kind::kTensor;
  value.dtype = type.dtype.value_or(DType::kF32);
  value.shape = shape;
  return value;
}

void set_shape(ir::OpenType& type, const std::vector<int64_t>& shape) {
  type.shape = std::vector<Dim>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) (*type.shape)[i].value = shape[i];
}

}  // namespace

Result<std::shared_ptr<const ir::OpenGraph>> fix_shapes(std::shared_ptr<const ir::OpenGraph> graph,
                                                        const ShapeChoice& choice) {
  if (choice.empty()) return graph;
  PYC_TRY(check_names(*graph, choice));
  ir::SymbolSizes sizes;
  for (const auto& [name, size] : choice.dims) sizes.set(name, size, "the chosen dims");
  for (const ir::OpenId v : graph->inputs) {
    const ir::OpenValue& input = graph->values[v];
    const auto shape = choice.inputs.find(input.name);
    if (shape == choice.inputs.end()) continue;
    const DynValue value = stand_in(input.type, shape->second);
    PYC_TRY(ir::check_accepts(input, value));
    PYC_TRY(sizes.take(input, value));
  }
  auto fixed = std::make_shared<ir::OpenGraph>(*graph);
  for (const ir::OpenId v : fixed->inputs) {
    ir::OpenValue& input = fixed->values[v];
    const auto shape = choice.inputs.find(input.name);
    if (shape != choice.inputs.end()) set_shape(input.type, shape->second);
    if (!input.type.shape) continue;
    for (Dim& d : *input.type.shape) {
      if (const auto size = sizes.find(d.symbol); d.value < 0 && size) d.value = *size;
    }
  }
  return std::shared_ptr<const ir::OpenGraph>(std::move(fixed));
}

}  // namespace pyc::driver
