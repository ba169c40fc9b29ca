#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "loop/loop.h"

namespace pyc::loop {

// Makes every buffer that is only read begin at the first and end at the last element that its
// loads can reach, so that kernels which read different slices of a value alike have equal texts.
// Gives, per buffer, the element at which it now begins. Where a guard is false nothing is read,
// and where it is true the element is there. `others` are expressions of the kernel's pool that no
// statement has: they are rewritten too, and their loads count.
std::vector<int64_t> rebase(Kernel& kernel, std::span<ExprId* const> others = {});

}  // namespace pyc::loop
