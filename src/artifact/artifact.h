#pragma once

// A compiled program as a file (.pycm): code, plan, packed weights, decisions. Mapped and
// used in place; equal programs give equal bytes. Checksums find damage, not malice: an artefact
// holds code, and loading one means trusting it like a program.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/decision.h"
#include "base/shared_bytes.h"
#include "base/status.h"
#include "runtime/model.h"
#include "runtime/program.h"

namespace pyc::artifact {

struct Artifact {
  std::string version;      // of the PyC that made it; filled by decode
  std::string determinism;  // the level it was compiled for
  std::string fingerprint;  // of the graph
  std::string key;          // of a part: what it is found by; else ""
  runtime::Program program;
  runtime::MemoryReport memory;  // of a run on one thread
  DecisionLog log;

  // A model that is not one program (then `program` has no steps): the text of its open graph, the
  // tensors stored beside that text, the options every program of it is compiled with, and the
  // programs there are, each found by its key.
  std::string graph;  // "": one program
  std::vector<SharedBytes> stored;
  std::vector<std::pair<std::string, std::string>> options;
  std::vector<Artifact> parts;
  bool is_open() const { return !graph.empty(); }
};

// The version that encode writes and decode takes.
std::string_view version();

// Whether bytes are meant to be an artefact: they start with its mark.
bool is_artifact(std::span<const std::byte> bytes);

// The file's bytes, in pieces that share the program's weights. The program passes check_program.
Result<std::vector<SharedBytes>> encode(const Artifact& artifact);

// Whether the digests of a file's sections are still to be checked: a store has checked its own
// over all of these bytes, and what is long is not read twice.
enum class Checksums { kCheck, kDone };

// Reads a file; the program's weights stay where the bytes are (moved if these are not aligned to
// 64). There is a place at least, and every step's exists; who runs it makes sure of the rest
// (runtime::load_engine). kParseError: no artefact, cut off, damaged or malformed; kUnsupported: of
// another format or version of PyC. Each message says which.
Result<Artifact> decode(SharedBytes file, Checksums checksums = Checksums::kCheck);

}  // namespace pyc::artifact
