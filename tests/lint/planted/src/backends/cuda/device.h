#pragma once

#include <cuda.h>
#include "../cpu/emit.h"
