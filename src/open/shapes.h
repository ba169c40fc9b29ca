#pragma once

// Shapes for what a model leaves open.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "open/open_graph.h"

namespace pyc::open {

struct ShapeChoice {
  std::map<std::string, int64_t> dims = {};                 // by the dim's name
  std::map<std::string, std::vector<int64_t>> inputs = {};  // by the input's name
  bool empty() const { return dims.empty() && inputs.empty(); }
};

// The graph with the chosen dims and input shapes; dims of the same name are the same everywhere.
// kInvalidArgument for names that are not there (with the nearest) and negative sizes,
// kRankMismatch, kShapeMismatch for choices that contradict the model or one another (naming both).
Result<std::shared_ptr<const open::OpenGraph>> fix_shapes(
    std::shared_ptr<const open::OpenGraph> graph, const ShapeChoice& choice);

}  // namespace pyc::open
