#pragma once

// Cases of ops (tests/ops/README.md) as graphs of one node whose numbers are constants, which is
// how they become ONNX models.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/op_def.h"
#include "ops/case_file.h"

namespace pyc::test {

inline size_t result_count(const Case& c, const ir::OpDef& op) {
  if (op.outputs == ir::kVariadic) return std::max<size_t>(c.outputs.size(), 1);
  return static_cast<size_t>(op.outputs);
}

// One node on the case's own numbers as constants; an input without any is one of the graph.
inline std::string graph_text(const Case& c, const ir::OpDef& op) {
  std::string inputs;
  std::string statements;
  std::string operands;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const std::string name = "%x" + std::to_string(i);
    operands += (i == 0 ? "" : ", ") + name;
    if (c.inputs[i].find(' ') == std::string::npos) {
      inputs += (inputs.empty() ? "" : ", ") + name + ": " + c.inputs[i];
    } else {
      statements += "  " + name + " = const " + c.inputs[i] + "\n";
    }
  }
  std::string results = "%y";
  for (size_t i = 1; i < result_count(c, op); ++i) results += ", %y" + std::to_string(i);
  const std::string name(op.name);
  return "graph @g(" + inputs + ") -> (" + results + ") {\n" + statements + "  " + results + " = " +
         name + "(" + operands + ")" + c.op.substr(name.size()) + "\n}\n";
}

inline std::vector<Case> cases_of(const ir::OpDef& op) {
  const std::filesystem::path file =
      std::filesystem::path(PYC_SOURCE_DIR) / "tests" / "ops" / (std::string(op.name) + ".cases");
  return std::filesystem::exists(file) ? read_cases(file.string()) : std::vector<Case>{};
}

}  // namespace pyc::test
