#pragma once

// Closing: from an open graph and what is known at one point of a run to the largest plain graph
// that can be compiled now. What cannot be closed yet waits, each node with a reason.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dyn_value.h"
#include "open/close.h"
#include "open/open_graph.h"

namespace pyc::open {

using open::OpenId;

// What is there at one point of a run.
struct State {
  const open::OpenGraph* graph = nullptr;
  std::vector<std::optional<DynValue>> values;  // by value: its content, once it has one
  std::vector<bool> constant;                   // by value: the content is the same in every run
  std::vector<bool> done;                       // by node: closed, run, or not needed
  // By value, or empty: its type is there and its content is not, before any run.
  std::vector<bool> type_only = {};
  // By value, or empty: of the graph's constants, the data that every closing takes, so that what
  // was made of it for one is found for the next.
  std::vector<std::shared_ptr<const ir::ConstData>> data = {};
};

// The state before anything ran: constants are there, nodes that no output needs are done.
State initial_state(const open::OpenGraph& graph);

// Why a node is not part of a segment.
enum class BreakReason : uint8_t {
  kHostFunction,   // it is no tensor computation
  kWaitsForValue,  // it needs the content of a value that is computed first
  kWaitsForNode,   // it reads from a node that waits itself
  kOpenRegion,     // a region of it cannot be written out
  kNotATensor,     // it reads a sequence, an optional or strings
  kComplex,        // it reads complex numbers, which no graph holds
  kNoRule,         // PyC has no meaning for its op
};
// "host_function", "waits_for_value", …: the reason code in decisions and reports.
std::string_view reason_name(BreakReason reason);

struct Break {
  uint32_t node = 0;
  BreakReason reason = BreakReason::kWaitsForNode;
  std::string detail = {};  // the value it is about
};

struct Segment {
  ir::Graph graph;              // closed; without nodes when nothing has to be computed
  std::vector<OpenId> inputs;   // the open value that is graph input i
  std::vector<OpenId> outputs;  // the open value that graph output i is
  // Values that are the same as another one, present before or an output.
  std::vector<std::pair<OpenId, OpenId>> aliases;  // (value, same as)
  std::map<OpenId, DynValue> constants;            // values known without running
  std::vector<OpenId> specialized;  // values whose content, not only type, entered the graph
  // Values of which only the type is there and whose content would have entered: with contents the
  // segment is another one.
  std::vector<OpenId> undetermined;
  std::vector<uint32_t> closed;  // nodes
  std::vector<Break> breaks;     // nodes that wait
};

// Computes a graph without inputs: the bytes of its outputs.
using Evaluate = std::function<Result<std::vector<SharedBytes>>(ir::Graph)>;

// Refuses with the code of the op's rule and the node's name when a node can never be closed.
Result<Segment> close_segment(const State& state, const ir::OpSet& ops, const Evaluate& evaluate);

// The same for a graph that is to be closed as a whole: inputs have types and no content, so that
// none is specialized, and graph inputs and outputs are those of the open graph, in its order.
Result<Segment> close_whole(const State& state, const ir::OpSet& ops, const Evaluate& evaluate);

}  // namespace pyc::open
