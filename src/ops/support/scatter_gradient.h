#pragma once

// The gradient rules of ops that write updates into a tensor.

#include <functional>

#include "ops/support/backward.h"

namespace pyc::ops {

struct ScatterAccess {
  // What stands at the place of each update, of a tensor like the data.
  std::function<ValueId(ValueId data)> read;
  // Updates written into data.
  std::function<ValueId(ValueId data, ValueId updates, std::string_view reduction)> write;
  // Of the updates' shape, i64: told apart and counted up among updates of one place.
  ValueId numbers;
};

// Of each update, whether it is the last one written to its place.
ValueId last_written(Backward& b, const ScatterAccess& access, const Shape& data);

// The gradients of data (input 0) and updates (input 2), by attribute `reduction`. With max and min
// equal ones share evenly.
struct ScatterGradients {
  ValueId data;
  ValueId updates;
};
ScatterGradients scatter_gradients(Backward& b, const ScatterAccess& access);

}  // namespace pyc::ops
