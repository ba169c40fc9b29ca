#pragma once

// From a graph to a model that runs, through the caches: the program of an equal graph and equal
// options is taken from memory or from a folder, else it is compiled and kept.

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "driver/compile.h"
#include "ir/graph.h"
#include "runtime/model.h"

namespace pyc::session {

// Refuses with the code and message of the stage that cannot go on.
Result<std::unique_ptr<runtime::Model>> compile(ir::VerifiedGraph given,
                                                const driver::CompileOptions& options);
// The same for a graph that nobody verified yet.
inline Result<std::unique_ptr<runtime::Model>> compile(ir::Graph graph,
                                                       const driver::CompileOptions& options) {
  PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(graph)));
  return compile(std::move(given), options);
}

// The folder that PYC_CACHE_DIR names, or "": where programs are kept when the option cache_dir
// names none. A folder is a Store of artefacts (base/store.h), each under all that it was compiled
// from.
std::string default_cache_folder();

// Puts into the options what the tuner measured on this machine, as the folder of their programs
// has it; nothing where there is no folder, or the code is for another machine.
Status read_tuning(driver::CompileOptions& options);

}  // namespace pyc::session
