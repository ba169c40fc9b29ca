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

}  // namespace pyc::session
