#pragma once

// A look at one node: what its element expression reads, and how. Grouping decides by this, so it
// needs to know nothing about ops.

#include <memory>
#include <unordered_map>
#include <vector>

#include "lower/stage.h"

namespace pyc::lower {

struct ProbeRead {
  ir::ValueId value;
  uint32_t number;      // what loads in the probe's pool call it
  int64_t elements;     // of the value
  loop::ExprId offset;  // its place in memory, in the probe's pool
  bool guarded;
  bool in_reduction;
  loop::ExprId guard = loop::kNone;
};

struct ProbeReduction {
  loop::ReduceKind kind;
  int64_t extent;        // all axes together
  loop::VarId var;       // the flattened index over them
  bool product = false;  // of two factors
};

struct Probe {
  // Probes that are alike share one. What is added to it changes nothing that is in it.
  std::shared_ptr<loop::Pool> pool = std::make_shared<loop::Pool>();
  loop::ExprId linear = loop::kNone;  // the output element's place in memory
  loop::ExprId result = loop::kNone;
  int64_t elements = 0;  // of the output
  std::vector<ProbeRead> reads;
  std::vector<ProbeReduction> reductions;

  // Elements the node touches per input at most: outputs times reduction extents.
  int64_t domain() const;
  // The result is one unguarded load: the node only moves data.
  bool moves_data() const;
  // … of this value; null when it does not move data. Others may be read for nothing.
  const ProbeRead* source() const;
  // … and it moves every element to where it already is: another name or shape of its input.
  bool is_view() const;
  bool pointwise() const { return reductions.empty(); }
};

// Lowers output `output` of `node` once. Producers marked in `inlined` (by value) are read through.
Probe probe_node(const ir::Graph& graph, ir::NodeId node, int output,
                 const std::vector<bool>& inlined, const Layouts& layouts = {},
                 const Orders& orders = {});

// The probes of a graph's values with the producers in `inlined` read through, each made once. Two
// that are one another but for the values they read are lowered once: all that ops' `lower` and
// their reads see is compared, and nothing stands for it. What it is given must stay as it is.
class Probes {
 public:
  // Without `share` each is lowered by itself.
  Probes(const ir::Graph& graph, const std::vector<bool>& inlined, const Layouts& layouts,
         const Orders& orders, bool share);

  // Of a value that a node with `lower` makes.
  Probe& of(ir::ValueId v);

 private:
  uint64_t hash(ir::ValueId v) const;

  const ir::Graph& graph_;
  const std::vector<bool>& inlined_;
  const Layouts& layouts_;
  const Orders& orders_;
  bool share_;
  std::vector<std::unique_ptr<Probe>> made_;                // by value, once it was asked for
  std::unordered_multimap<uint64_t, ir::ValueId> lowered_;  // no two are alike; never gone through
};

}  // namespace pyc::lower
