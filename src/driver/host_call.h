#pragma once

// One call of a host function during a run.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/open_graph.h"
#include "specialize/segment.h"

namespace pyc::driver {

class NodeCall final : public ir::HostCall {
 public:
  // Runs a region on inputs and captured values.
  using RunGraph = std::function<Result<std::vector<DynValue>>(
      const ir::OpenGraph&, std::vector<DynValue>, std::span<const DynValue>)>;
  // The node as a graph of its own.
  using Alone = std::function<const ir::OpenGraph&()>;

  NodeCall(const ir::OpenNode& node, const specialize::State& state, RunGraph run, Alone alone)
      : node_(node),
        state_(state),
        run_(std::move(run)),
        alone_(std::move(alone)),
        outputs_(node.outputs.size()) {}

  const ir::OpenNode& node() const override { return node_; }
  const DynValue& input(size_t i) const override;
  void set_output(size_t i, DynValue value) override;
  Result<std::vector<DynValue>> run_region(std::string_view attr_name,
                                           std::vector<DynValue> inputs) override;
  Result<std::vector<DynValue>> run_node(std::vector<DynValue> inputs) override;

  std::optional<DynValue>& output(size_t i) { return outputs_[i]; }

 private:
  const ir::OpenNode& node_;
  const specialize::State& state_;
  RunGraph run_;
  Alone alone_;
  std::vector<std::optional<DynValue>> outputs_;
  DynValue absent_;
};

// The node as a graph whose inputs are those it has and whose outputs are those it gives.
ir::OpenGraph graph_of_node(const ir::OpenNode& node);

}  // namespace pyc::driver
