#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace pyc {

// Which numbers a run-time check accepts: first to last, and `also`. Of the tensor that holds them,
// the check reads the elements begin, begin + step, …
struct Accepted {
  int64_t first = 0;
  int64_t last = 0;
  int64_t also = first;
  int64_t begin = 0;
  int64_t step = 1;

  bool contains(int64_t v) const { return (first <= v && v <= last) || v == also; }
};

// What a kernel's fault code means. A kernel reports the code alone, so that a check costs a
// compare and nothing more; which number failed is found afterwards, in the buffer that holds them.
struct Fault {
  std::string message;  // the op, the node, what was checked and the range
  // Where the checked numbers are, if memory holds them as they were given: a buffer of the
  // kernel, the value in it and its type. -1: computed inside the kernel.
  int32_t buffer = -1;
  std::string value = {};
  DType dtype = DType::kI64;
  std::vector<int64_t> shape = {};
  Accepted accepted = {};
};

// The message, followed by the first number that was not accepted and its place. `buffers` are the
// kernel's; one that shares its memory with another may be overwritten and is not read.
std::string describe(const Fault& fault, std::span<void* const> buffers);

}  // namespace pyc
