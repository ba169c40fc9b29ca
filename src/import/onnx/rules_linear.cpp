
#include <algorithm>

#include "host/elements.h"
#include "host/scores.h"
#include "import/onnx/host_rules.h"
#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

Result<host::PostTransform> transform_of(const HostCall& call) {
  return host::post_transform_of(call.attr_string("post_transform", "NONE"));
}

Status linear_regressor(HostCall& call) {
  const DynValue& x = input_of(call, 0);
  const int64_t targets = call.attr_int("targets", 1);
  PYC_ASSIGN(const host::PostTransform transform, transform_of(call));
  PYC_ASSIGN(std::vector<double> scores,
             host::linear_scores(x, attr_floats(call, "coefficients"),
                                 attr_floats(call, "intercepts"), targets));
  host::post_transform(transform, targets, scores);
  return give(call, host::tensor_of(DType::kF32, {x.shape[0], targets}, scores));
}

Status linear_classifier(HostCall& call) {
  const DynValue& x = input_of(call, 0);
  const Ints ints = attr_ints(call, "classlabels_ints");
  const std::vector<std::string> strings = attr_strings(call, "classlabels_strings");
  const auto classes = static_cast<int64_t>(std::max(ints.size(), strings.size()));
  if (classes < 2) return {Code::kUnsupported, "a classifier needs two classes at least"};
  const std::vector<double> weights = attr_floats(call, "coefficients");
  PYC_TRY(host::check_rank(x, 2, "input"));
  // One row of weights for two classes: the other class has the opposite score.
  const bool one_row = classes == 2 && static_cast<int64_t>(weights.size()) == x.shape[1];
  PYC_ASSIGN(const host::PostTransform transform, transform_of(call));
  PYC_ASSIGN(
      std::vector<double> scores,
      host::linear_scores(x, weights, attr_floats(call, "intercepts"), one_row ? 1 : classes));
  if (one_row) {
    std::vector<double> both;
    for (const double s : scores) both.insert(both.end(), {-s, s});
    scores = std::move(both);
  }
  host::post_transform(transform, classes, scores);
  PYC_ASSIGN(DynValue labels, host::best_labels(scores, ints, strings));
  PYC_ASSIGN(DynValue table, host::tensor_of(DType::kF32, {x.shape[0], classes}, scores));
  call.set_output(0, std::move(labels));
  call.set_output(1, std::move(table));
  return {};
}

constexpr Rule kLinearRules[] = {
    {"LinearClassifier", nullptr, linear_classifier, 1, kMl},
    {"LinearRegressor", nullptr, linear_regressor, 1, kMl},
};

}  // namespace

Rules linear_rules() { return kLinearRules; }

}  // namespace pyc::onnx
