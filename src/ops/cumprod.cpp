#include "ops/support/scan.h"

namespace pyc::ops {
namespace {

Expr combine_cumprod(Expr total, Expr x) { return total * x; }

void kernel_cumprod(KernelContext& context) { scan(context, 1.0, combine_cumprod); }

}  // namespace

const ir::OpDef& op_cumprod() {
  static const ir::OpDef def{
      .name = "cumprod",
      .summary =
          "Running products along an axis; exclusive: without the element itself; reverse: from "
          "the end.",
      .attrs = scan_attrs(),
      .infer = infer_scan,
      .kernel = kernel_cumprod,
  };
  return def;
}

}  // namespace pyc::ops
