#pragma once

// Copies of the caller's tensors that kernels cannot take as they are: made before a run, and for
// outputs copied back after it. Stands beside a run's lane; it holds no memory until a run needs
// it.

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
  // The same tensors as plain views, after fill: in place, or in this memory.
  std::span<const TensorView> inputs() const { return inputs_; }
  std::span<const TensorView> outputs() const { return outputs_; }
  // Copies the staged outputs to where the caller wants them.
  void copy_back(std::span<const TensorView> outputs) const;

 private:
  AlignedBuffer memory_;
  std::vector<TensorView> inputs_;
  std::vector<TensorView> outputs_;
};

}  // namespace pyc::runtime
