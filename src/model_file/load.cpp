#include "model_file/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/mapped_file.h"
#include "import/onnx/rules.h"
#include "model_file/open_artifacts.h"
#include "open/text.h"
#include "session/artifacts.h"

namespace pyc::model_file {
namespace {

constexpr size_t kLookedAt = 4096;

std::string_view characters_of(const SharedBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Text IR has no control characters but white space.
bool is_text(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, kLookedAt);
  return std::none_of(start.begin(), start.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < ' ' && c != '\n' && c != '\t' && c != '\r') || code == 0x7f;
  });
}

// Files that people have and PyC does not read, by the bytes they begin with. All of them would be
// malformed ONNX or text, which says nothing to someone who has none.
struct Foreign {
  size_t at;
  std::string_view magic;
  const char* what;
};
constexpr const char* kTorch =
    "a file of PyTorch's: write the module with torch.onnx.export, or compile it from Python with "
    "pyc.from_torch";
constexpr const char* kNoGraph = "a file of tensors, which has no graph";
constexpr const char* kPage = "a page of HTML: the download brought a page, not the file";
constexpr Foreign kForeign[] = {
    {0, "PK\x03\x04", kTorch},
    {0, "\x80\x02", kTorch},
    {0, "\x89HDF", "HDF5, as Keras writes it: write the model as ONNX"},
    {4, "TFL3", "TensorFlow Lite: write the model as ONNX"},
    {0, "GGUF", "GGUF: write the model as ONNX"},
    {0, "\x93NUMPY", kNoGraph},
    {4, std::string_view("\0\0\0\0{\"", 6), kNoGraph},  // safetensors, behind half of a length
    {0, "version https://git-lfs", "a pointer of Git LFS: `git lfs pull` fetches the file itself"},
    {0, "<!DOCTYPE", kPage},
    {0, "<!doctype", kPage},
    {0, "<html", kPage},
};

Status check_not_foreign(std::string_view bytes) {
  if (bytes.empty()) {
    return {Code::kParseError,
            "expected ONNX, text IR or a .pycm file, found nothing: it is empty"};
  }
  const std::string_view start = bytes.substr(0, kLookedAt);
  for (const Foreign& f : kForeign) {
    if (start.size() <= f.at || !start.substr(f.at).starts_with(f.magic)) continue;
    return {Code::kUnsupported,
            fmt::format("expected ONNX, text IR or a .pycm file, found {}", f.what)};
  }
  return {};
}

Result<LoadedModel> load_onnx(SharedBytes bytes, const std::string& folder, bool external_allowed) {
  PYC_TRY(check_not_foreign(characters_of(bytes)));
  PYC_ASSIGN(onnx::Imported read, onnx::read_model(std::move(bytes), folder, external_allowed));
  LoadedModel model;
  model.format = "onnx";
  model.open = std::move(read.graph);
  model.info = std::move(read.info);
  return model;
}

// What an importer would have said about the graph.
void describe(const open::OpenGraph& graph, onnx::ModelInfo& info) {
  for (const open::OpenNode& node : graph.nodes) {
    ++info.ops[node.op->name.substr(node.op->name.rfind('.') + 1)];
    info.draws_numbers = info.draws_numbers || node.op->random;
    for (const open::OpenGraph* region : open::regions_of(node)) describe(*region, info);
  }
  for (const open::OpenValue& value : graph.values) {
    if (value.constant) info.parameter_bytes += static_cast<int64_t>(value.constant->bytes.size());
  }
}

Result<LoadedModel> load_text(std::string_view text) {
  PYC_TRY(check_not_foreign(text));
  LoadedModel model;
  model.format = "text";
  if (open::is_open_text(text)) {
    PYC_ASSIGN(model.open, open::parse_open(text, onnx::open_ops()));
    describe(*model.open, model.info);
    return model;
  }
  PYC_ASSIGN(ir::Graph graph, driver::parse_model(text));
  model.graph = std::move(graph);
  return model;
}

Result<LoadedModel> load_compiled(SharedBytes bytes) {
  PYC_ASSIGN(artifact::Artifact read, artifact::decode(std::move(bytes)));
  LoadedModel model;
  model.format = "pycm";
  model.artifact = std::make_shared<const artifact::Artifact>(std::move(read));
  if (model.artifact->is_open()) {
    PYC_ASSIGN(model.open, open_graph_of(*model.artifact));
    describe(*model.open, model.info);
  }
  return model;
}

constexpr const char* kCompiledAlready =
    "the model is compiled already: the graph is in the file it was made from";

// Closed graphs and compiled programs leave nothing to choose.
Status check_no_choice(const open::ShapeChoice& shapes) {
  if (shapes.empty()) return {};
  return {Code::kInvalidArgument, "every shape of the model is fixed: nothing is left to choose"};
}

// The open graph with the chosen shapes, when it can run.
Result<std::shared_ptr<const open::OpenGraph>> fixed_graph(const LoadedModel& model,
                                                           const open::ShapeChoice& shapes) {
  PYC_TRY(onnx::check_supported(model.info));
  return open::fix_shapes(model.open, shapes);
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

Result<ir::Graph> graph_of(const LoadedModel& model, const open::ShapeChoice& shapes) {
  if (model.open != nullptr) {
    PYC_ASSIGN(const std::shared_ptr<const open::OpenGraph> graph, fixed_graph(model, shapes));
    return session::close_model(*graph);
  }
  PYC_TRY(check_no_choice(shapes));
  if (model.artifact != nullptr) return Status(Code::kUnsupported, kCompiledAlready);
  return ir::Graph(*model.graph);
}

Result<std::string> text_of(const LoadedModel& model, const open::ShapeChoice& shapes) {
  if (model.open != nullptr) {
    PYC_ASSIGN(const std::shared_ptr<const open::OpenGraph> graph,
               open::fix_shapes(model.open, shapes));
    return open::print(*graph);
  }
  PYC_TRY(check_no_choice(shapes));
  if (model.artifact != nullptr) return Status(Code::kUnsupported, kCompiledAlready);
  return ir::print(*model.graph);
}

Result<std::unique_ptr<session::Session>> make_session(const LoadedModel& model,
                                                       const open::ShapeChoice& shapes,
                                                       driver::CompileOptions& options) {
  if (model.open != nullptr && model.artifact != nullptr) {
    PYC_TRY(check_no_choice(shapes));
    return open_artifact_session(model.artifact, options);
  }
  if (model.open != nullptr) {
    PYC_ASSIGN(std::shared_ptr<const open::OpenGraph> graph, fixed_graph(model, shapes));
    return session::Session::create(std::move(graph), options);
  }
  PYC_TRY(check_no_choice(shapes));
  if (model.artifact != nullptr) {
    PYC_ASSIGN(session::LoadedArtifact loaded, session::load_artifact(*model.artifact, options));
    options.determinism = loaded.determinism;
    return session::Session::of(std::move(loaded.model), std::move(loaded.fingerprint));
  }
  return session::Session::create(ir::Graph(*model.graph), options);
}

Result<std::string> segments_of(const LoadedModel& model, const open::ShapeChoice& shapes,
                                const driver::CompileOptions& options) {
  if (model.open == nullptr) {
    return Status(Code::kUnsupported, "the model is one program: there are no segments");
  }
  PYC_ASSIGN(const std::shared_ptr<const open::OpenGraph> graph, fixed_graph(model, shapes));
  return session::segments_text(*graph, options);
}

Result<artifact::Artifact> compile_model(const LoadedModel& model, const open::ShapeChoice& shapes,
                                         const driver::CompileOptions& options) {
  if (model.artifact != nullptr) return Status(Code::kUnsupported, kCompiledAlready);
  auto whole = graph_of(model, shapes);
  if (whole.ok() || model.open == nullptr) {
    PYC_ASSIGN(ir::Graph graph, std::move(whole));
    PYC_ASSIGN(const ir::VerifiedGraph given, ir::verify_graph(std::move(graph)));
    return session::compile_artifact(given, options);
  }
  if (!options.states.empty()) {
    return std::move(whole).status().with_context(
        "state: only a model that is one program keeps one");
  }
  PYC_ASSIGN(const std::shared_ptr<const open::OpenGraph> shaped, fixed_graph(model, shapes));
  return compile_open_artifact(*model.open, *shaped, options);
}

Result<session::BreakReport> breaks_of_model(const LoadedModel& model,
                                             const open::ShapeChoice& shapes) {
  if (model.open != nullptr) {
    PYC_ASSIGN(const std::shared_ptr<const open::OpenGraph> graph,
               open::fix_shapes(model.open, shapes));
    return session::foresee_breaks(*graph);
  }
  PYC_TRY(check_no_choice(shapes));
  const size_t nodes =
      model.artifact != nullptr ? model.artifact->program.steps.size() : model.graph->nodes.size();
  return session::report_whole(static_cast<int64_t>(nodes));
}

}  // namespace pyc::model_file
