#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "ir/graph.h"

namespace pyc::eval {
class Evaluators;
}

namespace pyc::driver {

// What calls of folded_outputs may share, from any number of threads at a time.
std::shared_ptr<eval::Evaluators> make_evaluators();

// The outputs of a graph of integers and bools that the passes fold to constants, as shapes are
// computed: their bytes, without compiling anything. Nothing when some output is not folded or is
// of floats, which a run gives the one canonical NaN.
Result<std::optional<std::vector<SharedBytes>>> folded_outputs(
    const ir::VerifiedGraph& graph, eval::Evaluators* evaluators = nullptr);

}  // namespace pyc::driver
