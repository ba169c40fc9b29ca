#pragma once

// A kernel that goes over a row several times waits between its loops: the sum of a row has to be
// joined and inverted, say, before the next loop can begin. With two rows in every loop it waits
// once for both.

#include <optional>

#include "loop/loop.h"

namespace pyc::cpu {

// The same kernel with every two points in one, each with results and scratch memory of its own;
// the buffers of the kernel keep their numbers. Every point computes what it did, so that bits
// stay. Null for a kernel of another form: one parallel variable of even extent, and loops over
// rows of 64 to 4096 elements, which only store and reduce, are needed.
std::optional<loop::Kernel> pair_points(const loop::Kernel& kernel);

// How often a point waits for a loop's reductions.
int waits_of(const loop::Kernel& kernel);

}  // namespace pyc::cpu
