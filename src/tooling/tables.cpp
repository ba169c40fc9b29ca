#include "tooling/tables.h"

#include "ops/registry.h"

namespace pyc::tooling {
const ir::OpSet& known_ops() { return ops::all_ops(); }

}  // namespace pyc::tooling
