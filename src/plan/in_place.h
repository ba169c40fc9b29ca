#pragma once

#include <span>

#include "plan/types.h"

namespace pyc::plan {

// Adds to each Run step the pairs that its kernel's needs allow and that save memory: a temporary
// that is read for the last time, and a temporary of as many bytes that is written. Requires
// set_uses.
void choose_in_place(const lower::LoweredGraph& lowered, std::span<const lower::KernelNeeds> needs,
                     ExecutionPlan& plan);

// States the plan's pairs in the groups' kernels, so that code is made for them; stores that put an
// element back where it was are left out.
void state_in_place(const ExecutionPlan& plan, lower::LoweredGraph& lowered);

// The instance among `ids` that holds the value as it is, or kNoId.
uint32_t find_instance(const ExecutionPlan& plan, const std::vector<uint32_t>& ids,
                       ir::ValueId value);

// Whether both buffers of the group stand for the same bytes of two values, each the only buffer of
// its value. A pair of instances is in place only if this holds of its buffers.
bool cover_alike(const lower::Group& group, const loop::InPlacePair& buffers);

}  // namespace pyc::plan
