#pragma once

// What a node costs with values that lie in memory in given orders. Private to lower/.

#include "lower/layout.h"
#include "lower/probe.h"

namespace pyc::lower {

// The variable along which neighbours of the output lie side by side; loop::kNone if it has none.
loop::VarId innermost_var(const Probe& probe);

// Whether lanes along `var` read one element, or neighbours.
bool reads_together(const Probe& probe, const ProbeRead& read, loop::VarId var);

// Whether the node sums products of two factors.
bool is_product(const Probe& probe);

// Whether it sums products of two factors of which only one runs along `lanes`: then rows and
// columns of a register tile can be found.
bool is_tile(const Probe& probe, loop::VarId lanes);

// Nanoseconds of one thread, by the facts.
double cost_of(const ir::Graph& graph, const Probe& probe, const LayoutFacts& facts);

}  // namespace pyc::lower
