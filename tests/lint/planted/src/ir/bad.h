#pragma once

#include "backends/backend.h"
#include "base/status.h"
