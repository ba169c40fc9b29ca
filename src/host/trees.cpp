#include "host/trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "host/elements.h"

namespace pyc::host {
namespace {

using Mode = Forest::Mode;

bool holds(const Forest::Node& node, double x) {
  if (std::isnan(x)) return node.missing_is_true;
  switch (node.mode) {
    case Mode::kLeq:
      return x <= node.split;
    case Mode::kLt:
      return x < node.split;
    case Mode::kGte:
      return x >= node.split;
    case Mode::kGt:
      return x > node.split;
    case Mode::kEq:
      return x == node.split;
    case Mode::kNeq:
      return x != node.split;
    case Mode::kMember:
      return std::binary_search(node.members.begin(), node.members.end(), x);
    case Mode::kLeaf:
      break;
  }
  return false;
}

Result<size_t> leaf_of(const Forest& forest, size_t root, std::span<const double> row) {
  size_t at = root;
  for (size_t steps = 0; steps <= forest.nodes.size(); ++steps) {
    const Forest::Node& node = forest.nodes[at];
    if (node.mode == Mode::kLeaf) return at;
    if (node.feature >= static_cast<int64_t>(row.size())) {
      return Status(Code::kInvalidArgument,
                    fmt::format("a tree asks for feature {} of {}", node.feature, row.size()));
    }
    at = holds(node, row[static_cast<size_t>(node.feature)]) ? node.if_true : node.if_false;
  }
  return Status(Code::kInvalidArgument, "a tree goes in a circle");
}

// Joins votes for one target.
class Total {
 public:
  void add(double weight, Aggregate how) {
    if (how == Aggregate::kMin) {
      value_ = any_ ? std::min(value_, weight) : weight;
    } else if (how == Aggregate::kMax) {
      value_ = any_ ? std::max(value_, weight) : weight;
    } else {
      value_ += weight;
    }
    any_ = true;
  }
  double value() const { return value_; }

 private:
  double value_ = 0.0;
  bool any_ = false;
};

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

Status check_forest(const Forest& forest) {
  constexpr int64_t kMaxTargets = int64_t{1} << 24;
  const size_t count = forest.nodes.size();
  bool good = forest.votes.size() == count && forest.targets >= 1 && forest.targets <= kMaxTargets;
  for (const size_t root : forest.roots) good = good && root < count;
  for (const Forest::Node& node : forest.nodes) {
    good = good && node.if_true < count && node.if_false < count && node.feature >= 0;
  }
  for (const auto& votes : forest.votes) {
    for (const Forest::Vote& v : votes) good = good && v.target >= 0 && v.target < forest.targets;
  }
  if (good) return {};
  return {Code::kInvalidArgument, "a node, leaf or target of the trees is out of range"};
}

Result<std::vector<double>> run_forest(const Forest& forest, const DynValue& input,
                                       Aggregate aggregate, const std::vector<double>& base) {
  PYC_TRY(check_forest(forest));
  PYC_TRY(check_numbers(input, "input"));
  PYC_TRY(check_rank(input, 2, "input"));
  const int64_t rows = input.shape[0];
  const auto features = static_cast<size_t>(input.shape[1]);
  PYC_ASSIGN([[maybe_unused]] const int64_t bytes,
             tensor_bytes(DType::kF64, {rows, forest.targets}));
  if (!base.empty() && base.size() != 1 && static_cast<int64_t>(base.size()) != forest.targets) {
    return Status(Code::kSizeMismatch,
                  fmt::format("{} targets have {} base values", forest.targets, base.size()));
  }
  const std::vector<double> values = to_doubles(input);
  std::vector<double> scores;
  for (int64_t r = 0; r < rows; ++r) {
    const auto row = std::span(values).subspan(static_cast<size_t>(r) * features, features);
    std::vector<Total> totals(static_cast<size_t>(forest.targets));
    for (const size_t root : forest.roots) {
      PYC_ASSIGN(const size_t leaf, leaf_of(forest, root, row));
      for (const Forest::Vote& v : forest.votes[leaf]) {
        totals[static_cast<size_t>(v.target)].add(v.weight, aggregate);
      }
    }
    for (size_t t = 0; t < totals.size(); ++t) {
      double score = totals[t].value();
      if (aggregate == Aggregate::kAverage && !forest.roots.empty()) {
        score /= static_cast<double>(forest.roots.size());
      }
      if (!base.empty()) score += base[base.size() == 1 ? 0 : t];
      scores.push_back(score);
    }
  }
  return scores;
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

}  // namespace pyc::host
