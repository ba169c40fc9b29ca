#pragma once

// A constant operand in the order that tiles read it: term by term, the rows of each side by side,
// or row by row, the terms of each side by side. For weights of convolutions, whose terms lie far
// apart. Private to the generators.

#include <optional>
#include <string>

#include "backends/backend.h"
#include "backends/cuda/kernel_generator.h"
#include "base/status.h"
#include "lower/types.h"
#include "runtime/program.h"

namespace pyc::cuda {

enum class PackingOrder : uint8_t { kByTerms, kByRows };

struct ProductPacking {
  bool of_a = true;
  uint32_t buffer = 0;  // of the group's kernel: its place is taken
  DType dtype = DType::kF32;
  PackingOrder order = PackingOrder::kByTerms;
  int64_t lines = 0;   // terms, or rows
  int64_t length = 0;  // elements from one line to the next, a multiple of 16 bytes; +0 at the end
  int64_t matrices = 1;  // one for each index of the batch that the operand depends on
  std::string text;      // what the bytes depend on, but for the source's

  int64_t elements() const { return matrices * lines * length; }
};

// The operand as a constant of `dtype` that is read nowhere else and whose elements' places are
// sums of functions of one index each; nothing if it is none.
std::optional<ProductPacking> packing_of(const ir::Graph& graph, const lower::Group& group,
                                         bool of_a, DType dtype, PackingOrder order);

// What of an f32 product is better packed; nothing if the operands lie well as they are.
std::optional<ProductPacking> product_packing(const ir::Graph& graph, const lower::Group& group);

// The group that reads the packed operand where the other had its buffer.
lower::Group with_packing(const lower::Group& group, const ProductPacking& packing);

// Makes a candidate for `group` whose plan is for the group with the packing ask for it.
void use_packed(backends::Candidate& candidate, CudaPlan& plan, const lower::Group& group,
                const ProductPacking& packing);

}  // namespace pyc::cuda
