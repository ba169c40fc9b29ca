#pragma once

// Between the replaced functions (replaced.cpp) and the account of them (inject.cpp).

#include "faults/inject.h"

namespace pyc::faults {

// Whether this call is the one to refuse.
bool refused(Kind kind);

bool may_execute();

void add_block(void* block);
void remove_block(void* block);  // blocks that were not added are ignored
void count_file(int change);
void count_map(int change);

}  // namespace pyc::faults
