#pragma once

// A model's inputs and outputs as owned memory, inputs filled from a seed: what `pyc run`, benches
// and tests run models on. The same seed gives the same bytes on every machine.

#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/hash.h"
#include "ir/types.h"
#include "runtime/model.h"

namespace pyc::tooling {

// The bytes of one input: floats uniform in [-1, 1), integers in [0, 10).
std::shared_ptr<const ir::ConstData> seeded_data(const ir::TensorType& type, uint64_t seed);
std::shared_ptr<const ir::ConstData> seeded_input(const runtime::IoSpec& spec, uint64_t seed);

class SeededRun {
 public:
  // Input i is seeded_input with seed + i. Guarded memory (tests) makes any access beyond a tensor
  // fault.
  static Result<SeededRun> create(const runtime::Model& model, uint64_t seed,
                                  AlignedBuffer::Mode mode = AlignedBuffer::Mode::kPlain);

  std::span<const runtime::TensorView> inputs() const { return inputs_; }
  std::span<const runtime::TensorView> outputs() const { return outputs_; }
  // Of output i's bytes, as they are now.
  Digest digest(size_t i) const;
  // Whether nothing was written around the outputs (guarded memory only).
  bool intact() const;

 private:
  std::vector<AlignedBuffer> memory_;
  std::vector<std::vector<int64_t>> shapes_;  // that the views point to
  std::vector<runtime::TensorView> inputs_;
  std::vector<runtime::TensorView> outputs_;
};

}  // namespace pyc::tooling
