#pragma once

// Gradients against differences of the loss: along a random direction the gradient's component must
// be the slope that central differences in f64 show, all of it through the reference backend.

#include <optional>
#include <string>
#include <vector>

#include "support/draw.h"

namespace pyc::test {

// A graph with the loss as its only output: the sum of its float outputs times fixed weights.
struct LossGraph {
  ir::Graph graph;
  ValueId loss = 0;
  std::vector<ValueId> wanted;                 // its f64 inputs
  std::vector<std::vector<std::byte>> inputs;  // floats moved off round numbers, where ties are
};
// Nothing where a value is a float of another dtype than f64, or there is no f64 input or output.
std::optional<LossGraph> with_loss(const DrawnGraph& drawn, uint64_t seed);

enum class Agreement : uint8_t {
  kAgrees,
  kUnfit,  // the loss does not depend on the inputs, or is not finite, or too steep to tell
  kDiffers,
};
struct Verdict {
  Agreement outcome = Agreement::kUnfit;
  std::string message;  // where it differs
};
Verdict check_gradient(const LossGraph& loss, uint64_t seed);
// The gradient of the gradient's component along a direction, the same way.
Verdict check_second(const LossGraph& loss, uint64_t seed);

// The gradient graph with its inputs, to be compared between devices.
Result<DrawnGraph> gradient_graph(const LossGraph& loss);

}  // namespace pyc::test
