#include "train/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "base/philox.h"
#include "ir/types.h"

namespace pyc::train {
namespace {

// A number below `bound`, the same on every machine.
int64_t draw_below(uint64_t seed, int64_t pass, int64_t index, int64_t bound) {
  const auto at = static_cast<uint64_t>(index) * 2;
  const uint64_t hi = philox_word(seed, static_cast<uint64_t>(pass), at);
  const uint64_t lo = philox_word(seed, static_cast<uint64_t>(pass), at + 1);
  __extension__ using Wide = unsigned __int128;
  return static_cast<int64_t>(static_cast<Wide>(hi << 32 | lo) * static_cast<uint64_t>(bound) >>
                              64);
}

Status check_array(const DynValue& array, const runtime::IoSpec& spec, int64_t rows) {
  const ir::TensorType wanted{spec.dtype, spec.shape};
  if (array.dtype != spec.dtype) {
    return {Code::kDtypeMismatch,
            fmt::format("array '{}': expected elements of type {}, found {}", spec.name,
                        dtype_name(spec.dtype), array.to_string())};
  }
  const bool same = array.shape.size() == spec.shape.size() &&
                    std::equal(array.shape.begin() + 1, array.shape.end(), spec.shape.begin() + 1);
  if (!same) {
    return {Code::kShapeMismatch, fmt::format("array '{}': expected rows for batches {}, found {}",
                                              spec.name, wanted.to_string(), array.to_string())};
  }
  if (array.shape[0] == rows) return {};
  return {Code::kShapeMismatch, fmt::format("array '{}': it has {} rows, the arrays before it {}",
                                            spec.name, array.shape[0], rows)};
}

// The size of a batch, the first dim of all its tensors.
Result<int64_t> rows_of_batch(std::span<const runtime::IoSpec> batch) {
  if (batch.empty()) return Status(Code::kInvalidArgument, "the model takes no data");
  for (const runtime::IoSpec& spec : batch) {
    const bool fits = !spec.shape.empty() && spec.shape[0] > 0 && !batch[0].shape.empty() &&
                      spec.shape[0] == batch[0].shape[0];
    if (fits) continue;
    return Status(
        Code::kShapeMismatch,
        fmt::format("'{}' is {}: the first dim of every input and of the target must be the rows "
                    "of a batch, '{}' is {}",
                    spec.name, ir::TensorType{spec.dtype, spec.shape}.to_string(), batch[0].name,
                    ir::TensorType{batch[0].dtype, batch[0].shape}.to_string()));
  }
  return batch[0].shape[0];
}

std::string names_of(const std::vector<io::NamedTensor>& arrays) {
  std::string out;
  for (const io::NamedTensor& array : arrays) {
    out += fmt::format("{}'{}'", out.empty() ? "" : ", ", array.name);
  }
  return out.empty() ? "no array" : out;
}

std::string digest_of(const std::vector<io::NamedTensor>& arrays) {
  Hasher hasher;
  for (const io::NamedTensor& array : arrays) {
    hasher.update(std::string_view(array.name));
    hasher.update(std::string_view(array.value.to_string()));
    hasher.update(array.value.bytes.span());
  }
  return hasher.finish().hex();
}

}  // namespace

Result<Dataset> Dataset::create(std::vector<io::NamedTensor> arrays,
                                std::span<const runtime::IoSpec> batch,
                                std::optional<uint64_t> seed) {
  Dataset out;
  PYC_ASSIGN(out.batch_rows_, rows_of_batch(batch));
  out.seed_ = seed;
  std::sort(arrays.begin(), arrays.end(),
            [](const io::NamedTensor& a, const io::NamedTensor& b) { return a.name < b.name; });
  out.digest_ = digest_of(arrays);
  for (const runtime::IoSpec& spec : batch) {
    const auto found = std::find_if(arrays.begin(), arrays.end(),
                                    [&](const io::NamedTensor& a) { return a.name == spec.name; });
    if (found == arrays.end()) {
      return Status(Code::kNotFound, fmt::format("the data has no array '{}'; it has {}", spec.name,
                                                 names_of(arrays)));
    }
    const DynValue& value = found->value;
    if (out.arrays_.empty() && !value.shape.empty()) out.rows_ = value.shape[0];
    PYC_TRY(check_array(value, spec, out.rows_));
    Array array{.value = value,
                .row_bytes = static_cast<size_t>(spec.bytes / out.batch_rows_),
                .buffer = {},
                .shape = spec.shape};
    PYC_ASSIGN(array.buffer, AlignedBuffer::create(static_cast<size_t>(spec.bytes)));
    out.arrays_.push_back(std::move(array));
    arrays.erase(found);
  }
  if (!arrays.empty()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("the data has {}, which neither the model nor the loss takes",
                              names_of(arrays)));
  }
  if (out.rows_ < out.batch_rows_) {
    return Status(Code::kInvalidArgument, fmt::format("the data has {} rows, a batch takes {}",
                                                      out.rows_, out.batch_rows_));
  }
  out.views_.resize(out.arrays_.size());
  return out;
}

void Dataset::order_pass(int64_t pass) {
  if (!seed_ || ordered_ == pass) return;
  order_.resize(static_cast<size_t>(rows_));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  for (int64_t i = rows_ - 1; i > 0; --i) {
    const int64_t other = draw_below(*seed_, pass, i, i + 1);
    std::swap(order_[static_cast<size_t>(i)], order_[static_cast<size_t>(other)]);
  }
  ordered_ = pass;
}

std::span<const runtime::TensorView> Dataset::batch(int64_t position) {
  order_pass(position / batches());
  const int64_t first = position % batches() * batch_rows_;
  for (size_t a = 0; a < arrays_.size(); ++a) {
    Array& array = arrays_[a];
    for (int64_t i = 0; i < batch_rows_ && array.row_bytes > 0; ++i) {
      const int64_t row = seed_ ? order_[static_cast<size_t>(first + i)] : first + i;
      std::memcpy(array.buffer.data() + static_cast<size_t>(i) * array.row_bytes,
                  array.value.bytes.data() + static_cast<size_t>(row) * array.row_bytes,
                  array.row_bytes);
    }
    views_[a] = {.data = array.buffer.data(),
                 .dtype = array.value.dtype,
                 .shape = array.shape,
                 .bytes = static_cast<int64_t>(array.buffer.size())};
  }
  return views_;
}

}  // namespace pyc::train
