#pragma once

#include <span>

#include "plan/types.h"

namespace pyc::plan {

// Per step: the pairs of instances that its kernel's needs allow, both temporaries of as many
// bytes. A pair saves memory if the step reads the one for the last time, which is a matter of
// order. A group that runs more than once has one code for all of its steps, so none of them.
std::vector<std::vector<loop::InPlacePair>> possible_pairs(
    const lower::LoweredGraph& lowered, std::span<const lower::KernelNeeds> needs,
    const ExecutionPlan& plan);

// As many of the pairs as have no instance in common; earlier ones where there is a choice.
std::vector<loop::InPlacePair> disjoint_pairs(std::span<const loop::InPlacePair> pairs);

// Those of a step's possible pairs that save memory, with no instance in common. Requires set_uses.
std::vector<loop::InPlacePair> saving_pairs(std::span<const loop::InPlacePair> possible,
                                            const ExecutionPlan& plan, uint32_t step);

// Adds to each step as many of its possible pairs as save memory. Requires set_uses.
void choose_in_place(std::span<const std::vector<loop::InPlacePair>> possible, ExecutionPlan& plan);

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
