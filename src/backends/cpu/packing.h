#pragma once

// A matrix copied into panels, as register tiles read it: panels of `columns` columns, each
// [k][columns], the last one filled up with zeros.

#include <cstdint>
#include <vector>

namespace pyc::cpu {

struct Packing {
  int64_t n = 0;  // columns of the matrix
  int64_t k = 0;
  int columns = 8;  // of a panel
  int lanes = 4;    // copied at once
  // The source, in elements of f32.
  int64_t base = 0;
  int64_t row_stride = 0;  // per n
  int64_t k_stride = 0;
  // Dims of which each index has a matrix of its own, and those that share one (stride 0).
  std::vector<int64_t> batch;
  std::vector<int64_t> batch_strides;

  int64_t panels() const { return (n + columns - 1) / columns; }
  int64_t panel_elements() const { return k * columns; }
  int64_t matrices() const {
    int64_t count = 1;
    for (size_t i = 0; i < batch.size(); ++i) count *= batch_strides[i] == 0 ? 1 : batch[i];
    return count;
  }
  int64_t bytes() const { return matrices() * panels() * panel_elements() * 4; }
  // Elements between the packed matrices of neighbours in each dim of the batch.
  std::vector<int64_t> packed_strides() const {
    std::vector<int64_t> out(batch.size(), 0);
    int64_t stride = panels() * panel_elements();
    for (size_t i = batch.size(); i-- > 0;) {
      if (batch_strides[i] == 0) continue;
      out[i] = stride;
      stride *= batch[i];
    }
    return out;
  }
};

}  // namespace pyc::cpu
