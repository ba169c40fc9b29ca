#pragma once

// A compiled program as a file (.pycm): machine code, plan, packed weights, decisions. Mapped and
// used in place; equal programs give equal bytes. Checksums find damage, not malice: an artefact
// holds code, and loading one means trusting it like a program.

#include <string>
#include <string_view>
#include <vector>

#include "base/decision.h"
#include "base/shared_bytes.h"
#include "base/status.h"
#include "base/target_info.h"
#include "runtime/model.h"
#include "runtime/program.h"

namespace pyc::artifact {

struct Artifact {
  std::string version;      // of the PyC that made it; filled by decode
  std::string target;       // what the code is for, a name of target_names()
  std::string determinism;  // the level it was compiled for
  std::string fingerprint;  // of the graph
  std::string key;          // of a cache entry: all it was compiled from; else ""
  runtime::Program program;
  runtime::MemoryReport memory;  // of a run on one thread
  DecisionLog log;
};

// The version that encode writes and decode takes.
std::string_view version();

// Whether bytes are meant to be an artefact: they start with its mark.
bool is_artifact(std::span<const std::byte> bytes);

// The file's bytes, in pieces that share the program's weights. kUnsupported, naming the step, when
// a step has no object: interpreters cannot be written down.
Result<std::vector<SharedBytes>> encode(const Artifact& artifact);

// Reads a file; the program's weights stay where the bytes are (moved if these are not aligned to
// 64). Steps have objects, no functions: see load_code. kParseError: no artefact, cut off, damaged
// or malformed; kUnsupported: of another format or version of PyC. Each message says which.
Result<Artifact> decode(SharedBytes file);

// That the machine runs the artefact's code: kUnsupported naming what it lacks.
Status check_machine(const Artifact& artifact, const TargetInfo& machine);

// Loads the steps' objects into this process, which check_machine must have allowed, and gives
// each step its function; then check_program.
Status load_code(runtime::Program& program);

}  // namespace pyc::artifact
