#pragma once

// How the elements of a stored value lie in memory: an order of its dims. Ops, reductions and the
// canonical graph number elements logically and never see it; linearize and delinearize alone turn
// an index into a place in memory and back.

#include <functional>
#include <vector>

#include "base/decision.h"
#include "base/status.h"
#include "ir/graph.h"
#include "lower/types.h"

namespace pyc::lower {

// Dims from the one that changes slowest to the one whose neighbours are neighbours in memory.
// Empty: row-major, the order of the shape.
using Layout = std::vector<int>;

// By value; those at the end that are missing are row-major.
class Layouts {
 public:
  const Layout& of(ir::ValueId v) const { return v < orders_.size() ? orders_[v] : kRowMajor; }
  bool is_row_major(ir::ValueId v) const { return of(v).empty(); }
  void set(ir::ValueId v, Layout order);

 private:
  static const Layout kRowMajor;
  std::vector<Layout> orders_;
};

// Chooses before groups are formed. Only inner values may get an order: constants, and results that
// are no output of the graph. What comes in or goes out (inputs, outputs, slots, carried and
// donated values) is row-major.
using LayoutChooser = std::function<Layouts(const ir::Graph& graph, const LayoutFacts& facts)>;

// The choice that costs least by the target's facts, with one decision for each set of values that
// depend on one another: channels last (the dim behind the first one moves to the end) or row-major
// for results, any order for constants. None where no product gains by it. `probe_alike_once`: see
// probe.h.
Layouts choose_layouts(const ir::Graph& graph, const LayoutFacts& facts, DecisionLog& log,
                       bool probe_alike_once = true);

bool may_have_layout(const ir::Graph& graph, ir::ValueId v);
// That every order is a permutation of the value's dims, and only inner values have one.
Status verify_layouts(const ir::Graph& graph, const Layouts& layouts);
// The graph with the elements of its constants where their layouts have them, their types as they
// were: what reads a constant of it is a kernel that knows its layout.
Result<ir::VerifiedGraph> place_constants(const ir::VerifiedGraph& graph, const Layouts& layouts);

// The shape as it lies in memory: its dims in the layout's order.
ir::Shape in_memory(const ir::Shape& shape, const Layout& layout);

}  // namespace pyc::lower
