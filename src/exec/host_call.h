#pragma once

// One call of a host function during a run.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "exec/frame.h"
#include "open/open_graph.h"

namespace pyc::exec {

class NodeCall final : public open::HostCall {
 public:
  // Runs a region on inputs and captured values.
  using RunGraph = std::function<Result<std::vector<DynValue>>(
      const open::OpenGraph&, std::vector<DynValue>, std::span<const DynValue>)>;
  // The node as a graph of its own.
  using Alone = std::function<const open::OpenGraph&()>;

  NodeCall(const open::OpenNode& node, const Frame& frame, RunGraph run, Alone alone)
      : node_(node),
        frame_(frame),
        run_(std::move(run)),
        alone_(std::move(alone)),
        outputs_(node.outputs.size()) {}

  const open::OpenNode& node() const override { return node_; }
  const DynValue& input(size_t i) const override;
  void set_output(size_t i, DynValue value) override;
  Result<std::vector<DynValue>> run_region(std::string_view attr_name,
                                           std::vector<DynValue> inputs) override;
  Result<std::vector<DynValue>> run_node(std::vector<DynValue> inputs) override;

  std::optional<DynValue>& output(size_t i) { return outputs_[i]; }

 private:
  const open::OpenNode& node_;
  const Frame& frame_;
  RunGraph run_;
  Alone alone_;
  std::vector<std::optional<DynValue>> outputs_;
  DynValue absent_;
};

// The first complex tensor among the node's inputs, all of which are there; null: none.
const DynValue* complex_input(const open::OpenNode& node, const Frame& frame);

// Whether a node that is no part of its segment runs on the host now: what it reads is there, and
// it does not become code later.
bool runs_on_host(const open::Break& why, const Frame& frame);

// The node as a graph whose inputs are those it has and whose outputs are those it gives.
open::OpenGraph graph_of_node(const open::OpenNode& node);

}  // namespace pyc::exec
