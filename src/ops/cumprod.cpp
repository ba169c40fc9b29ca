#include "ops/support/scan.h"

namespace pyc::ops {
namespace {

Expr combine(Expr total, Expr x) { return total * x; }

void kernel(KernelContext& context) { scan(context, 1.0, combine); }

}  // namespace

const ir::OpDef& op_cumprod() {
  static const ir::OpDef def{
      .name = "cumprod",
      .summary =
          "Running products along an axis; exclusive: without the element itself; reverse: from "
          "the end.",
      .attrs = scan_attrs(),
      .infer = infer_scan,
      .kernel = kernel,
  };
  return def;
}

}  // namespace pyc::ops
