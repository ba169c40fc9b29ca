#pragma once

#include <span>
#include <string>

#include "lower/types.h"

namespace pyc::lower {

// The canonical graph in the language of graphviz, a box around the nodes of each group; `kernels`
// names what was chosen for each. Names are escaped: no model can write anything but labels.
std::string print_dot(const LoweredGraph& lowered, std::span<const std::string> kernels);

}  // namespace pyc::lower
