#include "driver/tables.h"

#include "ops/registry.h"

namespace pyc::driver {
const ir::OpSet& known_ops() { return ops::all_ops(); }

}  // namespace pyc::driver
