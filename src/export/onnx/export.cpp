#include "export/onnx/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "export/onnx/emitter.h"
#include "export/onnx/rules.h"

namespace pyc::onnx {
namespace {

using exporting::Emitter;
using exporting::Rule;

constexpr size_t kMaxModelBytes = (size_t{1} << 31) - 1;  // of a protobuf message

void export_node(Emitter& e) {
  const Rule* rule = exporting::find_rule(e.node().op->name);
  if (rule == nullptr) {
    e.refuse("ONNX has no such op");
    return;
  }
  e.need(rule->since);
  if (rule->emit != nullptr) {
    rule->emit(e);
  } else {
    e.write(rule->onnx, e.all_inputs(), e.all_outputs(), e.attrs(rule->attrs), rule->domain);
  }
}

// Refuses before anything is written: each constant is in the model once.
Status check_size(const ir::Graph& graph) {
  size_t bytes = 0;
  for (const ir::Value& v : graph.values) {
    if (v.kind != ir::ValueKind::kConstant) continue;
    bytes += v.constant->bytes.size();
    if (bytes > kMaxModelBytes) {
      return {Code::kUnsupported,
              fmt::format("the constants have over the {} bytes of an ONNX file", kMaxModelBytes)};
    }
  }
  return {};
}

}  // namespace

Result<std::string> export_model(const ir::Graph& graph) {
  PYC_TRY(check_size(graph));
  Emitter e(graph);
  for (const ir::Node& node : graph.nodes) {
    e.begin(node);
    export_node(e);
  }
  if (!e.refused().empty()) {
    return Status(Code::kUnsupported,
                  fmt::format("{} nodes cannot be exported to ONNX: {}", e.refused().size(),
                              fmt::join(e.refused(), "; ")));
  }
  std::string model = e.finish();
  if (model.size() > kMaxModelBytes) {
    return Status(Code::kUnsupported,
                  fmt::format("the model has {} bytes, an ONNX file may have {}", model.size(),
                              kMaxModelBytes));
  }
  return model;
}

}  // namespace pyc::onnx
