#pragma once

#include <llvm/IR/Module.h>
#include "types.h"
