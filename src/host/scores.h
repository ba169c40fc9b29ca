#pragma once

// What classifiers and regressors do with the scores they found: rows of one number per class.

#include <cstdint>
#include <string>
#include <vector>

#include "base/dyn_value.h"
#include "host/elements.h"

namespace pyc::host {

enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };
// "SOFTMAX_ZERO" …; kInvalidArgument for any other name.
Result<PostTransform> post_transform_of(const std::string& name);
// Changes each row of scores.
void post_transform(PostTransform transform, int64_t columns, std::vector<double>& scores);

// The label of each row's highest score, the first of equal ones. One of the lists is empty; the
// other has a label per column.
Result<DynValue> best_labels(const std::vector<double>& scores, const Ints& ints,
                             const std::vector<std::string>& strings);

// rows x columns: input [rows, features] times the transposed weights [columns, features], plus the
// offsets (by column, or empty).
Result<std::vector<double>> linear_scores(const DynValue& input, const std::vector<double>& weights,
                                          const std::vector<double>& offsets, int64_t columns);

}  // namespace pyc::host
