#pragma once

// Pools whose one window is the whole plane.

#include "ops/support/compose.h"
#include "ops/support/window.h"

namespace pyc::ops {

Types infer_global_pool(const InferArgs& args, const DTypeClass& accepted);
// The pool `op` with the node's attributes and a kernel as large as the planes.
Result<std::vector<ValueId>> as_one_window(ir::GraphBuilder& builder, const ir::Node& node,
                                           std::string_view op);

}  // namespace pyc::ops
