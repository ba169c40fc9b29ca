#pragma once

#include <optional>

#include "base/dyn_value.h"
#include "base/status.h"

namespace pyc::host {

struct SuppressionSpec {
  DynValue boxes;    // [batches, boxes, 4]
  DynValue scores;   // [batches, classes, boxes]
  int64_t most = 0;  // boxes kept per batch and class
  double overlap = 0.0;
  std::optional<double> score;  // what a box's score must be over
  bool centered = false;        // x, y, width, height instead of two corners y, x
};
// Keeps boxes by falling score that do not overlap one kept before (intersection over union above
// `overlap`): i64[kept, 3] with batch, class and box.
Result<DynValue> suppress_overlaps(const SuppressionSpec& spec);

}  // namespace pyc::host
