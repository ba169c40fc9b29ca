#include "open/shapes.h"

#include <fmt/format.h>

#include <set>

#include "ir/rules.h"

namespace pyc::open {
namespace {

using Dim = open::OpenType::Dim;

std::string suggestion(const std::string& name, const std::set<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  return ir::did_you_mean(ir::closest_name(name, names));
}

Status check_size(const std::string& what, int64_t size) {
  if (size >= 0) return {};
  return {Code::kInvalidArgument,
          fmt::format("{}: expected a size of 0 or more, found {}", what, size)};
}

Status check_names(const open::OpenGraph& graph, const ShapeChoice& choice) {
  std::set<std::string> inputs;
  std::set<std::string> dims;
  for (const open::OpenId v : graph.inputs) {
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
DynValue stand_in(const open::OpenType& type, const std::vector<int64_t>& shape) {
  if (type.kind == open::OpenType::Kind::kOptional && type.element != nullptr) {
    return stand_in(*type.element, shape);
  }
  DynValue value;
  value.kind = type.kind == open::OpenType::Kind::kStrings ? DynValue::Kind::kStrings
                                                           : DynValue::Kind::kTensor;
  value.dtype = type.dtype.value_or(DType::kF32);
  value.shape = shape;
  return value;
}

void set_shape(open::OpenType& type, const std::vector<int64_t>& shape) {
  type.shape = std::vector<Dim>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) (*type.shape)[i].value = shape[i];
}

}  // namespace

Result<std::shared_ptr<const open::OpenGraph>> fix_shapes(
    std::shared_ptr<const open::OpenGraph> graph, const ShapeChoice& choice) {
  if (choice.empty()) return graph;
  PYC_TRY(check_names(*graph, choice));
  open::SymbolSizes sizes;
  for (const auto& [name, size] : choice.dims) sizes.set(name, size, "the chosen dims");
  for (const open::OpenId v : graph->inputs) {
    const open::OpenValue& input = graph->values[v];
    const auto shape = choice.inputs.find(input.name);
    if (shape == choice.inputs.end()) continue;
    const DynValue value = stand_in(input.type, shape->second);
    PYC_TRY(open::check_accepts(input, value));
    PYC_TRY(sizes.take(input, value));
  }
  auto fixed = std::make_shared<open::OpenGraph>(*graph);
  for (const open::OpenId v : fixed->inputs) {
    open::OpenValue& input = fixed->values[v];
    const auto shape = choice.inputs.find(input.name);
    if (shape != choice.inputs.end()) set_shape(input.type, shape->second);
    if (!input.type.shape) continue;
    for (Dim& d : *input.type.shape) {
      if (const auto size = sizes.find(d.symbol); d.value < 0 && size) d.value = *size;
    }
  }
  return std::shared_ptr<const open::OpenGraph>(std::move(fixed));
}

}  // namespace pyc::open
