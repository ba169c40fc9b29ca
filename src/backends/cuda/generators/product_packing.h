#pragma once

// A constant operand in the order that tiles read it: term by term, the rows of each side by side.
// For weights of convolutions, whose terms lie far apart. Private to the generator.

#include <optional>
#include <string>

#include "backends/backend.h"
#include "base/status.h"
#include "lower/types.h"
#include "runtime/program.h"

namespace pyc::cuda {

struct ProductPacking {
  bool of_a = true;
  uint32_t buffer = 0;   // of the group's kernel: its place is taken
  int64_t length = 0;    // floats from one term to the next: the rows, up to a multiple of four
  int64_t matrices = 1;  // one for each index of the batch that the operand depends on
  std::string text;      // what the bytes depend on, but for the source's

  int64_t bytes(const lower::Contraction& c) const { return matrices * c.k * length * 4; }
};

// What is better packed; nothing if the operands lie well as they are.
std::optional<ProductPacking> product_packing(const ir::Graph& graph, const lower::Group& group);

// The group that reads the packed operand where the other had its buffer.
lower::Group with_packing(const lower::Group& group, const ProductPacking& packing);

// The packed operand of the group as it was.
Result<runtime::Parameter> pack_operand(const ir::Graph& graph, const lower::Group& group,
                                        const ProductPacking& packing);

}  // namespace pyc::cuda
