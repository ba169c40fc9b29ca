#pragma once

// Plans with less memory and more copies: a parameter that stays in a mapped file and is copied
// into the arena, its window, before each step that reads it.

#include "plan/draft.h"

namespace pyc::plan {

// The time that copying a byte out of a mapped file is taken for: an assumption and no machine's,
// so that a plan is the same on all of them.
inline constexpr double kStreamNsPerByte = 0.05;

// The draft with parameters left in the file, so that the others and the arena together have at
// most `limit` bytes; of the choices that do, one that copies few bytes. Where none does, the
// smallest that was found, which does not depend on the limit: less than that is never met. The
// draft itself where that is the smallest. Requires a draft with uses and offsets.
Draft stream_parameters(const Drafting& drafting, Draft draft, int64_t limit);

// What the limit of stream_parameters is compared with.
int64_t arena_and_parameters(const Draft& draft);

}  // namespace pyc::plan
