#include "model_file/export.h"

#include "base/files.h"
#include "export/onnx/export.h"

namespace pyc::model_file {

Status export_onnx(const ir::Graph& graph, const std::string& path) {
  PYC_ASSIGN(const ir::VerifiedGraph verified, ir::verify_graph(graph));
  PYC_ASSIGN(const std::string bytes, onnx::export_model(*verified));
  return write_file_atomic(path, std::string_view(bytes));
}

}  // namespace pyc::model_file
