#pragma once

#include <algorithm>

#include "plan/types.h"

namespace pyc::plan {

// What an instance takes in the arena: its bytes rounded up to the alignment, at least one unit.
constexpr int64_t arena_size(int64_t bytes) {
  return bytes == 0 ? kAlignment : (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
inline int64_t arena_size(const Instance& instance) { return arena_size(instance.bytes); }

inline bool in_arena(const Instance& instance) {
  return instance.cls == BufferClass::kTemporary || instance.cls == BufferClass::kWorkspace;
}

// Before a run and after it.
inline bool of_one_state(const Instance& a, const Instance& b) {
  return a.cls == BufferClass::kState && b.cls == BufferClass::kState && a.io_index == b.io_index;
}

inline bool share_bytes(const Instance& a, const Instance& b) {
  if (of_one_state(a, b)) return a.place == b.place;
  return a.place == b.place && in_arena(a) && in_arena(b) && a.offset < b.offset + arena_size(b) &&
         b.offset < a.offset + arena_size(a);
}

// From the start of one step to the end of another, in the order of the list.
struct Lifetime {
  int first = 0;
  int last = 0;
};
inline bool live_together(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

// Temporaries and workspaces live from their first to their last use, outputs from their first one
// to the end of the run, all others all the time. Requires set_uses.
Lifetime lifetime(const ExecutionPlan& plan, const Instance& instance);

// Sets every instance's uses from the steps.
void set_uses(ExecutionPlan& plan);

// Calls f(instance) for all that a step names: reads, writes and workspace.
template <class F>
void each_named(const Step& step, const F& f) {
  for (const uint32_t i : step.reads) f(i);
  for (const uint32_t i : step.writes) f(i);
  if (step.workspace != ir::kNoId) f(step.workspace);
}
// All of them.
std::vector<uint32_t> named_by(const Step& step);

// Per instance: the one it is written in place of, or kNoId.
std::vector<uint32_t> in_place_sources(const ExecutionPlan& plan);

}  // namespace pyc::plan
