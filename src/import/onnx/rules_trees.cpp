#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "host/elements.h"
#include "host/scores.h"
#include "host/trees.h"
#include "import/onnx/host_rules.h"
#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

constexpr std::string_view kTreesDomain = "ai.onnx.ml";
using host::Forest;

Status sizes_differ(std::string_view what) {
  return {Code::kSizeMismatch, fmt::format("the lists {} are not of one length", what)};
}

// A tensor attribute as doubles; empty when it is not there.
Result<std::vector<double>> tensor_attr(HostCall& call, std::string_view name) {
  const auto* tensor = call.attr<DynValue>(name);
  if (tensor == nullptr) return std::vector<double>();
  PYC_TRY(host::check_numbers(*tensor, name));
  return to_doubles(*tensor);
}

// A list of floats, or the tensor that takes its place.
Result<std::vector<double>> floats_or_tensor(HostCall& call, const std::string& name) {
  std::vector<double> floats = attr_floats(call, name);
  if (!floats.empty()) return floats;
  return tensor_attr(call, name + "_as_tensor");
}

Result<DynValue> scores_tensor(const std::vector<double>& scores, int64_t rows, int64_t columns,
                               DType dtype) {
  return host::tensor_of(dtype, {rows, columns}, scores);
}

// Inner nodes come first in the forest, leaves after them.
Result<size_t> place_of(int64_t index, bool leaf, size_t nodes, size_t leaves) {
  if (index < 0 || static_cast<size_t>(index) >= (leaf ? leaves : nodes)) {
    return Status(Code::kInvalidArgument, fmt::format("branch {} is out of range", index));
  }
  return static_cast<size_t>(index) + (leaf ? nodes : 0);
}

// Sets of members, one per node that asks for one, with a NaN after each.
Status read_members(const std::vector<double>& values, Forest& forest) {
  size_t at = 0;
  for (Forest::Node& node : forest.nodes) {
    if (node.mode != Forest::Mode::kMember) continue;
    for (; at < values.size() && !std::isnan(values[at]); ++at) node.members.push_back(values[at]);
    if (at >= values.size()) return {Code::kInvalidArgument, "a set of members is missing"};
    ++at;
    std::sort(node.members.begin(), node.members.end());
  }
  return {};
}

Result<Forest> read_forest(HostCall& call) {
  const Ints features = attr_ints(call, "nodes_featureids");
  const Ints true_at = attr_ints(call, "nodes_truenodeids");
  const Ints false_at = attr_ints(call, "nodes_falsenodeids");
  const Ints true_leaf = attr_ints(call, "nodes_trueleafs");
  const Ints false_leaf = attr_ints(call, "nodes_falseleafs");
  const Ints missing = attr_ints(call, "nodes_missing_value_tracks_true");
  const Ints leaf_targets = attr_ints(call, "leaf_targetids");
  PYC_ASSIGN(const std::vector<double> splits, tensor_attr(call, "nodes_splits"));
  PYC_ASSIGN(const std::vector<double> modes, tensor_attr(call, "nodes_modes"));
  PYC_ASSIGN(const std::vector<double> leaf_weights, tensor_attr(call, "leaf_weights"));
  PYC_ASSIGN(const std::vector<double> members, tensor_attr(call, "membership_values"));
  const size_t nodes = features.size();
  const size_t leaves = leaf_targets.size();
  for (const size_t n : {true_at.size(), false_at.size(), true_leaf.size(), false_leaf.size(),
                         splits.size(), modes.size()}) {
    if (n != nodes) return sizes_differ("nodes_…");
  }
  if (leaf_weights.size() != leaves) return sizes_differ("leaf_…");
  if (!missing.empty() && missing.size() != nodes) return sizes_differ("nodes_…");
  Forest forest;
  for (size_t i = 0; i < nodes; ++i) {
    if (!(modes[i] >= 0 && modes[i] < static_cast<double>(Forest::Mode::kLeaf))) {
      return Status(Code::kInvalidArgument, fmt::format("mode {} is not known", modes[i]));
    }
    Forest::Node node;
    node.mode = static_cast<Forest::Mode>(modes[i]);
    node.feature = features[i];
    node.split = splits[i];
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    PYC_ASSIGN(node.if_true, place_of(true_at[i], true_leaf[i] != 0, nodes, leaves));
    PYC_ASSIGN(node.if_false, place_of(false_at[i], false_leaf[i] != 0, nodes, leaves));
    forest.nodes.push_back(std::move(node));
  }
  PYC_TRY(read_members(members, forest));
  forest.nodes.resize(nodes + leaves);
  forest.votes.resize(nodes + leaves);
  for (size_t i = 0; i < leaves; ++i) {
    forest.votes[nodes + i] = {{leaf_targets[i], leaf_weights[i]}};
  }
  for (const int64_t root : attr_ints(call, "tree_roots")) {
    PYC_ASSIGN(const size_t at, place_of(root, false, nodes, leaves));
    forest.roots.push_back(at);
  }
  forest.targets = call.attr_int("n_targets", 1);
  return forest;
}

Status tree_ensemble(HostCall& call) {
  PYC_ASSIGN(const Forest forest, read_forest(call));
  const int64_t aggregate = call.attr_int("aggregate_function", 1);
  const int64_t transform = call.attr_int("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4) {
    return {Code::kInvalidArgument, "aggregate_function or post_transform is not known"};
  }
  const DynValue& x = input_of(call, 0);
  PYC_ASSIGN(std::vector<double> scores,
             host::run_forest(forest, x, static_cast<host::Aggregate>(aggregate), {}));
  host::post_transform(static_cast<host::PostTransform>(transform), forest.targets, scores);
  return give(call, scores_tensor(scores, x.shape[0], forest.targets, x.dtype));
}

Result<Forest::Mode> mode_of(std::string_view name) {
  constexpr std::string_view kNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  const auto* const it = std::find(std::begin(kNames), std::end(kNames), name);
  if (it == std::end(kNames) || name == "BRANCH_MEMBER") {
    return Status(Code::kInvalidArgument, fmt::format("mode '{}' is not known", name));
  }
  return static_cast<Forest::Mode>(it - std::begin(kNames));
}

// The older form: nodes named by tree and number, votes listed beside them under `prefix`.
Result<Forest> read_old_forest(HostCall& call, const std::string& prefix, const std::string& ids) {
  const Ints trees = attr_ints(call, "nodes_treeids");
  const Ints numbers = attr_ints(call, "nodes_nodeids");
  const Ints features = attr_ints(call, "nodes_featureids");
  const Ints true_at = attr_ints(call, "nodes_truenodeids");
  const Ints false_at = attr_ints(call, "nodes_falsenodeids");
  const Ints missing = attr_ints(call, "nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = attr_strings(call, "nodes_modes");
  PYC_ASSIGN(const std::vector<double> splits, floats_or_tensor(call, "nodes_values"));
  const size_t count = trees.size();
  for (const size_t n : {numbers.size(), features.size(), true_at.size(), false_at.size(),
                         modes.size(), splits.size()}) {
    if (n != count) return sizes_differ("nodes_…");
  }
  if (!missing.empty() && missing.size() != count) return sizes_differ("nodes_…");
  std::map<std::pair<int64_t, int64_t>, size_t> places;
  std::set<int64_t> seen;
  Forest forest;
  forest.nodes.resize(count);
  forest.votes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    places[{trees[i], numbers[i]}] = i;
    if (seen.insert(trees[i]).second) forest.roots.push_back(i);  // a tree's first node
  }
  const auto place = [&](int64_t tree, int64_t number) -> Result<size_t> {
    const auto it = places.find({tree, number});
    if (it != places.end()) return it->second;
    return Status(Code::kInvalidArgument, fmt::format("tree {} has no node {}", tree, number));
  };
  for (size_t i = 0; i < count; ++i) {
    Forest::Node& node = forest.nodes[i];
    PYC_ASSIGN(node.mode, mode_of(modes[i]));
    if (node.mode == Forest::Mode::kLeaf) continue;
    node.feature = features[i];
    node.split = splits[i];
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    PYC_ASSIGN(node.if_true, place(trees[i], true_at[i]));
    PYC_ASSIGN(node.if_false, place(trees[i], false_at[i]));
  }
  const Ints vote_trees = attr_ints(call, prefix + "_treeids");
  const Ints vote_nodes = attr_ints(call, prefix + "_nodeids");
  const Ints vote_targets = attr_ints(call, ids);
  PYC_ASSIGN(const std::vector<double> weights, floats_or_tensor(call, prefix + "_weights"));
  if (vote_nodes.size() != vote_trees.size() || vote_targets.size() != vote_trees.size() ||
      weights.size() != vote_trees.size()) {
    return sizes_differ(prefix + "_…");
  }
  for (size_t i = 0; i < vote_trees.size(); ++i) {
    PYC_ASSIGN(const size_t at, place(vote_trees[i], vote_nodes[i]));
    forest.votes[at].push_back({vote_targets[i], weights[i]});
  }
  return forest;
}

Status tree_ensemble_regressor(HostCall& call) {
  PYC_ASSIGN(Forest forest, read_old_forest(call, "target", "target_ids"));
  forest.targets = call.attr_int("n_targets", 1);
  constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const std::string name = call.attr_string("aggregate_function", "SUM");
  const auto* const it = std::find(std::begin(kNames), std::end(kNames), name);
  if (it == std::end(kNames)) {
    return {Code::kInvalidArgument, fmt::format("aggregate_function '{}' is not known", name)};
  }
  PYC_ASSIGN(const host::PostTransform transform,
             host::post_transform_of(call.attr_string("post_transform", "NONE")));
  PYC_ASSIGN(const std::vector<double> base, floats_or_tensor(call, "base_values"));
  const DynValue& x = input_of(call, 0);
  PYC_ASSIGN(
      std::vector<double> scores,
      host::run_forest(forest, x, static_cast<host::Aggregate>(it - std::begin(kNames)), base));
  host::post_transform(transform, forest.targets, scores);
  return give(call, scores_tensor(scores, x.shape[0], forest.targets, DType::kF32));
}

// Votes for one class only: the other one gets what is left.
void complete_binary(host::PostTransform transform, int64_t voted, std::vector<double>& scores) {
  const bool probability =
      transform == host::PostTransform::kNone || transform == host::PostTransform::kProbit;
  for (size_t at = 0; at + 1 < scores.size(); at += 2) {
    const double score = scores[at + static_cast<size_t>(voted)];
    scores[at + 1] = score;
    scores[at] = probability ? 1 - score : -score;
  }
}

Status tree_ensemble_classifier(HostCall& call) {
  PYC_ASSIGN(Forest forest, read_old_forest(call, "class", "class_ids"));
  const Ints ints = attr_ints(call, "classlabels_int64s");
  const std::vector<std::string> strings = attr_strings(call, "classlabels_strings");
  forest.targets = static_cast<int64_t>(std::max(ints.size(), strings.size()));
  if (forest.targets < 2) return {Code::kUnsupported, "a classifier needs two classes at least"};
  PYC_ASSIGN(const host::PostTransform transform,
             host::post_transform_of(call.attr_string("post_transform", "NONE")));
  PYC_ASSIGN(const std::vector<double> base, floats_or_tensor(call, "base_values"));
  const DynValue& x = input_of(call, 0);
  PYC_ASSIGN(std::vector<double> scores, host::run_forest(forest, x, host::Aggregate::kSum, base));
  for (double& score : scores) score = static_cast<float>(score);  // equal ones stay equal
  const Ints ids = attr_ints(call, "class_ids");
  if (forest.targets == 2 && std::set<int64_t>(ids.begin(), ids.end()).size() == 1) {
    complete_binary(transform, ids[0], scores);
  }
  host::post_transform(transform, forest.targets, scores);
  PYC_ASSIGN(DynValue chosen, host::best_labels(scores, ints, strings));
  PYC_ASSIGN(DynValue table, scores_tensor(scores, x.shape[0], forest.targets, DType::kF32));
  call.set_output(0, std::move(chosen));
  call.set_output(1, std::move(table));
  return {};
}

constexpr Rule kTreesRules[] = {
    {"TreeEnsemble", nullptr, tree_ensemble, 1, kTreesDomain},
    {"TreeEnsembleClassifier", nullptr, tree_ensemble_classifier, 1, kTreesDomain},
    {"TreeEnsembleRegressor", nullptr, tree_ensemble_regressor, 1, kTreesDomain},
};

}  // namespace

Rules tree_rules() { return kTreesRules; }

}  // namespace pyc::onnx
