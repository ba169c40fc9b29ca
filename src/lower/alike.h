#pragma once

// Groups that are one another but for which values they read and write, as the layers of a model
// have them: the first is built, the others are made of it. Private to lower/.

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lower/groups.h"

namespace pyc::lower {

// Two groups are alike when all that build_group reads is the same for both: ops, attributes,
// types, layouts, orders, constants of one element, what is known of inputs (ir/facts.h), and what
// is read through, stored and an output. Names are put in afterwards. What larger constants hold is
// not compared: a group that was built by looking at it is not offered here, nor one with faults,
// whose messages name nodes.
class BuiltGroups {
 public:
  // All outlive this; `built` are the groups that became of the plans so far.
  BuiltGroups(const ir::Graph& graph, const Grouping& grouping, const std::vector<Group>& built)
      : graph_(graph), grouping_(grouping), built_(built) {}

  struct Made {
    Group group;  // complete but for its name
    std::string why_not;
  };
  // Made of one that is there; nothing when none is like it.
  std::optional<Made> find(const GroupPlan& plan) const;
  // The last of the groups is what became of `plan`, and may be taken for others. `why_not` is what
  // build_group said.
  void offer(const GroupPlan& plan, std::string why_not);

 private:
  struct Offered {
    const GroupPlan* plan;
    size_t group;
    std::string why_not;
  };

  const ir::Graph& graph_;
  const Grouping& grouping_;
  const std::vector<Group>& built_;
  std::unordered_multimap<uint64_t, Offered> offered_;  // asked, never gone through
};

}  // namespace pyc::lower
