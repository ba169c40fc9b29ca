#include "backends/cpu/point_blocks.h"

#include "backends/cpu/window_kernel.h"
#include "loop/renamed.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::kNone;
using loop::Op;
using loop::StmtKind;
using loop::VarId;

namespace {

// Adds one point's reductions to the loops `to`, one for each of `from`'s, and its stores to
// `stores`.
void add_block_point(const loop::Kernel& kernel, const loop::Loop& from, loop::Renamed& point,
                     loop::Kernel& out, std::vector<loop::Loop>& to,
                     std::vector<loop::Stmt>& stores) {
  size_t at = 0;
  for (const loop::Stmt& s : from.body) {
    if (s.kind == StmtKind::kStore) {
      const loop::Store& store = kernel.stores[s.index];
      stores.push_back({StmtKind::kStore, static_cast<uint32_t>(out.stores.size())});
      out.stores.push_back({store.buffer, point(store.offset), point(store.value)});
      continue;
    }
    for (loop::Reduction r : kernel.loops[s.index].reductions) {
      r.value = point(r.value);
      r.value2 = point(r.value2);
      r.guard = point(r.guard);
      const loop::Var result = out.pool.var_info(r.result);
      const VarId own = out.pool.new_var(result.name, result.dtype, result.extent);
      point.set_var(r.result, out.pool.var(own));
      r.result = own;
      to[at].reductions.push_back(r);
    }
    ++at;
  }
}

}  // namespace

std::optional<loop::Kernel> block_points(const loop::Kernel& kernel, int count) {
  if (!is_window_kernel(kernel) || kernel.scratch_bytes() != 0) return std::nullopt;
  const VarId old = kernel.parallel.back();
  const loop::Var info = kernel.pool.var_info(old);
  if (info.extent % count != 0) return std::nullopt;
  loop::Kernel out;
  out.name = kernel.name;
  out.pool = kernel.pool;
  out.buffers = kernel.buffers;
  out.parallel = kernel.parallel;
  out.parallel.back() = out.pool.new_var(info.name, info.dtype, info.extent / count);
  const ExprId first =
      out.pool.binary(Op::kMul, out.pool.var(out.parallel.back()), out.pool.integer(count));
  const loop::Loop& from = kernel.loops[kernel.body[0].index];
  std::vector<loop::Loop> reductions;
  for (const loop::Stmt& s : from.body) {
    if (s.kind != StmtKind::kLoop) continue;
    reductions.push_back(kernel.loops[s.index]);
    reductions.back().reductions.clear();
  }
  std::vector<loop::Stmt> stores;
  for (int i = 0; i < count; ++i) {
    loop::Renamed point(out.pool);
    point.set_var(old, out.pool.binary(Op::kAdd, first, out.pool.integer(i)));
    add_block_point(kernel, from, point, out, reductions, stores);
  }
  loop::Loop all = from;
  all.body.clear();
  for (loop::Loop& l : reductions) {
    all.body.push_back({StmtKind::kLoop, static_cast<uint32_t>(out.loops.size())});
    out.loops.push_back(std::move(l));
  }
  all.body.insert(all.body.end(), stores.begin(), stores.end());
  out.body.push_back({StmtKind::kLoop, static_cast<uint32_t>(out.loops.size())});
  out.loops.push_back(std::move(all));
  return out;
}

}  // namespace pyc::cpu
