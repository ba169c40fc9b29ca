#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/scan.h"

namespace pyc::ops {
namespace {

Expr combine_cumsum(Expr total, Expr x) { return total + x; }

void kernel_cumsum(KernelContext& context) { scan(context, 0.0, combine_cumsum); }

ValueId gradient_cumsum(Backward& b) {
  ir::Attrs attrs = b.node_attrs();
  attrs["reverse"] = !b.attrs().attr_bool("reverse");
  return b.op("cumsum", {b.g()}, attrs);
}

}  // namespace

const ir::OpDef& op_cumsum() {
  static const ir::OpDef def{
      .name = "cumsum",
      .summary =
          "Running sums along an axis; exclusive: without the element itself; reverse: from the "
          "end.",
      .attrs = scan_attrs(),
      .infer = infer_scan,
      .kernel = kernel_cumsum,
      .gradient = gradient_of_one<gradient_cumsum>,
      .draw = {.node = draw_scan},
  };
  return def;
}

}  // namespace pyc::ops
