#pragma once

#include <functional>
#include <span>

#include "open/open_graph.h"

namespace pyc::onnx {

// What makes `y` of the values `given`, as a region of its own: its inputs are those of `given`, in
// their order, its output is y. Nodes that read none of them, directly or through others, stay
// outside and are captured. `charge` is asked before every node is copied, with its bytes.
Result<std::shared_ptr<const open::OpenGraph>> differentiated_region(
    const open::OpenGraph& graph, std::span<const open::OpenId> given, open::OpenId y,
    const std::function<Status(const open::OpenNode&)>& charge);

}  // namespace pyc::onnx
