#pragma once

// The memory of one run, and the pool that runs take it from.

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "runtime/program.h"
#include "runtime/staging.h"

namespace pyc::runtime {

// The pointer tables of all steps stand one behind the other in one list. Those that name the
// caller's tensors are set at every run, the others once.
struct PointerLayout {
  struct Slot {
    size_t position;
    uint32_t index;  // which input or output
  };
  std::vector<size_t> first;  // per step: where its table starts
  size_t size = 0;
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
};
PointerLayout make_layout(const Program& program);

struct RunContext {
  static Result<std::unique_ptr<RunContext>> create(const Program& program,
                                                    const PointerLayout& layout, int threads);

  // What was allocated for arena and scratch.
  int64_t memory_bytes() const;
  // Blocks of memory that a new context takes.
  int64_t blocks() const;
  // Thread t's scratch memory; null when no step needs any.
  std::byte* thread_scratch(int thread);

  AlignedBuffer arena;
  AlignedBuffer scratch;           // all threads', one behind the other
  int64_t scratch_per_thread = 0;  // a multiple of 64
  std::vector<void*> pointers;
  Staging staging;
  std::vector<int32_t> faults;  // per thread; all zero between steps
};

class ContextPool {
 public:
  ContextPool(const Program& program, int threads)
      : program_(program), layout_(make_layout(program)), threads_(threads) {}

  // A context that no other run has. `allocations` grows by what had to be allocated for it: 0
  // unless more runs overlap than ever before.
  Result<RunContext*> acquire(int64_t& allocations);
  void release(RunContext* context);

  const PointerLayout& layout() const { return layout_; }
  // Contexts made so far.
  int64_t made() const;

 private:
  const Program& program_;
  const PointerLayout layout_;
  const int threads_;
  // One free context that is taken and given back without the lock: all that a model needs whose
  // runs do not overlap.
  std::atomic<RunContext*> spare_{nullptr};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<RunContext>> all_;
  std::vector<RunContext*> free_;  // has room for all of them, so that release never allocates
};

}  // namespace pyc::runtime
