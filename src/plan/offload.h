#pragma once

// Plans with less memory on a device and more copies: a temporary that nobody
// uses for a while is copied to the host, its shelf, and back before its next
// use.

#include "plan/draft.h"

namespace pyc::plan {

// The place of an instance that waits on the host.
inline constexpr uint32_t kShelf = 1;

// What copying a byte between a device and the host is taken for: an assumption
// and no machine's, so that a plan is the same on all of them.
inline constexpr double kShelfNsPerByte = 0.05;

// The draft with temporaries moved out over the steps that use most, the
// largest first, so that the arena of place 0 has at most `limit` bytes. Where
// that is not met, the smallest that was found, which does not depend on the
// limit; the draft itself where that is the smallest. A value that was moved
// out once and is moved out again is only copied back. Requires a draft with
// uses and offsets.
Draft move_out(const Drafting& drafting, Draft draft, int64_t limit);

}  // namespace pyc::plan
