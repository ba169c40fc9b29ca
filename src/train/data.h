#pragma once

// Training data: arrays whose first dim counts rows, handed out as batches.
//
// Order. Batch number p (0, 1, …) is batch p mod n of pass p div n over the data, with n whole
// batches in a pass; the rows left over at the end of a pass are dropped. Without a seed rows come
// as they are. With one, each pass has an order of its own: Fisher and Yates' shuffle, driven by
// Philox words under the seed and the number of the pass. A batch is a function of data, seed and
// p.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "io/named_tensors.h"
#include "runtime/program.h"
#include "runtime/tensor_view.h"

namespace pyc::train {

class Dataset {
 public:
  // Takes for every tensor of `batch` (Trainer::batch) the array of its name, with the same dtype
  // and dims except the first, which must be the batch's size in all tensors and the number of rows
  // in all arrays. Refused, naming the array: kNotFound, kDtypeMismatch, kShapeMismatch; and
  // kInvalidArgument for data of less rows than a batch or arrays that nobody takes.
  static Result<Dataset> create(std::vector<io::NamedTensor> arrays,
                                std::span<const runtime::IoSpec> batch,
                                std::optional<uint64_t> seed);

  int64_t rows() const { return rows_; }
  int64_t batch_rows() const { return batch_rows_; }
  int64_t batches() const { return rows_ / batch_rows_; }  // of a pass
  std::optional<uint64_t> seed() const { return seed_; }
  // Of names, types and elements of all arrays.
  const std::string& digest() const { return digest_; }

  // Batch `position`, valid until the next call.
  std::span<const runtime::TensorView> batch(int64_t position);

 private:
  struct Array {
    DynValue value;
    size_t row_bytes = 0;
    AlignedBuffer buffer;  // of a batch
    std::vector<int64_t> shape;
  };
  void order_pass(int64_t pass);

  int64_t rows_ = 0;
  int64_t batch_rows_ = 0;
  std::optional<uint64_t> seed_;
  std::string digest_;
  std::vector<Array> arrays_;
  std::vector<runtime::TensorView> views_;
  std::vector<int64_t> order_;  // of pass ordered_; empty: rows as they are
  int64_t ordered_ = -1;
};

}  // namespace pyc::train
