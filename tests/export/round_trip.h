#pragma once

// A graph, and the same graph after it has been an ONNX model.

#include <string>
#include <vector>

#include "base/hash.h"
#include "driver/compile.h"
#include "driver/seeded_run.h"
#include "driver/session.h"
#include "export/onnx/export.h"
#include "import/onnx/import.h"

namespace pyc::test {

inline Result<ir::Graph> import_again(const std::string& bytes) {
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  PYC_ASSIGN(const onnx::Imported imported,
             onnx::import_model(SharedBytes(std::vector<std::byte>(first, first + bytes.size())),
                                "", false));
  return driver::close_model(*imported.graph);
}

// Names and digests of all outputs on the reference device.
inline Result<std::vector<std::string>> outputs_of(ir::Graph graph) {
  driver::CompileOptions options;
  options.device = "reference";
  options.cache = false;
  PYC_ASSIGN(const auto model, driver::compile(std::move(graph), options));
  PYC_ASSIGN(const auto data, driver::SeededRun::create(*model, 3));
  PYC_TRY(model->run(data.inputs(), data.outputs()));
  std::vector<std::string> out;
  for (size_t i = 0; i < model->outputs().size(); ++i) out.push_back(data.digest(i).hex());
  return out;
}

}  // namespace pyc::test
