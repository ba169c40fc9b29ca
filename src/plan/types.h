#pragma once

// ExecutionPlan: which step runs when, and where every byte lives. Nothing in it names a backend.
//
// Memory. A place is a memory that steps can reach; place 0 is the host. An instance is memory of
// one place for one value; a value may have several, at other places or at other times. The
// temporaries and workspaces of a place share one arena, in which an instance has an offset; two
// may share bytes only if every use of one happens before every use of the other, or if one step
// writes the one in place of the other.
//
// Files. A parameter may stay in a file that is mapped (class mapped): no step computes from it. A
// Copy brings it into a temporary, its window, before each step that reads it.
//
// Shelf. Place 1, where there is one, is host memory beside a device's: a Copy moves a temporary
// there and another one back (offload.h).
//
// State. A state is memory that stays from run to run: before the first step it holds the value of
// one input, after the last one that of an output, which is the input's at the next run. Both
// values have an instance of class state, in the same bytes; the caller hands in neither of them.
//
// Execution. Steps of a queue run one after the other. Queues know of each other only by events: a
// step after a Wait on its queue happens after what stood before the Record of that event on its
// own. A Record stands before its Waits in the list. The run ends with queue 0.
//   Run    computes a group at a place: reads and writes instances that lie there. A group may run
//          more than once; each run writes all of its values.
//   Copy   the bytes of one instance to another of the same value.
//   Record, Wait  as above.

#include <array>
#include <string>
#include <vector>

#include "base/buffer_class.h"
#include "base/decision.h"
#include "ir/graph.h"
#include "lower/types.h"

namespace pyc::plan {

inline constexpr int64_t kAlignment = 64;

struct Instance {
  std::string name;  // the value's name, "w.packed[g3]" or "g3.workspace"
  BufferClass cls = BufferClass::kTemporary;
  ir::ValueId value = ir::kNoId;  // kNoId for workspaces
  std::string packing = {};       // of a packed constant: how (KernelNeeds::Packed)
  uint32_t place = 0;
  int64_t bytes = 0;                // as used
  int64_t offset = -1;              // into the place's arena: temporaries and workspaces only
  std::vector<uint32_t> uses = {};  // the steps that name it, ascending
  uint32_t io_index = 0;            // which input, output, parameter or state
};

// Of the graph: this input's value at the next run is that output's of this one.
struct StatePair {
  uint32_t input = 0;   // index into Graph::inputs
  uint32_t output = 0;  // index into Graph::outputs
  bool operator==(const StatePair&) const = default;
};

enum class StepKind : uint8_t { kRun, kCopy, kRecord, kWait };

struct Step {
  StepKind kind = StepKind::kRun;
  uint32_t queue = 0;
  uint32_t place = 0;  // Run
  uint32_t group = 0;  // Run: index into LoweredGraph::groups
  // Instances, each once. Run: those of whole values in the kernel's order, then the packed
  // constants in the order of KernelNeeds::packed. Copy: one and one.
  std::vector<uint32_t> reads = {};
  std::vector<uint32_t> writes = {};
  uint32_t workspace = ir::kNoId;  // instance, or kNoId
  // Run: what it writes in the memory of what it reads for the last time, as instances.
  std::vector<loop::InPlacePair> in_place = {};
  uint32_t event = 0;  // Record, Wait
};

// Of one place.
struct PlanMetrics {
  std::array<int64_t, kBufferClasses> class_bytes{};  // sums of instances' bytes, before
                                                      // reuse; states once, in whole units
  int64_t arena_bytes = 0;                            // peak of the arena: what is allocated for it
  int64_t requested_bytes = 0;    // sum of arena instances (aligned): the arena without reuse
  int64_t lower_bound_bytes = 0;  // largest sum of arena bytes in use at one step (aligned)
  int64_t scratch_bytes = 0;      // per thread
  int64_t peak_bytes = 0;     // inputs + parameters + outputs + states + arena + scratch·threads
  int64_t copied_bytes = 0;   // written by Copy steps
  int64_t largest_bytes = 0;  // largest single arena instance, as used
  int64_t buffers = 0;        // arena instances
  int64_t reused = 0;         // arena instances in memory that an earlier one had
  int64_t in_place = 0;       // of those: written in place of what their step read
  int64_t overlap_pairs = 0;  // pairs of arena instances whose lifetimes intersect
  int peak_step = 0;          // first step at which lower_bound_bytes is reached
};

struct Place {
  std::string name;
  int64_t budget = -1;  // bytes of metrics.peak_bytes; -1: none
  PlanMetrics metrics = {};
};

struct ExecutionPlan {
  std::vector<Place> places = {{"host"}};
  std::vector<Instance> instances;
  std::vector<Step> steps;
  std::vector<StatePair> states = {};  // state i is that of the instances with io_index i
  DecisionLog decisions;

  PlanMetrics& host() { return places[0].metrics; }
  const PlanMetrics& host() const { return places[0].metrics; }
};

}  // namespace pyc::plan
