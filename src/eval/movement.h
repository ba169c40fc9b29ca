#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/convert.h"
#include "loop/loop.h"

namespace pyc::eval {

// A kernel that only moves elements, as copies of boxes by strides. Bits are those of the
// interpreter.
class Movement {
 public:
  // None where the kernel does more than that, or moves elements in no fixed strides.
  static std::optional<Movement> of(const loop::Kernel& kernel);

  // `buffers` as the kernel has them.
  void run(std::span<void* const> buffers) const;

 private:
  friend class MovementFinder;

  struct Dim {
    int64_t extent = 1;
    int64_t from = 0;  // strides, in elements
    int64_t to = 0;
  };
  struct Copy {
    uint32_t source = loop::kNone;  // a buffer; kNone: every element is `fill`
    Word fill = 0;
    int64_t from = 0;  // offsets, in elements
    int64_t to = 0;
    std::vector<Dim> dims;
  };
  void copy(const Copy& c, size_t dim, const std::byte* from, std::byte* to) const;

  std::vector<Copy> copies_;
  uint32_t target_ = 0;
  DType dtype_ = DType::kF32;
  std::optional<Word> nan_;  // what every NaN becomes
};

}  // namespace pyc::eval
