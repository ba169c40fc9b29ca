#pragma once

// Everything up to the plan: what a compile and those that show its stages have in common.

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/decision.h"
#include "base/trace.h"
#include "driver/compile_options.h"
#include "driver/select.h"
#include "ir/graph.h"
#include "lower/types.h"
#include "plan/types.h"
#include "runtime/model.h"

namespace pyc::driver {

class Policies;

// The graph as groups, each with the kernel that was chosen for it.
struct Grouped {
  ir::VerifiedGraph canonical;
  lower::LoweredGraph lowered;
  Selection selection;
  const backends::Backend* backend;
  backends::BackendOptions backend_options;
};

struct Front {
  ir::VerifiedGraph given;
  ir::VerifiedGraph canonical;
  lower::LoweredGraph lowered;
  Selection selection;
  plan::ExecutionPlan plan;
  const backends::Backend* backend;
  backends::BackendOptions backend_options;
  DecisionLog log;
  runtime::CompileBreakdown times;
};

// Nanoseconds since the last call: those of a stage, which goes into the trace.
class Lap {
 public:
  explicit Lap(TraceLog* trace) : trace_(trace) {}
  int64_t operator()(const char* stage) {
    const int64_t before = last_;
    if (trace_ != nullptr) trace_->add_span(stage, before);
    last_ = now_ns();
    return last_ - before;
  }

 private:
  TraceLog* trace_;
  int64_t last_ = now_ns();
};

// When a compile has to be over. It is asked between stages and before each kernel is made, and
// refuses, so that the program is the same or there is none.
class TimeLimit {
 public:
  explicit TimeLimit(const CompileOptions& o) : budget_ms_(o.compile_budget_ms) {}

  Status check(std::string_view stage) const {
    if (budget_ms_ < 0 || (now_ns() - start_) / 1'000'000 < budget_ms_) return {};
    return {Code::kBudgetExceeded,
            fmt::format("compile_budget_ms: expected the compile to be over within {} ms, found it "
                        "still at the stage '{}'; allow more, or leave it out",
                        budget_ms_, stage)};
  }

 private:
  int64_t budget_ms_;
  int64_t start_ = now_ns();
};

Result<Grouped> group_graph(const ir::VerifiedGraph& given, const CompileOptions& o,
                            const TimeLimit& limit, const Policies& policies, DecisionLog& log,
                            runtime::CompileBreakdown& times);
Result<Front> plan_graph(ir::VerifiedGraph given, const CompileOptions& o, const TimeLimit& limit);

}  // namespace pyc::driver
