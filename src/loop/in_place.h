#pragma once

// Which results a kernel may write over what it reads.

#include <cstdint>
#include <vector>

namespace pyc::loop {

struct Kernel;

// Buffers of a kernel: one only read, one written.
struct InPlacePair {
  uint32_t read = 0;
  uint32_t written = 0;
  bool operator==(const InPlacePair&) const = default;
};

// Whether the kernel computes the same when both buffers are the same memory: they have one dtype
// and as many elements, no parallel point loads what another one stores, and within a point every
// load of an element comes before its store or belongs to the storing statement. What cannot be
// proven is false. One pair may be in place at a time for each read and each written buffer.
bool may_be_in_place(const Kernel& kernel, const InPlacePair& pair);

// All such pairs, by written buffer, then by read one.
std::vector<InPlacePair> in_place_pairs(const Kernel& kernel);

// Those of them whose read buffer is loaded by the storing statements alone, at the very offset
// they store to: true in whatever order elements are computed.
std::vector<InPlacePair> pointwise_pairs(const Kernel& kernel);

}  // namespace pyc::loop
