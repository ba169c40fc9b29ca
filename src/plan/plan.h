#pragma once

#include <span>

#include "base/effort.h"
#include "base/status.h"
#include "plan/types.h"

namespace pyc::plan {

// What a plan gives up for what. Neither changes bits.
enum class PlanMode : uint8_t {
  kBalanced,      // the order of the groups, or a greedy one where its arena is smaller
  kMemoryFirst,   // the order with the smallest arena that a search finds
  kLatencyFirst,  // as kBalanced; a budget that needs steps run again or copies is refused
};

// A budget of as little as is found to work.
inline constexpr int64_t kSmallestBudget = -2;

struct PlanOptions {
  int threads = 1;
  // Of the host: bytes of metrics.peak_bytes; -1: none; kSmallestBudget.
  int64_t memory_budget = -1;
  bool reuse = true;  // off: every arena instance gets memory of its own
  PlanMode mode = PlanMode::kBalanced;
  Effort effort = Effort::kBalanced;  // what searches may cost
  // Per group: the estimated time of one run; what is run again for the budget is chosen by it.
  // Empty or 0: by the bytes that the group moves.
  std::vector<double> group_ns = {};
  bool stream = false;                 // parameters may stay in a file for the budget (stream.h)
  bool offload = false;                // temporaries may move to the host for it (offload.h)
  std::vector<StatePair> states = {};  // inputs and outputs of one type, each in one pair at most
  // The groups in the order that their steps run in (check_order); empty: the plan chooses. A plan
  // that is over the budget chooses anyway. There are no states.
  std::vector<uint32_t> order = {};
};

// Orders the groups' steps, assigns offsets and accounts for every byte. A plan that is over the
// budget gets the order of kMemoryFirst, then steps that run again (recompute.h), then parameters
// that stay in a file (stream.h) or temporaries that wait on the host (offload.h). One that is
// still over it is refused with the smallest budget that was found to do; that one does. `needs[i]`
// is what the candidate chosen for group i asks for. The result passed verify_schedule,
// verify_allocation and check_budgets.
Result<ExecutionPlan> build_plan(const lower::LoweredGraph& lowered,
                                 std::span<const lower::KernelNeeds> needs,
                                 const PlanOptions& options);

// That the order has every group once; whether steps wait for later ones is seen by
// verify_schedule.
Status check_order(std::span<const int64_t> order, size_t groups);

// The plan executed on symbols, step by step: at every read the instance holds the value that its
// group's kernel reads, stored by a step that is known to be over; every group runs; results are
// written in place only where the step's Loop IR allows it, derived anew, or where `needs` say that
// what is read is packed before (the driver sees that in the compiled steps); what a step names
// lies in its place; at the end all queues are over and the outputs and states hold their values. A
// refusal names the step and the instance.
Status verify_schedule(const lower::LoweredGraph& lowered, const ExecutionPlan& plan,
                       std::span<const lower::KernelNeeds> needs = {});

// Every arena instance is aligned and inside its place's arena; two share bytes only if every use
// of one happens before every use of the other, or in place, and so do both instances of a state;
// uses are those of the steps; every
// instance has the class its role asks for; the metrics equal what the instances say.
Status verify_allocation(const ExecutionPlan& plan);

// Refuses with kBudgetExceeded, naming the place, its budget and its peak.
Status check_budgets(const ExecutionPlan& plan, int threads);

// The plan as text, for dumps and goldens.
std::string print(const ExecutionPlan& plan);

}  // namespace pyc::plan
