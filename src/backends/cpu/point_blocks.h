#pragma once

// A window's kernel reads most elements for several of its points, and its weights for all of them.
// With neighbouring points in one, what they share is loaded once.

#include <optional>

#include "loop/loop.h"

namespace pyc::cpu {

// The same kernel with every `count` neighbours along the last parallel variable in one point, each
// with results of its own. Every point computes what it did, so that bits stay. Null if the kernel
// has another form (window_kernel.h) or `count` does not divide the variable's extent.
std::optional<loop::Kernel> block_points(const loop::Kernel& kernel, int count);

}  // namespace pyc::cpu
