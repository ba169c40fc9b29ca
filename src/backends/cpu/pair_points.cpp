#include "backends/cpu/pair_points.h"

#include <algorithm>

#include "loop/renamed.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::kNone;
using loop::Op;
using loop::VarId;

namespace {

// Shorter rows are worked off faster in other ways; in longer ones the wait is not seen.
constexpr int64_t kShortestRow = 64;
constexpr int64_t kLongestRow = 4096;

bool is_row_loop(const loop::Kernel& kernel, const loop::Stmt& s) {
  if (s.kind != loop::StmtKind::kLoop) return false;
  const loop::Loop& l = kernel.loops[s.index];
  return l.vector && l.chunk_var == kNone && l.extent >= kShortestRow && l.extent <= kLongestRow &&
         std::all_of(l.body.begin(), l.body.end(),
                     [](const loop::Stmt& inner) { return inner.kind == loop::StmtKind::kStore; });
}

bool has_form(const loop::Kernel& kernel) {
  return kernel.parallel.size() == 1 && kernel.parallel_size() % 2 == 0 &&
         kernel.parallel_size() > 0 && kernel.checks.empty() && waits_of(kernel) > 0 &&
         std::all_of(kernel.body.begin(), kernel.body.end(),
                     [&](const loop::Stmt& s) { return is_row_loop(kernel, s); });
}

// Adds one point's stores and reductions of `from` to the loop `to`.
void add_point(const loop::Kernel& kernel, const loop::Loop& from, loop::Renamed& point,
               bool new_results, loop::Kernel& out, loop::Loop& to) {
  for (const loop::Stmt& s : from.body) {
    const loop::Store& store = kernel.stores[s.index];
    to.body.push_back({loop::StmtKind::kStore, static_cast<uint32_t>(out.stores.size())});
    out.stores.push_back({point.buffer(store.buffer), point(store.offset), point(store.value)});
  }
  for (loop::Reduction r : from.reductions) {
    r.value = point(r.value);
    r.value2 = point(r.value2);
    r.guard = point(r.guard);
    if (new_results) {
      const loop::Var result = out.pool.var_info(r.result);
      const VarId other = out.pool.new_var(result.name, result.dtype, result.extent);
      point.set_var(r.result, out.pool.var(other));
      r.result = other;
    }
    to.reductions.push_back(r);
  }
}

}  // namespace

int waits_of(const loop::Kernel& kernel) {
  int waits = 0;
  for (size_t i = 0; i + 1 < kernel.body.size(); ++i) {
    const loop::Stmt& s = kernel.body[i];
    if (s.kind == loop::StmtKind::kLoop && !kernel.loops[s.index].reductions.empty()) ++waits;
  }
  return waits;
}

std::optional<loop::Kernel> pair_points(const loop::Kernel& kernel) {
  if (!has_form(kernel)) return std::nullopt;
  loop::Kernel out;
  out.name = kernel.name;
  out.pool = kernel.pool;
  out.buffers = kernel.buffers;
  const VarId old = kernel.parallel[0];
  const loop::Var info = kernel.pool.var_info(old);
  const VarId pair = out.pool.new_var(info.name, info.dtype, info.extent / 2);
  out.parallel = {pair};
  const ExprId first = out.pool.binary(Op::kMul, out.pool.var(pair), out.pool.integer(2));
  loop::Renamed even(out.pool);
  loop::Renamed odd(out.pool);
  even.set_var(old, first);
  odd.set_var(old, out.pool.binary(Op::kAdd, first, out.pool.integer(1)));
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    if (kernel.buffers[b].access != loop::Access::kScratch) continue;
    odd.set_buffer(static_cast<uint32_t>(b), static_cast<uint32_t>(out.buffers.size()));
    out.buffers.push_back(kernel.buffers[b]);
  }
  for (const loop::Stmt& s : kernel.body) {
    const loop::Loop& from = kernel.loops[s.index];
    loop::Loop to = from;
    to.body.clear();
    to.reductions.clear();
    add_point(kernel, from, even, false, out, to);
    add_point(kernel, from, odd, true, out, to);
    out.body.push_back({loop::StmtKind::kLoop, static_cast<uint32_t>(out.loops.size())});
    out.loops.push_back(std::move(to));
  }
  return out;
}

}  // namespace pyc::cpu
