#include "host/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace pyc::host {
namespace {

void softmax(std::span<double> row, bool keep_zeros) {
  double most = -std::numeric_limits<double>::infinity();
  for (const double v : row) most = std::max(most, v);
  double sum = 0.0;
  for (double& v : row) {
    const bool zero = keep_zeros && v == 0.0;
    v = zero ? 0.0 : std::exp(v - most);
    sum += v;
  }
  for (double& v : row) v = sum == 0.0 ? v : v / sum;
}

// The inverse of the normal distribution, by Winitzki's formula for the inverse of erf.
double probit(double p) {
  const double x = 2 * p - 1;
  const double log = std::log((1 - x) * (1 + x));
  constexpr double kA = 0.147;
  constexpr double kPi = 3.14159265358979323846;
  const double half = 2 / (kPi * kA) + log / 2;
  const double root = std::sqrt(std::sqrt(half * half - log / kA) - half);
  return std::sqrt(2.0) * (x < 0 ? -root : root);
}

}  // namespace

Result<PostTransform> post_transform_of(const std::string& name) {
  constexpr std::string_view kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const auto* const it = std::find(std::begin(kNames), std::end(kNames), name);
  if (it != std::end(kNames)) return static_cast<PostTransform>(it - std::begin(kNames));
  return Status(Code::kInvalidArgument, fmt::format("post_transform '{}' is not known", name));
}

void post_transform(PostTransform transform, int64_t columns, std::vector<double>& scores) {
  if (transform == PostTransform::kNone || columns < 1) return;
  if (transform == PostTransform::kLogistic) {
    for (double& v : scores) v = 1 / (1 + std::exp(-v));
    return;
  }
  if (transform == PostTransform::kProbit) {
    for (double& v : scores) v = probit(v);
    return;
  }
  const auto width = static_cast<size_t>(columns);
  for (size_t at = 0; at + width <= scores.size(); at += width) {
    softmax(std::span(scores).subspan(at, width), transform == PostTransform::kSoftmaxZero);
  }
}

Result<DynValue> best_labels(const std::vector<double>& scores, const Ints& ints,
                             const std::vector<std::string>& strings) {
  const auto columns = static_cast<int64_t>(std::max(ints.size(), strings.size()));
  if (columns == 0 || (!ints.empty() && !strings.empty())) {
    return Status(Code::kInvalidArgument, "expected one list of labels");
  }
  Ints best;
  const auto width = static_cast<size_t>(columns);
  for (size_t at = 0; at + width <= scores.size(); at += width) {
    const auto begin = scores.begin() + static_cast<int64_t>(at);
    best.push_back(std::max_element(begin, begin + columns) - begin);
  }
  const DynValue labels =
      strings.empty() ? DynValue::of_ints(ints) : DynValue::of_strings({columns}, strings);
  return pick(labels, {static_cast<int64_t>(best.size())}, best);
}

Result<std::vector<double>> linear_scores(const DynValue& input, const std::vector<double>& weights,
                                          const std::vector<double>& offsets, int64_t columns) {
  PYC_TRY(check_numbers(input, "input"));
  PYC_TRY(check_rank(input, 2, "input"));
  const auto rows = static_cast<size_t>(input.shape[0]);
  const auto features = static_cast<size_t>(input.shape[1]);
  if (columns < 1 || weights.size() % static_cast<size_t>(columns) != 0 ||
      weights.size() / static_cast<size_t>(columns) != features ||
      (!offsets.empty() && static_cast<int64_t>(offsets.size()) != columns)) {
    return Status(Code::kSizeMismatch,
                  fmt::format("{} weights and {} offsets do not fit {} and {} scores",
                              weights.size(), offsets.size(), input.to_string(), columns));
  }
  PYC_ASSIGN([[maybe_unused]] const int64_t count, element_count({input.shape[0], columns}));
  const std::vector<double> x = to_doubles(input);
  std::vector<double> scores;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < static_cast<size_t>(columns); ++c) {
      double sum = offsets.empty() ? 0.0 : offsets[c];
      for (size_t f = 0; f < features; ++f) sum += x[r * features + f] * weights[c * features + f];
      scores.push_back(sum);
    }
  }
  return scores;
}

}  // namespace pyc::host
