#pragma once

#include "base/status.h"
