#pragma once

#include <utility>

#include "ir/graph.h"

namespace pyc::test {

// A graph that is known to be right, as the stages take it.
inline ir::VerifiedGraph verified(ir::Graph graph) {
  return ir::verify_graph(std::move(graph)).value();
}

}  // namespace pyc::test
