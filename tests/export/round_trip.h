#pragma once

// A graph, and the same graph after it has been an ONNX model.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/convert.h"
#include "export/onnx/export.h"
#include "import/onnx/import.h"
#include "session/model.h"
#include "session/session.h"
#include "tooling/seeded_run.h"

namespace pyc::test {

inline Result<ir::Graph> import_again(const std::string& bytes) {
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  PYC_ASSIGN(const onnx::Imported imported,
             onnx::import_model(SharedBytes(std::vector<std::byte>(first, first + bytes.size())),
                                "", false));
  return session::close_model(*imported.graph);
}

struct Output {
  ir::TensorType type;
  std::vector<std::byte> bytes;
  bool operator==(const Output&) const = default;
};

// All outputs on the reference device.
inline Result<std::vector<Output>> outputs_of(ir::Graph graph) {
  driver::CompileOptions options;
  options.device = "reference";
  options.cache = false;
  PYC_ASSIGN(const auto model, session::compile(std::move(graph), options));
  PYC_ASSIGN(const auto data, tooling::SeededRun::create(*model, 3));
  PYC_TRY(model->run(data.inputs(), data.outputs()));
  std::vector<Output> out;
  for (const runtime::TensorView& view : data.outputs()) {
    const auto* first = static_cast<const std::byte*>(view.data);
    out.push_back(
        {{view.dtype, {view.shape.begin(), view.shape.end()}}, {first, first + view.bytes}});
  }
  return out;
}

// Whether every element is within 1e-5 of the largest magnitude, NaN where the other has it.
inline bool close(const Output& a, const Output& b) {
  if (!(a.type == b.type)) return false;
  const DType t = a.type.dtype;
  const auto at = [&](const Output& o, int64_t i) {
    return word_to_double(load_word(o.bytes.data() + i * dtype_size(t), t), t);
  };
  double scale = 0.0;
  for (int64_t i = 0; i < b.type.elements(); ++i) {
    if (std::isfinite(at(b, i))) scale = std::max(scale, std::fabs(at(b, i)));
  }
  for (int64_t i = 0; i < b.type.elements(); ++i) {
    const double x = at(a, i);
    const double y = at(b, i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::fabs(x - y) <= 1e-5 * scale)) return false;
  }
  return true;
}

}  // namespace pyc::test
