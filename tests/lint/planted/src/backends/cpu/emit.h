#pragma once

#include <llvm/IR/Module.h>
#include "backends/backend.h"
#include "lower/group.h"
#include "lower/types.h"
