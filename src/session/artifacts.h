#pragma once

// Between graphs, files and models: compile now, run later without the compiler.

#include <memory>
#include <string>

#include "artifact/artifact.h"
#include "base/shared_bytes.h"
#include "driver/compile.h"
#include "runtime/model.h"

namespace pyc::session {

// Compiles for options.target; for "" the widest named target that this machine runs, or any
// machine where the device's code is for any. Refuses like compile, and devices that do not run
// (kUnsupported).
Result<artifact::Artifact> compile_artifact(const ir::VerifiedGraph& given,
                                            const driver::CompileOptions& options);
// Writes it, all or nothing.
Status write_artifact(const artifact::Artifact& artifact, const std::string& path);

// Loads the artefact's code into this process: what a compile for so many threads would have
// produced. Refuses artefacts that this machine cannot run.
Result<driver::Compiled> from_artifact(artifact::Artifact artifact, int threads);

// The level of an artefact that these options may load, with what load_artifact says of options.
Result<driver::Determinism> check_loading(const artifact::Artifact& artifact,
                                          const driver::CompileOptions& options);

struct LoadedArtifact {
  std::unique_ptr<runtime::Model> model;
  std::string fingerprint;
  driver::Determinism determinism = driver::Determinism::kBalanced;
};

// A model from an artefact; no compiler is needed. Options that a compile decided already
// (driver::OptionEffect::kProgram) must be at their defaults, the device may also be the
// artefact's, the determinism level must not be stricter than the artefact's: kInvalidArgument. The
// others are free.
Result<LoadedArtifact> load_artifact(artifact::Artifact artifact,
                                     const driver::CompileOptions& options);
// The same for its bytes.
Result<LoadedArtifact> load_artifact(SharedBytes file, const driver::CompileOptions& options);

}  // namespace pyc::session
