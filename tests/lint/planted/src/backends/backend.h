#pragma once

#include "loop/loop.h"
#include "lower/types.h"
