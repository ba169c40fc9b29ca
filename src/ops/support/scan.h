#pragma once

// Running sums and products: attributes `axis`, `exclusive` and `reverse`.

#include "ops/kernel.h"
#include "ops/support/infer.h"

namespace pyc::ops {

std::vector<ir::AttrDef> scan_attrs();
Types infer_scan(const InferArgs& args);

// y = base + (carry + local), or · for +: local is the chain from the identity inside a block of
// 1024 elements, carry the chain of the blocks before it inside a super-block of 1024 blocks, base
// the chain of the super-blocks before that.
void scan(KernelContext& context, double identity, Expr (*combine)(Expr total, Expr x));

}  // namespace pyc::ops
