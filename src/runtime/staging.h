#pragma once

// Copies of the caller's tensors that kernels cannot take as they are: made before a run, and for
// outputs copied back after it. Part of a run's context; it holds no memory until a run needs it.

#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "runtime/tensor_view.h"

namespace pyc::runtime {

class Staging {
 public:
  struct Need {
    int64_t views = 0;
    int64_t copied_bytes = 0;  // of their elements
    int64_t memory_bytes = 0;  // with each at a multiple of 64
  };
  // What a run with these views stages; all of them are sound.
  static Need need_of(std::span<const TensorView> inputs, std::span<const TensorView> outputs);

  // Has memory for `need` and the inputs in it. `grown` becomes the bytes by which it holds more, 0
  // when what earlier runs left was enough; less than 0 after kOutOfMemory.
  Status fill(const Need& need, std::span<const TensorView> inputs,
              std::span<const TensorView> outputs, int64_t& grown);
  // Where kernels read input i and write output i, after fill.
  std::byte* input(size_t i) const { return inputs_[i]; }
  std::byte* output(size_t i) const { return outputs_[i]; }
  // Copies the staged outputs to where the caller wants them.
  void copy_back(std::span<const TensorView> outputs) const;

 private:
  AlignedBuffer memory_;
  std::vector<std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

}  // namespace pyc::runtime
