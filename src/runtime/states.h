#pragma once

// What a model keeps from one run to the next. A state is donated to a run, which changes it where
// it lies, and is the caller's to set and read between runs. It begins as zeros. A run that fails
// half way leaves those void that a step may have written: no run is taken until all of them were
// set or cleared.
//
// Runs of a model with state go one at a time, and nobody sets or reads it meanwhile: which of two
// came first would decide what they compute, so the second is refused instead of made to wait.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "runtime/program.h"
#include "runtime/tensor_view.h"

namespace pyc::runtime {

class States {
 public:
  explicit States(const Program& program) : specs_(program.states) {}

  // The memory of all of them, zeros. kOutOfMemory.
  Status allocate();
  bool empty() const { return specs_.empty(); }
  std::span<std::byte* const> memory() const { return pointers_; }
  // What the allocator handed out.
  int64_t memory_bytes() const { return memory_bytes_; }

  // Any thread may call these. kInvalidArgument: there is no such state, a run has them, or (get)
  // they are void; views are refused as those of a run are. An element that is NaN becomes the one
  // canonical NaN, as in every output.
  Status set(size_t index, const TensorView& from);
  Status get(size_t index, const TensorView& to) const;
  // Zeros.
  Status clear(size_t index);

  // Lends them to one run. kInvalidArgument while another has them, or when one is void.
  Status lend();
  // Ends it. Of a run that failed, `failed_at` is the step; what it or one before it may have
  // written is void.
  void take_back(bool whole, int64_t failed_at = 0);

 private:
  Status check(size_t index) const;

  const std::vector<StateSpec>& specs_;
  std::vector<AlignedBuffer> buffers_;
  std::vector<std::byte*> pointers_;
  int64_t memory_bytes_ = 0;
  mutable std::mutex mutex_;
  bool lent_ = false;
  std::vector<bool> void_;
};

}  // namespace pyc::runtime
