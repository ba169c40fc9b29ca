#include "ops/registry.h"

namespace pyc::ops {

#define PYC_OP(name) const ir::OpDef& op_##name();
#include "op_list.inc"
#undef PYC_OP

const ir::OpSet& all_ops() {
  static const ir::OpSet set({
#define PYC_OP(name) &op_##name(),
#include "op_list.inc"
#undef PYC_OP
  });
  return set;
}

}  // namespace pyc::ops
