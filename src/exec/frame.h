#pragma once

// A frame: what one run of an open graph holds at one moment. Values that are there and still
// needed, nodes that are done. What is the same in every run of a graph is in its table.

#include <cstdint>
#include <span>
#include <vector>

#include "base/dyn_value.h"
#include "open/open_graph.h"
#include "open/segment.h"

namespace pyc::exec {

using open::OpenId;

class GraphTable {
 public:
  // `graph` outlives this.
  explicit GraphTable(const open::OpenGraph& graph);

  const open::OpenGraph& graph() const { return *start_.graph; }
  // What a node reads, captures of its regions included; none absent.
  std::span<const OpenId> reads(uint32_t node) const {
    return std::span(reads_).subspan(begin_[node], begin_[node + 1] - begin_[node]);
  }
  // Before anything ran: constants are there, nodes that no output needs are done.
  const open::State& start() const { return start_; }
  // By value: reads by nodes that are not done at the start, and one for an output of the graph.
  const std::vector<uint32_t>& uses() const { return uses_; }

 private:
  open::State start_;
  std::vector<OpenId> reads_;
  std::vector<size_t> begin_;  // of each node's reads, and the end
  std::vector<uint32_t> uses_;
};

// Types of all values that are there and follow from no constant: what programs are made for. Of
// other values than tensors it is enough what they are.
using Signature = std::vector<int64_t>;

class Frame {
 public:
  // The table outlives this.
  explicit Frame(const GraphTable& table) : table_(table) {}

  const GraphTable& table() const { return table_; }
  const open::OpenGraph& graph() const { return table_.graph(); }

  // For so many values no more memory is asked for.
  void reserve(size_t values) { slots_.reserve(values); }
  // The content of a value; null when it is not there.
  const DynValue* find(OpenId value) const;
  // A value that nothing reads is not kept. `constant`: the same in every run.
  void set(OpenId value, DynValue content, bool constant = false);
  // A tensor whose content is not there is only a type: for looking ahead of any run.
  static bool is_type(const DynValue& value) {
    return value.is_tensor() && value.bytes.empty() && value.elements() != 0;
  }

  bool is_done(uint32_t node) const { return done()[node]; }
  // The node ran or became code; values that only it still read are let go.
  void finish(uint32_t node);
  // Whether every output of the graph is there.
  bool complete() const;
  // Output i of the graph, once it is complete, in ascending order of i: the frame may not have it
  // any longer.
  DynValue give(size_t output);

  bool reads_present(uint32_t node) const;
  Signature signature() const;
  // All of it as closing takes it.
  open::State state() const;

 private:
  struct Slot {
    OpenId value = 0;
    bool constant = false;
    DynValue content;
  };
  Slot* slot(OpenId value);
  const std::vector<bool>& done() const { return counts_ ? done_ : table_.start().done; }
  const std::vector<uint32_t>& uses() const { return counts_ ? uses_ : table_.uses(); }

  const GraphTable& table_;
  std::vector<Slot> slots_;  // by value, ascending
  // The table's, until a node is finished: a run that is one program counts nothing.
  bool counts_ = false;
  std::vector<bool> done_;
  std::vector<uint32_t> uses_;
};

// The values of a signature for a message: "x f32[2,3], n i64[]".
std::string describe(const open::OpenGraph& graph, const Signature& signature);

}  // namespace pyc::exec
