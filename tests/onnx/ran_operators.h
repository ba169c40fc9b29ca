#pragma once

// Which operators ran: for every_operator_test.cpp.

#include <cstdlib>
#include <fstream>
#include <set>
#include <span>
#include <string>

#include "import/onnx/proto.h"
#include "onnx/model_writer.h"

namespace pyc::onnx::test {

inline constexpr const char* kRanOperators = "PYC_RAN_OPERATORS";

inline void add_operators(const std::vector<NodeProto>& nodes, std::set<std::string>& found) {
  for (const NodeProto& node : nodes) {
    if (node.domain.empty()) found.emplace(node.op);
    for (const AttributeProto& attr : node.attributes) {
      for (const GraphProto& graph : attr.g) add_operators(graph.nodes, found);
    }
  }
}

inline std::set<std::string> operators_of(const Bytes& bytes) {
  std::set<std::string> found;
  const auto model = parse_model(std::as_bytes(std::span(bytes)));
  if (!model.ok()) return found;
  add_operators(model->graph.nodes, found);
  for (const FunctionProto& function : model->functions) add_operators(function.nodes, found);
  return found;
}

// Adds the operators of a model that ran to the file that PYC_RAN_OPERATORS names, one a line.
inline void note_operators(const Bytes& bytes) {
  const char* file = std::getenv(kRanOperators);
  if (file == nullptr) return;
  std::ofstream out(file, std::ios::app);
  for (const std::string& name : operators_of(bytes)) out << name << '\n';
}

}  // namespace pyc::onnx::test
