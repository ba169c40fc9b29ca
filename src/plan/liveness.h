#pragma once

#include "plan/types.h"

namespace pyc::plan {

// What a buffer takes in the arena: its bytes rounded up to the alignment, at least one unit.
constexpr int64_t arena_size(const PlannedBuffer& buffer) {
  return buffer.bytes == 0 ? kAlignment : (buffer.bytes + kAlignment - 1) / kAlignment * kAlignment;
}

constexpr bool in_arena(const PlannedBuffer& buffer) {
  return buffer.cls == BufferClass::kTemporary || buffer.cls == BufferClass::kWorkspace;
}

constexpr bool live_together(const PlannedBuffer& a, const PlannedBuffer& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

// Sets every buffer's lifetime from the order of the steps: temporaries live from the step that
// writes them to the last one that reads them, workspaces for their step, outputs from their
// writer to the end of the run, inputs and parameters all the time.
void set_lifetimes(ExecutionPlan& plan);

}  // namespace pyc::plan
