#pragma once

// What of a model could not be compiled whole: how many nodes, which, why.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/decision.h"
#include "base/status.h"
#include "exec/executor.h"
#include "open/open_graph.h"
#include "open/segment.h"

namespace pyc::session {

struct BreakReport {
  int64_t nodes = 0;     // of the model's graph that an output needs; regions count as their node
  int64_t compiled = 0;  // of those: the ones that become code
  int64_t breaks = 0;  // nodes that end a segment: run on the host, without a rule, or waiting for
                       // content that is computed
  bool open_shapes =
      false;  // no run was seen and types are not known: these are the certain breaks
  std::map<std::string, int64_t> ops = {};  // breaks by op; "unknown": ops without a rule
  // The first break in the order of the nodes; "" when there is none.
  std::string first_node = {};
  std::string first_op = {};
  std::string first_reason = {};
  std::string summary = {};  // one line for people

  // compiled / nodes; 1 for a model without nodes. NaN with open shapes: then `compiled` is no more
  // than a bound, and a run will show.
  double compilability_score() const;
  Decision decision() const;
};

using exec::Breaks;

BreakReport report_breaks(const open::OpenGraph& graph, const Breaks& breaks,
                          bool open_shapes = false);
// A model that is one program.
BreakReport report_whole(int64_t nodes);

// The breaks that nodes without a rule and functions of the host make, whatever the shapes are.
Breaks certain_breaks(const open::OpenGraph& graph);
// Of the breaks found when only types were known, those that a run has too: contents of inputs are
// there when it runs.
Breaks breaks_of(const open::OpenGraph& graph, const std::vector<open::Break>& found);

}  // namespace pyc::session
