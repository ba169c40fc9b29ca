#pragma once

#include <cuda.h>
#include "op_list.inc"
