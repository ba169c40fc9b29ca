#pragma once

// Model files. The one place that knows their formats, which are told apart by content.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "base/status.h"
#include "driver/compile.h"
#include "import/onnx/import.h"
#include "ir/graph.h"
#include "open/shapes.h"
#include "session/session.h"

namespace pyc::model_file {

// A model as its file has it: a graph (text IR), an open graph (ONNX, text) or a program that was
// compiled ahead of time (.pycm).
struct LoadedModel {
  std::string_view format;  // "text", "onnx", "pycm"
  std::optional<ir::Graph> graph;
  std::shared_ptr<const open::OpenGraph> open;
  std::shared_ptr<const artifact::Artifact> artifact;  // beside `open`: of an open model
  // Of open graphs; nodes of ONNX files may be unsupported, then the model can be looked at only.
  onnx::ModelInfo info;
};

// kUnsupported, naming what the bytes look like, for content of another kind; else the refusals of
// the format.
Result<LoadedModel> load_model(std::string_view bytes);
// The same for a file; messages start with its path.
Result<LoadedModel> load_model_file(const std::string& path);

// The model as one closed graph with the chosen shapes. kUnsupported when there is none such.
Result<ir::Graph> graph_of(const LoadedModel& model, const open::ShapeChoice& shapes);
// The model, ready to run. Shapes that stay open are those of each run. The determinism level of a
// program that was compiled ahead of time is put into the options.
Result<std::unique_ptr<session::Session>> make_session(const LoadedModel& model,
                                                       const open::ShapeChoice& shapes,
                                                       driver::CompileOptions& options);
// The model as a file's content: one program, or an open graph with the programs that types tell
// of.
Result<artifact::Artifact> compile_model(const LoadedModel& model, const open::ShapeChoice& shapes,
                                         const driver::CompileOptions& options);
// The model as text: an open graph with the chosen shapes, or text IR. kUnsupported for a program
// that was compiled ahead of time.
Result<std::string> text_of(const LoadedModel& model, const open::ShapeChoice& shapes);
// The programs of an open model with the chosen shapes (session::segments_text). kUnsupported for
// others.
Result<std::string> segments_of(const LoadedModel& model, const open::ShapeChoice& shapes,
                                const driver::CompileOptions& options);
// What cannot be compiled whole; models that cannot run have an answer, too.
Result<session::BreakReport> breaks_of_model(const LoadedModel& model,
                                             const open::ShapeChoice& shapes);

}  // namespace pyc::model_file
