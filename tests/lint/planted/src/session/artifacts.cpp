// Calls what calls it.

#include "session/model.h"  // wrong: within a folder, too
