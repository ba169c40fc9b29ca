#include "driver/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/mapped_file.h"
#include "driver/artifacts.h"
#include "import/onnx/rules.h"
#include "ir/open_text.h"

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
  LoadedModel model;
  model.format = "onnx";
  model.open = std::move(read.graph);
  model.info = std::move(read.info);
  return model;
}

// What an importer would have said about the graph.
void describe(const ir::OpenGraph& graph, onnx::ModelInfo& info) {
  for (const ir::OpenNode& node : graph.nodes) {
    ++info.ops[node.op->name.substr(node.op->name.rfind('.') + 1)];
    info.draws_numbers = info.draws_numbers || node.op->random;
    for (const ir::OpenGraph* region : ir::regions_of(node)) describe(*region, info);
  }
  for (const ir::OpenValue& value : graph.values) {
    if (value.constant) info.parameter_bytes += static_cast<int64_t>(value.constant->bytes.size());
  }
}

Result<LoadedModel> load_text(std::string_view text) {
  LoadedModel model;
  model.format = "text";
  if (ir::is_open_text(text)) {
    PYC_ASSIGN(model.open, ir::parse_open(text, onnx::open_ops()));
    describe(*model.open, model.info);
    return model;
  }
  PYC_ASSIGN(ir::Graph graph, parse_model(text));
  model.graph = std::move(graph);
  return model;
}

Result<LoadedModel> load_compiled(SharedBytes bytes) {
  PYC_ASSIGN(artifact::Artifact read, artifact::decode(std::move(bytes)));
  LoadedModel model;
  model.format = "pycm";
  model.artifact = std::make_shared<const artifact::Artifact>(std::move(read));
  return model;
}

std::string_view characters_of(const SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr const char* kCompiledAlready =
    "the model is compiled already: the graph is in the file it was made from";

// Closed graphs and compiled programs leave nothing to choose.
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
  SharedBytes copy(std::vector<std::byte>(data, data + bytes.size()));
  if (artifact::is_artifact(copy)) return load_compiled(std::move(copy));
  return load_onnx(std::move(copy), "", false);
}

Result<LoadedModel> load_model_file(const std::string& path) {
  PYC_ASSIGN(SharedBytes bytes, map_file(path));
  auto model = artifact::is_artifact(bytes)    ? load_compiled(std::move(bytes))
               : is_text(characters_of(bytes)) ? load_text(characters_of(bytes))
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
  if (model.artifact != nullptr) return Status(Code::kUnsupported, kCompiledAlready);
  return ir::Graph(*model.graph);
}

Result<std::string> text_of(const LoadedModel& model, const ShapeChoice& shapes) {
  if (model.open != nullptr) {
    PYC_ASSIGN(const std::shared_ptr<const ir::OpenGraph> graph, fix_shapes(model.open, shapes));
    return ir::print(*graph);
  }
  PYC_TRY(check_no_choice(shapes));
  if (model.artifact != nullptr) return Status(Code::kUnsupported, kCompiledAlready);
  return ir::print(*model.graph);
}

Result<std::unique_ptr<Session>> make_session(const LoadedModel& model, const ShapeChoice& shapes,
                                              CompileOptions& options) {
  if (model.open != nullptr) {
    PYC_ASSIGN(std::shared_ptr<const ir::OpenGraph> graph, fixed_graph(model, shapes));
    return Session::create(std::move(graph), options);
  }
  PYC_TRY(check_no_choice(shapes));
  if (model.artifact != nullptr) {
    PYC_ASSIGN(LoadedArtifact loaded, load_artifact(*model.artifact, options));
    options.determinism = loaded.determinism;
    return Session::of(std::move(loaded.model), std::move(loaded.fingerprint));
  }
  return Session::create(ir::Graph(*model.graph), options);
}

Result<BreakReport> breaks_of_model(const LoadedModel& model, const ShapeChoice& shapes) {
  if (model.open != nullptr) {
    PYC_ASSIGN(const std::shared_ptr<const ir::OpenGraph> graph, fix_shapes(model.open, shapes));
    return foresee_breaks(*graph);
  }
  PYC_TRY(check_no_choice(shapes));
  const size_t nodes =
      model.artifact != nullptr ? model.artifact->program.steps.size() : model.graph->nodes.size();
  return report_whole(static_cast<int64_t>(nodes));
}

}  // namespace pyc::driver
