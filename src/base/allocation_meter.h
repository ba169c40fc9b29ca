#pragma once

#include <cstdint>

namespace pyc {

// Bytes that AlignedBuffer has handed out to this thread so far, as it rounds them; freeing takes
// nothing back. The difference of two readings is what was allocated between them.
int64_t allocated_by_thread();

}  // namespace pyc
