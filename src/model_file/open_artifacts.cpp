#include "model_file/open_artifacts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "import/onnx/rules.h"
#include "open/text.h"
#include "session/artifacts.h"
#include "session/cache.h"
#include "session/model.h"

namespace pyc::model_file {
namespace {

using artifact::Artifact;

// What every program of the model is compiled with, as names and texts.
std::vector<std::pair<std::string, std::string>> decided(driver::CompileOptions options) {
  options.target = "";
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string_view name : driver::decided_options(options)) {
    const auto rows = driver::option_rows();
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const driver::OptionRow& r) { return r.name == name; });
    out.emplace_back(name, row->text(options));
  }
  return out;
}

Status restore(const Artifact& artifact, driver::CompileOptions& options) {
  for (const auto& [name, text] : artifact.options) {
    PYC_ASSIGN(const driver::OptionRow* row, driver::find_option(name));
    row->reset(options);
    // Items of a list are lines.
    for (size_t at = 0; at <= text.size();) {
      const size_t end = row->kind == driver::OptionKind::kList
                             ? std::min(text.find('\n', at), text.size())
                             : text.size();
      PYC_TRY(row->set(*row, options, std::string_view(text).substr(at, end - at)));
      at = end + 1;
    }
  }
  return {};
}

std::string key_of(const ir::Graph& graph) { return ir::fingerprint_key(graph); }

// For a message: the inputs of each program there is.
std::string shapes_of(const Artifact& artifact) {
  std::string text;
  for (const Artifact& part : artifact.parts) {
    std::string inputs;
    for (const runtime::IoSpec& io : part.program.inputs) {
      inputs += fmt::format("{}{} {}{}", inputs.empty() ? "" : ", ", io.name, dtype_name(io.dtype),
                            ir::shape_to_string(io.shape));
    }
    text += fmt::format("{}({})", text.empty() ? "" : ", ", inputs);
  }
  return text;
}

// Programs of the file first; then the compiler.
session::Session::CodeSource code_of(std::shared_ptr<const Artifact> file,
                                     driver::CompileOptions options) {
  options.cache = false;
  // What a loaded program leaves free to choose.
  driver::CompileOptions free = options;
  for (const driver::OptionRow& row : driver::option_rows()) {
    if (row.effect == driver::OptionEffect::kProgram) row.reset(free);
  }
  free.determinism = options.determinism;
  const auto within = [](driver::CompileOptions given, int64_t memory_budget) {
    given.memory_budget = memory_budget;
    return given;
  };
  return [=, file = std::move(file)](ir::Graph graph,
                                     int64_t memory_budget) -> Result<exec::SegmentCode> {
    const std::string key = key_of(graph);
    for (const Artifact& part : file->parts) {
      if (part.key != key) continue;
      PYC_ASSIGN(session::LoadedArtifact loaded,
                 session::load_artifact(part, within(free, memory_budget)));
      std::vector<runtime::IoSpec> outputs = loaded.model->outputs();
      return exec::SegmentCode{std::move(loaded.model), std::move(outputs), false};
    }
    auto model = session::compile(std::move(graph), within(options, memory_budget));
    if (!model.ok()) {
      const Status status = std::move(model).status();
      return Status(status.code(), fmt::format("{}; the file has programs for {}", status.message(),
                                               file->parts.empty() ? "nothing" : shapes_of(*file)));
    }
    std::vector<runtime::IoSpec> outputs = (*model)->outputs();
    return exec::SegmentCode{std::move(*model), std::move(outputs), true};
  };
}

}  // namespace

Result<std::shared_ptr<const open::OpenGraph>> open_graph_of(const Artifact& artifact) {
  return open::parse_open(artifact.graph, onnx::open_ops(), ir::kMaxGeneratedBytes,
                          artifact.stored);
}

Result<Artifact> compile_open_artifact(const open::OpenGraph& graph, const open::OpenGraph& shaped,
                                       driver::CompileOptions options) {
  PYC_TRY(driver::check_options(options));
  PYC_ASSIGN(std::vector<DynValue> types, session::input_types(shaped));
  Artifact out;
  open::StoredText text = open::print_stored(graph);
  out.fingerprint = hash128(std::as_bytes(std::span(text.text))).hex();
  out.graph = std::move(text.text);
  out.stored = std::move(text.stored);
  out.options = decided(options);
  out.determinism = driver::determinism_name(options.determinism);
  // Programs are keyed by graphs that come from the text, as a loaded file's do.
  PYC_ASSIGN(const std::shared_ptr<const open::OpenGraph> read, open_graph_of(out));

  exec::ExecutorOptions means = session::executor_options(options);
  means.compile = [&](ir::Graph closed, int64_t) -> Result<exec::SegmentCode> {
    std::string key = key_of(closed);
    PYC_ASSIGN(const ir::VerifiedGraph given, ir::verify_graph(std::move(closed)));
    PYC_ASSIGN(Artifact part, session::compile_artifact(given, options));
    part.key = std::move(key);
    std::vector<runtime::IoSpec> outputs = part.program.outputs;
    const bool fresh = std::none_of(out.parts.begin(), out.parts.end(),
                                    [&](const Artifact& p) { return p.key == part.key; });
    if (fresh) out.parts.push_back(std::move(part));
    return exec::SegmentCode{nullptr, std::move(outputs), true};
  };
  exec::GrowingLog log;
  exec::Executor executor(*read, std::move(means), log);
  PYC_ASSIGN(const bool all, executor.foresee(std::move(types)));
  out.program.places = {out.parts.empty() ? runtime::Place{.backend = options.device}
                                          : out.parts[0].program.places[0]};
  out.log = log.copy();
  out.log.push_back({.what = "compile_ahead",
                     .chosen = all ? "all_programs" : "some_programs",
                     .reason = all ? "types_decide" : "contents_decide",
                     .detail = fmt::format("{} programs", out.parts.size()),
                     .alternatives = {}});
  return out;
}

Result<std::unique_ptr<session::Session>> open_artifact_session(
    std::shared_ptr<const Artifact> artifact, driver::CompileOptions& options) {
  PYC_ASSIGN(options.determinism, session::check_loading(*artifact, options));
  PYC_TRY(restore(*artifact, options));
  PYC_ASSIGN(std::shared_ptr<const open::OpenGraph> graph, open_graph_of(*artifact));
  return session::Session::create(std::move(graph), options, code_of(std::move(artifact), options));
}

}  // namespace pyc::model_file
