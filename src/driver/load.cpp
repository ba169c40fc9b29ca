#include "driver/load.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/mapped_file.h"
#include "driver/compile.h"
#include "driver/session.h"
#include "import/onnx/import.h"

namespace pyc::driver {
namespace {

constexpr size_t kLookedAt = 4096;

// Text IR has no control characters but white space.
bool is_text(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, kLookedAt);
  return std::none_of(start.begin(), start.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < ' ' && c != '\n' && c != '\t' && c != '\r') || code == 0x7f;
  });
}

Result<ir::Graph> load_onnx(SharedBytes bytes, const std::string& folder, bool external_allowed) {
  PYC_ASSIGN(const onnx::Imported imported,
             onnx::import_model(std::move(bytes), folder, external_allowed));
  return close_model(*imported.graph);
}

std::string_view text_of(const SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<ir::Graph> load_model(std::string_view bytes) {
  if (is_text(bytes)) return parse_model(bytes);
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return load_onnx(SharedBytes(std::vector<std::byte>(data, data + bytes.size())), "", false);
}

Result<ir::Graph> load_model_file(const std::string& path) {
  PYC_ASSIGN(SharedBytes bytes, map_file(path));
  auto graph = is_text(text_of(bytes)) ? parse_model(text_of(bytes))
                                       : load_onnx(std::move(bytes), folder_of(path), true);
  if (!graph.ok()) return std::move(graph).status().with_context(path);
  return graph;
}

}  // namespace pyc::driver
