#include "driver/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/mapped_file.h"

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

Result<LoadedModel> load_onnx(SharedBytes bytes, const std::string& folder, bool external_allowed) {
  PYC_ASSIGN(onnx::Imported read, onnx::read_model(std::move(bytes), folder, external_allowed));
  return LoadedModel{
      .graph = std::nullopt, .open = std::move(read.graph), .info = std::move(read.info)};
}

Result<LoadedModel> load_text(std::string_view text) {
  PYC_ASSIGN(ir::Graph graph, parse_model(text));
  return LoadedModel{.graph = std::move(graph), .open = nullptr, .info = {}};
}

std::string_view text_of(const SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Text IR leaves nothing to choose.
Status check_no_choice(const ShapeChoice& shapes) {
  if (shapes.empty()) return {};
  return {Code::kInvalidArgument, "every shape of the model is fixed: there is none to choose"};
}

// The open graph with the chosen shapes, when it can run.
Result<std::shared_ptr<const ir::OpenGraph>> fixed_graph(const LoadedModel& model,
                                                         const ShapeChoice& shapes) {
  PYC_TRY(onnx::check_supported(model.info));
  return fix_shapes(model.open, shapes);
}

}  // namespace

Result<LoadedModel> load_model(std::string_view bytes) {
  if (is_text(bytes)) return load_text(bytes);
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return load_onnx(SharedBytes(std::vector<std::byte>(data, data + bytes.size())), "", false);
}

Result<LoadedModel> load_model_file(const std::string& path) {
  PYC_ASSIGN(SharedBytes bytes, map_file(path));
  auto model = is_text(text_of(bytes)) ? load_text(text_of(bytes))
                                       : load_onnx(std::move(bytes), folder_of(path), true);
  if (!model.ok()) return std::move(model).status().with_context(path);
  return model;
}

Result<ir::Graph> graph_of(const LoadedModel& model, const ShapeChoice& shapes) {
  if (model.open != nullptr) {
    PYC_ASSIGN(const std::shared_ptr<const ir::OpenGraph> graph, fixed_graph(model, shapes));
    return close_model(*graph);
  }
  PYC_TRY(check_no_choice(shapes));
  return ir::Graph(*model.graph);
}

Result<std::unique_ptr<Session>> make_session(const LoadedModel& model, const ShapeChoice& shapes,
                                              const CompileOptions& options) {
  if (model.open != nullptr) {
    PYC_ASSIGN(std::shared_ptr<const ir::OpenGraph> graph, fixed_graph(model, shapes));
    return Session::create(std::move(graph), options);
  }
  PYC_TRY(check_no_choice(shapes));
  return Session::create(ir::Graph(*model.graph), options);
}

Result<BreakReport> breaks_of_model(const LoadedModel& model, const ShapeChoice& shapes) {
  if (model.open != nullptr) {
    PYC_ASSIGN(const std::shared_ptr<const ir::OpenGraph> graph, fix_shapes(model.open, shapes));
    return foresee_breaks(*graph);
  }
  PYC_TRY(check_no_choice(shapes));
  return report_whole(static_cast<int64_t>(model.graph->nodes.size()));
}

}  // namespace pyc::driver
