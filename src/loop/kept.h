#pragma once

// What a kernel need not do when a result is written over an operand.

#include "loop/in_place.h"

namespace pyc::loop {

struct Kernel;

// Leaves out every store of the pair, which is in place, that puts an element back where it was
// loaded from, and the loops that had nothing else to do: what is not stored keeps its value. With
// `one_nan` the memory holds no NaN but the canonical one, so that making a NaN canonical on the
// way changes nothing either. Returns how many stores are gone.
int drop_kept_stores(Kernel& kernel, const InPlacePair& pair, bool one_nan);

}  // namespace pyc::loop
