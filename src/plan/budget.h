#pragma once

#include <span>

#include "plan/draft.h"

namespace pyc::plan {

// The draft with steps run again (recompute.h), so that its arena has at most `limit` bytes, or as
// few as are found. Which is the smallest does not depend on the limit: where it is, it is found
// for a limit of just as many bytes too. `group_ns` as PlanOptions has it.
Draft fit_arena(const Drafting& drafting, Draft draft, std::span<const double> group_ns,
                int64_t limit);

}  // namespace pyc::plan
