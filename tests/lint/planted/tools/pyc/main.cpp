#include "base/status.h"
#include "lower/group.h"
