#include "lower/layout_cost.h"

#include <algorithm>

namespace pyc::lower {
namespace {

using loop::ExprId;
using loop::kNone;
using loop::Op;
using loop::Pool;
using loop::VarId;

bool is_var(const Pool& pool, ExprId id, VarId var) {
  const loop::ExprNode& n = pool.node(id);
  return n.op == Op::kVar && static_cast<VarId>(n.imm) == var;
}

// How an offset runs along a variable: by `stride`, or in some other way.
struct Run {
  int64_t stride = 0;
  bool linear = true;
};

Run run_of(const Pool& pool, ExprId offset, VarId var) {
  Run run;
  for (const auto& [atom, coefficient] : loop::affine_of(pool, offset).terms) {
    if (is_var(pool, atom, var)) {
      run.stride = coefficient;
    } else if (loop::depends_on(pool, atom, var)) {
      run.linear = false;
    }
  }
  return run;
}

// Whether a guard is left that may be false.
bool is_guarded(const Probe& p, const ProbeRead& r) {
  return r.guard != kNone && p.pool->node(r.guard).op != Op::kConst;
}

bool depends(const Probe& p, const ProbeRead& r, VarId var) {
  return loop::depends_on(*p.pool, r.offset, var) ||
         (r.guard != kNone && loop::depends_on(*p.pool, r.guard, var));
}

// Whether neighbours along the last digit of `k` lie side by side, in whole runs.
bool ends_in_run(const Probe& p, const ProbeRead& r, VarId k, int64_t run) {
  const auto& terms = loop::affine_of(*p.pool, r.offset).terms;
  return std::any_of(terms.begin(), terms.end(), [&](const auto& term) {
    const loop::ExprNode& n = p.pool->node(term.first);
    const bool whole = is_var(*p.pool, term.first, k);
    const bool digit = whole || (n.op == Op::kFloorMod && is_var(*p.pool, n.a, k));
    if (!digit || term.second != 1) return false;
    const int64_t extent =
        whole ? p.pool->var_info(k).extent : static_cast<int64_t>(p.pool->node(n.b).word);
    return extent % run == 0;
  });
}

// The factors of a product; what else it reads (a bias) is read once per element, or is one number
// (a zero point).
std::vector<const ProbeRead*> factors_of(const Probe& p) {
  std::vector<const ProbeRead*> out;
  for (const ProbeRead& r : p.reads) {
    if (r.in_reduction && r.elements > 1) out.push_back(&r);
  }
  return out;
}

// Distinct elements of a factor as the product numbers them.
double elements_of(const Probe& p, const ProbeRead& r) {
  double count = 1.0;
  for (VarId v = 0; v < p.pool->var_count(); ++v) {
    const int64_t extent = p.pool->var_info(v).extent;
    if (extent > 1 && depends(p, r, v)) count *= static_cast<double>(extent);
  }
  return count;
}

// What it takes to bring a factor into the form that tiles read.
double packing_of(const ir::Graph& graph, const Probe& p, const ProbeRead& r, VarId lanes,
                  const LayoutFacts& facts) {
  if (graph.value(r.value).kind == ir::ValueKind::kConstant) return 0.0;  // when it is compiled
  const VarId k = p.reductions[0].var;
  const bool rows = !depends(p, r, lanes);
  const bool in_runs = rows && ends_in_run(p, r, k, facts.run);
  if (in_runs && !is_guarded(p, r) && run_of(*p.pool, r.offset, k).linear) return 0.0;
  const bool together = rows ? in_runs : reads_together(p, r, lanes);
  return elements_of(p, r) * (together ? facts.packed_read : facts.strided_read);
}

double cost_of_tile(const ir::Graph& graph, const Probe& p, VarId lanes, const LayoutFacts& facts) {
  double cost = static_cast<double>(p.domain()) * facts.tile_product;
  for (const ProbeRead* r : factors_of(p)) cost += packing_of(graph, p, *r, lanes, facts);
  return cost;
}

double cost_of_read(const ir::Graph& graph, const Probe& p, const ProbeRead& r, VarId lanes,
                    const LayoutFacts& facts) {
  // Constants are given the order that suits their reader.
  bool together = graph.value(r.value).kind == ir::ValueKind::kConstant || lanes == kNone ||
                  reads_together(p, r, lanes);
  for (const ProbeReduction& k : p.reductions) {
    together |= k.kind != loop::ReduceKind::kChain && run_of(*p.pool, r.offset, k.var).stride == 1;
  }
  return static_cast<double>(r.in_reduction ? p.domain() : p.elements) *
         (together ? facts.read : facts.strided_read);
}

// Whether threads can share out the terms: they lie side by side and may be added in parts.
bool is_shared_out(const Probe& p, const ProbeReduction& k) {
  return k.kind != loop::ReduceKind::kChain &&
         std::any_of(p.reads.begin(), p.reads.end(), [&](const ProbeRead& r) {
           return r.in_reduction && !r.guarded && run_of(*p.pool, r.offset, k.var).stride == 1;
         });
}

}  // namespace

VarId innermost_var(const Probe& p) {
  for (const auto& [atom, coefficient] : loop::affine_of(*p.pool, p.linear).terms) {
    if (coefficient == 1 && p.pool->node(atom).op == Op::kVar) {
      return static_cast<VarId>(p.pool->node(atom).imm);
    }
  }
  return kNone;
}

bool reads_together(const Probe& p, const ProbeRead& r, VarId var) {
  const Run run = run_of(*p.pool, r.offset, var);
  if (!run.linear || run.stride < 0 || run.stride > 1) return false;
  if (r.guard == kNone || !loop::depends_on(*p.pool, r.guard, var)) return true;
  // A guard of the lanes alone cuts the loop in parts; one that also depends on the step does not.
  return std::none_of(p.reductions.begin(), p.reductions.end(), [&](const ProbeReduction& k) {
    return loop::depends_on(*p.pool, r.guard, k.var);
  });
}

bool is_product(const Probe& p) {
  return p.reductions.size() == 1 && p.reductions[0].product && p.reads.size() >= 2;
}

bool is_tile(const Probe& p, VarId lanes) {
  if (!is_product(p) || lanes == kNone) return false;
  const auto factors = factors_of(p);
  return factors.size() == 2 && depends(p, *factors[0], lanes) != depends(p, *factors[1], lanes);
}

double cost_of(const ir::Graph& graph, const Probe& p, const LayoutFacts& facts) {
  if (p.is_view() || p.elements == 0) return 0.0;
  const VarId lanes = innermost_var(p);
  double cost = static_cast<double>(p.elements) * facts.read;  // what it writes
  const bool tile = is_tile(p, lanes);
  if (tile) cost += cost_of_tile(graph, p, lanes, facts);
  for (const ProbeRead& r : p.reads) {
    if (!tile || !r.in_reduction) cost += cost_of_read(graph, p, r, lanes, facts);
  }
  for (const ProbeReduction& k : p.reductions) {
    if (!tile && !is_shared_out(p, k)) cost += static_cast<double>(k.extent) * facts.step;
  }
  return cost;
}

}  // namespace pyc::lower
