#pragma once

// Kernels whose points each run one vector loop of short reductions in lanes and stores of their
// results: windows, reduced over their taps. There is one such loop, so that no term of it depends
// on the result of another.

#include <algorithm>

#include "loop/loop.h"

namespace pyc::cpu {

// Steps of the longest such reduction.
inline constexpr int64_t kMaxTaps = 64;

inline bool is_short_reduction(const loop::Loop& l) {
  return !l.vector && l.chunk_var == loop::kNone && l.extent > 0 && l.extent <= kMaxTaps &&
         l.body.empty() && l.carries.empty() &&
         std::all_of(l.reductions.begin(), l.reductions.end(), [&](const loop::Reduction& r) {
           const bool one_segment = r.segment == 0 || l.extent <= r.segment;
           return r.kind == loop::ReduceKind::kExact ||
                  (r.kind == loop::ReduceKind::kChain && r.op == loop::ReduceOp::kSum &&
                   one_segment);
         });
}

// Whether a term is skipped at times or is found by taking the step apart.
inline bool is_window(const loop::Kernel& kernel, const loop::Loop& l) {
  return std::any_of(l.reductions.begin(), l.reductions.end(), [&](const loop::Reduction& r) {
    if (r.guard != loop::kNone) return true;
    const loop::ExprNode& n = kernel.pool.node(r.value);
    if (n.op != loop::Op::kLoad) return false;
    if (n.b != loop::kNone) return true;
    const auto& terms = loop::affine_of(kernel.pool, n.a).terms;
    return std::any_of(terms.begin(), terms.end(), [&](const auto& term) {
      return kernel.pool.node(term.first).op != loop::Op::kVar;
    });
  });
}

inline bool is_window_kernel(const loop::Kernel& kernel) {
  if (kernel.parallel.empty() || !kernel.checks.empty() || kernel.body.size() != 1) return false;
  if (kernel.body[0].kind != loop::StmtKind::kLoop) return false;
  const loop::Loop& l = kernel.loops[kernel.body[0].index];
  if (!l.vector || l.ordered || l.chunk_var != loop::kNone || !l.reductions.empty()) return false;
  bool windows = false;
  int loops = 0;
  for (const loop::Stmt& s : l.body) {
    if (s.kind == loop::StmtKind::kCheck) return false;
    if (s.kind != loop::StmtKind::kLoop) continue;
    if (++loops > 1 || !is_short_reduction(kernel.loops[s.index])) return false;
    windows |= is_window(kernel, kernel.loops[s.index]);
  }
  return windows;
}

}  // namespace pyc::cpu
