#pragma once

// What values and nodes must have in common for one to be lowered as the other was. Private to
// lower/.

#include <algorithm>
#include <vector>

#include "ir/facts.h"
#include "ir/rules.h"
#include "lower/stage.h"

namespace pyc::lower {

// Compares by all that ops' `lower` and their reads see; who reads or makes what is the caller's.
class Same {
 public:
  // All outlive this.
  Same(const ir::Graph& graph, const std::vector<bool>& inlined, const Layouts& layouts,
       const Orders& orders)
      : graph_(graph), inlined_(inlined), layouts_(layouts), orders_(orders) {}

  bool values(ir::ValueId a, ir::ValueId b) const {
    const ir::Value& x = graph_.value(a);
    const ir::Value& y = graph_.value(b);
    if (x.type != y.type || layouts_.of(a) != layouts_.of(b) || inlined_[a] != inlined_[b] ||
        is_immediate(x) != is_immediate(y)) {
      return false;
    }
    return !is_immediate(x) || x.constant->bytes == y.constant->bytes;
  }

  // But for their inputs and outputs, of which they have as many.
  bool nodes(ir::NodeId a, ir::NodeId b) const {
    const ir::Node& x = graph_.nodes[a];
    const ir::Node& y = graph_.nodes[b];
    return x.op == y.op && x.inputs.size() == y.inputs.size() &&
           x.outputs.size() == y.outputs.size() && orders_.unit(a) == orders_.unit(b) &&
           ir::same_attrs(x.attrs, y.attrs) &&
           std::ranges::equal(x.inputs, y.inputs, [this](ir::ValueId v, ir::ValueId w) {
             return ir::at_most_zero(graph_, v) == ir::at_most_zero(graph_, w);
           });
  }

 private:
  const ir::Graph& graph_;
  const std::vector<bool>& inlined_;
  const Layouts& layouts_;
  const Orders& orders_;
};

}  // namespace pyc::lower
