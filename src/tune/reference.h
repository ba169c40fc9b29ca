#pragma once

// What a group computes by the reference interpreter: all of it where that is little work, else
// some of its points, the first and the last among them.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "lower/types.h"

namespace pyc::tune {

// Memory of values by their number.
using Memory = std::map<ir::ValueId, AlignedBuffer>;

// Seeded numbers from -1 to 1 for floats and small ones for bytes; zeros for other types, which
// are often indices.
void fill_seeded(DType dtype, std::span<std::byte> bytes, uint64_t seed);

// Whether both have the same elements; NaNs are equal, as between steps they have any bits.
bool same_elements(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b);

class Reference {
 public:
  // `inputs` has what values_of calls so.
  static Result<Reference> of(const ir::Graph& graph, const lower::Group& group,
                              const Memory& inputs);
  // Whether the outputs have what was computed here.
  bool agrees(const Memory& outputs) const;

 private:
  struct Output {
    ir::ValueId value;
    DType dtype;
    // The same points over zeros and over ones: what differs was not written.
    std::vector<std::byte> over_zeros;
    std::vector<std::byte> over_ones;
  };
  std::vector<Output> outputs_;
};

}  // namespace pyc::tune
