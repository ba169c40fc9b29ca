#pragma once

// A look at one node: what its element expression reads, and how. Grouping decides by this, so it
// needs to know nothing about ops.

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
  loop::Pool pool;
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

// Whether probes of the two values, nothing read through, are one another but for the values they
// read: all that an op's `lower` and its reads see is the same for both.
bool probes_alike(const ir::Graph& graph, const Layouts& layouts, const Orders& orders,
                  ir::ValueId a, ir::ValueId b);
// Equal for such values.
uint64_t probe_hash(const ir::Graph& graph, ir::ValueId value);
// The probe of `b`, made of that of `a`.
Probe probe_like(const ir::Graph& graph, const Probe& probe, ir::ValueId a, ir::ValueId b);

}  // namespace pyc::lower
