#pragma once

#include "ir/op_def.h"

namespace pyc::ops {

// Every op of this folder: the build writes the list from the file names; file x.cpp defines
// `const ir::OpDef& op_x()`.
const ir::OpSet& all_ops();

}  // namespace pyc::ops
