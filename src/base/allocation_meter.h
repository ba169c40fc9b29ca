#pragma once

// What AlignedBuffer has handed out, as it rounds it.

#include <cstdint>

namespace pyc {

// Bytes handed out to this thread so far; freeing takes nothing back. The difference of two
// readings is what was allocated between them.
int64_t allocated_by_thread();

// Bytes that this process was handed out and has not freed.
int64_t allocated_now();
// The most that allocated_now() was since the call before, which it is now again.
int64_t take_allocated_peak();

}  // namespace pyc
