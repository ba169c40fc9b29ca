#include "lower/orders.h"

#include <algorithm>

namespace pyc::lower {
namespace {

const MatrixUnit* row_of(std::string_view kind, DType type) {
  const auto rows = matrix_units();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const MatrixUnit& unit) {
    return unit.name == kind && unit.covers(type);
  });
  return found == rows.end() ? nullptr : &*found;
}

bool may_use_unit(const ir::Graph& graph, const ir::Node& node) {
  if (node.op->on_unit == nullptr) return false;
  std::vector<ir::TensorType> inputs;
  for (const ir::ValueId v : node.inputs) inputs.push_back(graph.type(v));
  return node.op->on_unit({inputs, node.attrs});
}

}  // namespace

Orders::Orders(const ir::Graph& graph, std::string_view kind) {
  if (kind.empty()) return;
  for (const ir::Node& node : graph.nodes) {
    units_.push_back(may_use_unit(graph, node) ? row_of(kind, graph.type(node.inputs[0]).dtype)
                                               : nullptr);
  }
}

}  // namespace pyc::lower
