#pragma once

// Models that are not one program as files: the open graph, and the programs that types tell of
// before any run. A run that meets another signature compiles it where there is a compiler.

#include <memory>

#include "artifact/artifact.h"
#include "driver/compile.h"
#include "open/open_graph.h"
#include "session/session.h"

namespace pyc::model_file {

// `shaped` is the same graph with the shapes that programs are made for (session::input_types).
Result<artifact::Artifact> compile_open_artifact(const open::OpenGraph& graph,
                                                 const open::OpenGraph& shaped,
                                                 driver::CompileOptions options);

// The graph that the file holds; refuses text that is none.
Result<std::shared_ptr<const open::OpenGraph>> open_graph_of(const artifact::Artifact& artifact);

// The model, ready to run. Options as for session::load_artifact; those that the compile decided
// are put into `options`.
Result<std::unique_ptr<session::Session>> open_artifact_session(
    std::shared_ptr<const artifact::Artifact> artifact, driver::CompileOptions& options);

}  // namespace pyc::model_file
