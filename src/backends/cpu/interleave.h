#pragma once

// Kernels that write what lies apart side by side: the two halves of channels that are shuffled,
// the planes of three colours as pixels. Along the last axis every second or third element comes
// from elsewhere, so that vectors of neighbours are loaded one by one. Taken apart, each of these
// is a row of its own, and the code writes the rows interleaved.

#include <optional>

#include "loop/loop.h"

namespace pyc::cpu {

// The same kernel, whose loop has for every iteration as many stores as are interleaved; every
// element is what it was. Null where the kernel has another form: one vector loop that only
// stores, whose loads take its variable apart by one small number, or which is as short and whose
// rows lie side by side for neighbouring points.
std::optional<loop::Kernel> interleave(const loop::Kernel& kernel);

}  // namespace pyc::cpu
