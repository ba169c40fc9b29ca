#pragma once

// What the option `policy` changes in a compile: the library is asked stage after stage, its
// answers are checked and put into what the stage takes. Without the option nothing happens.

#include <memory>

#include "backends/backend.h"
#include "base/decision.h"
#include "base/status.h"
#include "driver/compile_options.h"
#include "driver/select.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "policy/policy.h"

namespace pyc::driver {

class Policies {
 public:
  static Result<Policies> of(const CompileOptions& options, DecisionLog& log);

  // Fusion: LowerOptions::keep_apart.
  Status form_groups(const ir::Graph& canonical, lower::LowerOptions& options) const;
  // Kernels: other candidates of the same selection. kInvalidArgument names a group for which none
  // was chosen that may be.
  Status choose_kernels(const lower::LoweredGraph& lowered, const backends::Backend& backend,
                        const backends::BackendOptions& options, Selection& selection) const;
  // Scheduling and budgets: PlanOptions::order and memory_budget, which only gets smaller.
  Status plan(const lower::LoweredGraph& lowered, const Selection& selection, int64_t asked_budget,
              plan::PlanOptions& options, DecisionLog& log) const;

  // A refusal of what the policy chose, with its name.
  Status named(Status status) const;

 private:
  std::shared_ptr<const policy::Policy> policy_;  // null: none
};

}  // namespace pyc::driver
