#pragma once

// A case as a graph of one node, its tensors read.

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/convert.h"
#include "ir/graph.h"
#include "ops/case_file.h"
#include "ops/registry.h"

namespace pyc::test {

using Bytes = std::vector<std::byte>;

struct Tensor {
  ir::TensorType type;
  Bytes bytes;

  Word word(int64_t i) const {
    return load_word(bytes.data() + i * dtype_size(type.dtype), type.dtype);
  }
};

// The tensors that `texts` describe, read by the text IR's own parser.
inline std::vector<Tensor> parse_tensors(const std::vector<std::string>& texts) {
  std::string statements;
  std::string names;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string name = "%t" + std::to_string(i);
    statements += "  " + name + " = const " + texts[i] + "\n";
    names += (i == 0 ? "" : ", ") + name;
  }
  auto graph =
      ir::parse("graph @tensors() -> (" + names + ") {\n" + statements + "}\n", ops::all_ops());
  if (!graph.ok()) throw std::runtime_error(graph.status().to_string());
  std::vector<Tensor> tensors;
  for (const ir::ValueId id : graph->outputs) {
    tensors.push_back({graph->type(id), graph->value(id).constant->bytes.copy()});
  }
  return tensors;
}

// How many results the case's op has.
inline size_t result_count(const Case& c) {
  const ir::OpDef* op = ops::all_ops().find(op_name(c.op));
  if (op != nullptr && op->outputs == ir::kVariadic) return std::max<size_t>(c.outputs.size(), 1);
  return op == nullptr ? 1 : static_cast<size_t>(op->outputs);
}

// The case as a graph of one node; with `constants`, only the first input stays an input.
inline std::string graph_text(const Case& c, bool constants) {
  std::string inputs;
  std::string statements;
  std::string operands;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const std::string name = "%x" + std::to_string(i);
    operands += (i == 0 ? "" : ", ") + name;
    if (constants && i > 0) {
      statements += "  " + name + " = const " + c.inputs[i] + "\n";
    } else {
      inputs += (i == 0 ? "" : ", ") + name + ": " + type_of(c.inputs[i]);
    }
  }
  std::string results = "%y";
  for (size_t i = 1; i < result_count(c); ++i) results += ", %y" + std::to_string(i);
  const std::string op = op_name(c.op);
  return "graph @" + c.name + "(" + inputs + ") -> (" + results + ") {\n" + statements + "  " +
         results + " = " + op + "(" + operands + ")" + c.op.substr(op.size()) + "\n}\n";
}

}  // namespace pyc::test
