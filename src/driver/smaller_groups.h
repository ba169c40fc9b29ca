#pragma once

// Other groups of a model, for less memory than its usual ones take, or the same in less time. Bits
// are the same.

#include <functional>
#include <set>
#include <string>

#include "base/decision.h"
#include "driver/front.h"
#include "plan/plan.h"

namespace pyc::driver {

// Groups and their kernels with a plan of them, or why there is none.
struct Planned {
  Grouped grouped;
  plan::PlanOptions options;
  Result<plan::ExecutionPlan> plan;
};

// The canonical graph lowered and planned as the options of the compile say, with values of these
// names kept apart (LowerOptions::keep_apart).
using Replan = std::function<Result<Planned>(const ir::VerifiedGraph& canonical,
                                             const std::set<std::string>& apart)>;

// For memory_first: rows go through chains of products in parts (passes/split_rows.h), if the arena
// is smaller by more than parts are worth. Under a budget that steps run again for, or that is not
// kept: sums of products are stored instead of what is made of them, if that keeps the budget in
// less time, or a smaller one. `planned` stays where nothing does better.
Status find_smaller_groups(const CompileOptions& options, const Replan& replan, Planned& planned,
                           DecisionLog& log);

// A group that sums a product and keeps several values made of the sum, and not the sum, can give
// these up only by summing again. The names of the first such value of each group: with these kept
// apart the sum is stored, of which all can be made again.
std::set<std::string> made_of_sums(const lower::LoweredGraph& lowered);

}  // namespace pyc::driver
