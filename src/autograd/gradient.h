#pragma once

// Reverse-mode differentiation: Graph IR in, Graph IR out, from what each OpDef says about itself.
//
// Meaning. The result is the given graph, node for node and value for value as it was, followed by
// the nodes that compute gradients; its outputs are those of the given graph and then, in the order
// asked for, d loss / d value for each wanted value, of that value's type. It is an ordinary graph
// before any pass: what forward and backward have in common is computed once by the passes, and it
// can be differentiated again.
//
// The gradient of a value is the sum of what its readers send back, added from the last reader to
// the first, one rounding each: the order is the graph's and nothing else's. Rules sum by
// reductions and scatters whose order docs/NUMERICS.md fixes.
//
// Only floats carry gradients. What passes through an integer or a bool (a comparison, an index, a
// cast) stops there; a float that reaches the loss through an op without a derivative is an error.

#include <span>
#include <vector>

#include "ir/graph.h"

namespace pyc::autograd {

struct GradientOptions {
  // A wanted value that the loss does not depend on gets zeros instead of an error.
  bool allow_unused = false;
};

// Refuses, always with the name of the value or node:
//   kInvalidArgument  a loss that is no float of one element, a wanted value that is no float, an
//                     id that is none, a wanted value the loss does not depend on
//   kUnsupported      a path from a wanted value to the loss through an op without a derivative
Result<ir::VerifiedGraph> differentiate(const ir::VerifiedGraph& graph, ir::ValueId loss,
                                        std::span<const ir::ValueId> wanted, const ir::OpSet& ops,
                                        const GradientOptions& options = {});

// The same inside a graph that is being built: the gradients, in the order asked for, behind what
// is there. What rules built and nobody reads stays; the passes leave it out.
Result<std::vector<ir::ValueId>> append_gradients(ir::GraphBuilder& builder, ir::ValueId loss,
                                                  std::span<const ir::ValueId> wanted,
                                                  const GradientOptions& options = {});

}  // namespace pyc::autograd
