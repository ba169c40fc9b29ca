#pragma once

// How much memory reading a model may take: in proportion to the file, so that a small file cannot
// ask for much. The limit that is promised is 4 times the file and 64 MiB; the mapping of the file
// is one of the four, and what allocators add has to fit too.

#include <cstddef>

namespace pyc::onnx {

class MemoryBudget {
 public:
  explicit MemoryBudget(size_t file_bytes) : left_(3 * file_bytes + kFixed) {}
  // Whether there is that much left; takes it if so.
  [[nodiscard]] bool take(size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  static constexpr size_t kFixed = size_t{48} << 20;
  size_t left_;
};

}  // namespace pyc::onnx
