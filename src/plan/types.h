#pragma once

// ExecutionPlan: which step runs when, and where every byte lives. Nothing in it names a backend.

#include <array>
#include <string>
#include <vector>

#include "base/buffer_class.h"
#include "base/decision.h"
#include "ir/graph.h"
#include "lower/types.h"

namespace pyc::plan {

inline constexpr int64_t kAlignment = 64;

struct PlannedBuffer {
  std::string name;  // the value's name, "w.packed[g3]" or "g3.workspace"
  BufferClass cls = BufferClass::kTemporary;
  ir::ValueId value = ir::kNoId;  // kNoId for workspaces and packed constants
  int64_t bytes = 0;              // as used
  int64_t offset = -1;            // into the arena: temporaries and workspaces only
  int first_step = 0;             // live from the start of this step …
  int last_step = 0;              // … to the end of this one
  uint32_t io_index = 0;          // which input, output or parameter
};

struct PlannedStep {
  uint32_t group = 0;  // index into LoweredGraph::groups
  // Planned buffers, each once: those with a value in the kernel's order, then the packed constants
  // in the order of KernelNeeds::packed.
  std::vector<uint32_t> reads;
  std::vector<uint32_t> writes;
  uint32_t workspace = ir::kNoId;  // planned buffer, or kNoId
};

struct PlanMetrics {
  std::array<int64_t, kBufferClasses> class_bytes{};  // sums of buffer bytes, before reuse
  int64_t arena_bytes = 0;                            // peak of the arena: what is allocated for it
  int64_t requested_bytes = 0;    // sum of arena buffers (aligned): the arena without reuse
  int64_t lower_bound_bytes = 0;  // largest sum of buffers live at one step (aligned)
  int64_t scratch_bytes = 0;      // per thread
  int64_t peak_bytes = 0;         // inputs + parameters + outputs + arena + scratch·threads
  int64_t largest_bytes = 0;      // largest single arena buffer, as used
  int64_t buffers = 0;            // arena buffers
  int64_t reused = 0;             // arena buffers in memory that an earlier one had
  int64_t overlap_pairs = 0;      // pairs of arena buffers whose lifetimes intersect
  int peak_step = 0;              // first step at which lower_bound_bytes is reached
};

struct ExecutionPlan {
  std::vector<PlannedBuffer> buffers;
  std::vector<PlannedStep> steps;
  PlanMetrics metrics;
  DecisionLog decisions;
};

}  // namespace pyc::plan
