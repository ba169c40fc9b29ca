#include "export/onnx/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "export/onnx/emitter.h"
#include "export/onnx/rules.h"

namespace pyc::onnx {
namespace {

using exporting::Emitter;
using exporting::Rule;

constexpr size_t kMaxModelBytes = (size_t{1} << 31) - 1;  // of a protobuf message

bool is_small(DType t) { return is_narrow_int(t) || (is_float(t) && dtype_size(t) == 1); }

bool has_word(std::string_view words, std::string_view word) {
  return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

// The dtype ONNX has the node not for, or nothing.
std::optional<DType> unknown_dtype(const Emitter& e, const ir::OnnxNode& onnx) {
  const ir::Node& node = e.node();
  const DType first = node.inputs.empty() ? e.out_type().dtype : e.in_type(0).dtype;
  if (!onnx.dtypes.empty() && !has_word(onnx.dtypes, dtype_name(first))) return first;
  if (onnx.small) return std::nullopt;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (is_small(e.in_type(i).dtype)) return e.in_type(i).dtype;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (is_small(e.out_type(i).dtype)) return e.out_type(i).dtype;
  }
  return std::nullopt;
}

void export_node(Emitter& e) {
  const ir::OpDef& op = *e.node().op;
  const Rule* rule = exporting::find_rule(op.name);
  if (rule == nullptr && op.onnx.name.empty()) {
    e.refuse("ONNX has no such op");
    return;
  }
  const ir::OnnxNode& onnx = op.onnx.name.empty() ? rule->limits : op.onnx;
  if (const auto t = unknown_dtype(e, onnx)) {
    e.refuse(fmt::format("ONNX does not have it for {}", dtype_name(*t)));
    return;
  }
  e.need(onnx.since, onnx.domain);
  if (rule != nullptr) {
    rule->emit(e);
  } else {
    e.write(onnx.name, e.onnx_inputs(), e.all_outputs(), e.attrs(onnx.attrs), onnx.domain);
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
