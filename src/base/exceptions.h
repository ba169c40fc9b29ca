#pragma once

#include "base/status.h"

namespace pyc {

// What the exception that is being handled says to a caller: kOutOfMemory for memory that was
// refused, else kInternal. For borders that nothing may leave; call it inside a catch only.
Status status_of_exception() noexcept;

}  // namespace pyc
