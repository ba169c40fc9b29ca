#pragma once

// What the gradient rules of reductions over attribute `axes` share.

#include "ops/support/backward.h"

namespace pyc::ops {

// `v`, of the shape of the result, as it stands for each element of the input.
ValueId spread(Backward& b, ValueId v);

// The gradient of a largest or smallest element: equal ones share it evenly.
ValueId to_extremes(Backward& b);

// Input 0 as [results, elements of each], and what has that shape as the input stands.
ValueId reduced_rows(Backward& b);
ValueId rows_back(Backward& b, ValueId rows);

}  // namespace pyc::ops
