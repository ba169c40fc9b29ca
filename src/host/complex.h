#pragma once

// Complex tensors and their parts. No graph holds complex numbers: what moves elements about is
// done to real and imaginary parts, each an ordinary tensor.

#include "base/dyn_value.h"

namespace pyc::host {

struct ComplexParts {
  DynValue real;
  DynValue imaginary;
};
// The parts of a complex tensor, f32 or f64.
Result<ComplexParts> split_parts(const DynValue& value);
// kDtypeMismatch unless both are f32 or both are f64, kShapeMismatch unless they have one shape.
Result<DynValue> join_parts(const ComplexParts& parts);

// The indices of the elements that are not 0, as nonzero gives them.
Result<DynValue> nonzero_complex(const DynValue& value);

}  // namespace pyc::host
