#pragma once

// Between graphs, files and models: compile now, run later without the compiler.

#include <memory>
#include <string>

#include "artifact/artifact.h"
#include "base/shared_bytes.h"
#include "driver/compile.h"
#include "runtime/model.h"

namespace pyc::driver {

// Compiles for options.target; for "" the widest named target that this machine runs. Refuses like
// compile, and devices that make no machine code (kUnsupported).
Result<artifact::Artifact> compile_artifact(ir::Graph graph, CompileOptions options);
// Writes it, all or nothing.
Status write_artifact(const artifact::Artifact& artifact, const std::string& path);

// Loads the artefact's code into this process: what a compile for so many threads would have
// produced. Refuses artefacts that this machine cannot run.
Result<Compiled> from_artifact(artifact::Artifact artifact, int threads);

struct LoadedArtifact {
  std::unique_ptr<runtime::Model> model;
  std::string fingerprint;
  Determinism determinism = Determinism::kBalanced;
};

// A model from an artefact; no compiler is needed. Options that a compile decided already
// (OptionEffect::kProgram) must be at their defaults, the determinism level must not be stricter
// than the artefact's: kInvalidArgument. The others are free.
Result<LoadedArtifact> load_artifact(artifact::Artifact artifact, const CompileOptions& options);
// The same for its bytes.
Result<LoadedArtifact> load_artifact(SharedBytes file, const CompileOptions& options);

}  // namespace pyc::driver
