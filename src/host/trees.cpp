#include "host/trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  PYC_ASSIGN([[maybe_unused]] const int64_t count, element_count({rows, forest.targets}));
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

}  // namespace pyc::host
