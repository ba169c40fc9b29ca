#pragma once

#include <cstdint>
#include <random>

#include "base/dtype.h"
#include "paths.h"

namespace probe {

// Kinds of data, each made to stress one thing; see fill_values in data.cpp.
enum class Kind : uint8_t {
  kNormal,
  kWide,
  kCancel,
  kMixed,
  kSubnormal,
  kBottom,
  kTop,
  kAnyBits,
  kSparse,
  kEdges,
  kFloor,
};
inline constexpr Kind kKinds[] = {Kind::kNormal,    Kind::kWide,   Kind::kCancel, Kind::kMixed,
                                  Kind::kSubnormal, Kind::kBottom, Kind::kTop,    Kind::kAnyBits,
                                  Kind::kSparse,    Kind::kEdges,  Kind::kFloor};
const char* kind_name(Kind kind);
// Whether the kind reaches the decisions about the range's ends.
bool reaches_range_ends(Kind kind);

// Random finite operands and, if asked, accumulators that meet them.
Tiles random_tiles(Format format, Kind kind, int tiles, int steps, bool accumulators,
                   uint64_t seed);

// x rounded to nearest into the format's operand type, never to an infinity or NaN.
uint16_t operand_bits(pyc::DType type, double x);

}  // namespace probe
