#pragma once

// Running sums and products: attributes `axis`, `exclusive` and `reverse`.

#include "ops/kernel.h"
#include "ops/support/infer.h"

namespace pyc::ops {

std::vector<ir::AttrDef> scan_attrs();
Types infer_scan(const InferArgs& args);

// Blocks of 1024 elements are chained from the identity, and joined to the blocks before them.
void scan(KernelContext& context, double identity, Expr (*combine)(Expr total, Expr x));

}  // namespace pyc::ops
