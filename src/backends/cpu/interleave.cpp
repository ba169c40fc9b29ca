#include "backends/cpu/interleave.h"

#include <algorithm>
#include <functional>

#include "loop/renamed.h"
#include "loop/walk.h"

namespace pyc::cpu {
namespace {

using loop::ExprId;
using loop::kNone;
using loop::Op;
using loop::StmtKind;
using loop::VarId;

// So many rows are interleaved at most.
constexpr int64_t kMost = 4;
// Points that become the loop: no more, so that enough are left for threads.
constexpr int64_t kFewestPoints = 32;
constexpr int64_t kMostPoints = 256;

bool only_stores(const loop::Kernel& kernel) {
  if (!kernel.checks.empty() || kernel.scratch_bytes() != 0 || kernel.body.size() != 1)
    return false;
  if (kernel.body[0].kind != StmtKind::kLoop) return false;
  const loop::Loop& l = kernel.loops[kernel.body[0].index];
  return l.vector && !l.ordered && l.chunk_var == kNone && l.reductions.empty() &&
         l.carries.empty() && std::ranges::all_of(l.body, [](const loop::Stmt& s) {
           return s.kind == StmtKind::kStore;
         });
}

// What the variable itself is divided by in loads; 0 where that is nothing or several numbers.
int64_t divisor_in_loads(const loop::Kernel& kernel, const loop::Loop& l) {
  const loop::Pool& pool = kernel.pool;
  int64_t found = 0;
  bool one = true;
  loop::Walk in_offsets(pool);
  loop::Walk in_values(pool);
  const auto divides = [&](ExprId, const loop::ExprNode& n) {
    if (n.op != Op::kFloorDiv && n.op != Op::kFloorMod) return;
    const loop::ExprNode& x = pool.node(n.a);
    if (x.op != Op::kVar || static_cast<VarId>(x.imm) != l.var) return;
    const auto by = static_cast<int64_t>(pool.node(n.b).word);
    one = one && (found == 0 || found == by);
    found = by;
  };
  for (const loop::Stmt& s : l.body) {
    in_values(kernel.stores[s.index].value, [&](ExprId, const loop::ExprNode& n) {
      if (n.op == Op::kLoad) in_offsets(n.a, divides);
    });
  }
  return one ? found : 0;
}

// Elements from a value of the variable to the next; 0 where that is not one number.
int64_t stride_along(const loop::Pool& pool, ExprId offset, VarId var) {
  const loop::Affine sum = loop::affine_of(pool, offset);
  for (const auto& [atom, coefficient] : sum.terms) {
    if (pool.node(atom).op != Op::kVar && loop::depends_on(pool, atom, var)) return 0;
  }
  return sum.coefficient(pool, var);
}

// Whether more is gained than lost where the variable is taken apart: what it is divided in lies
// together then, and what did so no longer does. Every second element is loaded as a vector too.
bool gains_by_digits(const loop::Kernel& kernel, const loop::Loop& l, int64_t by) {
  const loop::Pool& pool = kernel.pool;
  int64_t gained = 0;
  int64_t lost = 0;
  loop::Walk walk(pool);
  for (const loop::Stmt& s : l.body) {
    walk(kernel.stores[s.index].value, [&](ExprId, const loop::ExprNode& n) {
      if (n.op != Op::kLoad || !loop::depends_on(pool, n.a, l.var)) return;
      const int64_t stride = stride_along(pool, n.a, l.var);
      gained += stride == 0 ? 1 : 0;
      lost += stride == 1 ? 1 : 0;
    });
  }
  return by == 2 ? gained >= lost : lost == 0;
}

// Whether neighbouring points read neighbours, and all of a point's elements are written together.
bool lies_in_planes(const loop::Kernel& kernel, const loop::Loop& l, VarId point) {
  const loop::Pool& pool = kernel.pool;
  bool planes = false;
  loop::Walk walk(pool);
  for (const loop::Stmt& s : l.body) {
    const loop::Store& store = kernel.stores[s.index];
    if (stride_along(pool, store.offset, l.var) != 1) return false;
    if (stride_along(pool, store.offset, point) != l.extent) return false;
    walk(store.value, [&](ExprId, const loop::ExprNode& n) {
      if (n.op != Op::kLoad) return;
      const int64_t apart = stride_along(pool, n.a, l.var);
      planes = planes || (apart != 0 && apart != 1 && stride_along(pool, n.a, point) == 1);
    });
  }
  return planes;
}

// What stands for the loop's variable and, where points become the loop, for theirs.
struct Places {
  ExprId old;
  ExprId point = kNone;
};

// The kernel with a loop over `extent` values of a new variable, which has each store `count`
// times; at(pool, row, i) says where the i-th is.
loop::Kernel rebuilt(const loop::Kernel& kernel, int64_t extent, int64_t count, VarId point,
                     const std::function<Places(loop::Pool&, ExprId row, int64_t i)>& at) {
  const loop::Loop& from = kernel.loops[kernel.body[0].index];
  loop::Kernel out;
  out.name = kernel.name;
  out.pool = kernel.pool;
  out.buffers = kernel.buffers;
  out.parallel = kernel.parallel;
  loop::Loop to = from;
  to.var = out.pool.new_var("i", DType::kI64, extent);
  to.extent = extent;
  to.body.clear();
  for (const loop::Stmt& s : from.body) {
    for (int64_t i = 0; i < count; ++i) {
      const Places places = at(out.pool, out.pool.var(to.var), i);
      loop::Renamed renamed(out.pool);
      renamed.set_var(from.var, places.old);
      if (places.point != kNone) renamed.set_var(point, places.point);
      const loop::Store& store = kernel.stores[s.index];
      to.body.push_back({StmtKind::kStore, static_cast<uint32_t>(out.stores.size())});
      out.stores.push_back({store.buffer, renamed(store.offset), renamed(store.value)});
    }
  }
  out.loops.push_back(std::move(to));
  out.body.push_back({StmtKind::kLoop, 0});
  return out;
}

std::optional<loop::Kernel> by_digits(const loop::Kernel& kernel, const loop::Loop& l) {
  const int64_t by = divisor_in_loads(kernel, l);
  if (by < 2 || by > kMost || l.extent % by != 0) return std::nullopt;
  if (!gains_by_digits(kernel, l, by)) return std::nullopt;
  return rebuilt(kernel, l.extent / by, by, kNone, [&](loop::Pool& pool, ExprId row, int64_t i) {
    const ExprId first = pool.binary(Op::kMul, row, pool.integer(by));
    return Places{.old = pool.binary(Op::kAdd, first, pool.integer(i))};
  });
}

std::optional<loop::Kernel> by_points(const loop::Kernel& kernel, const loop::Loop& l) {
  if (l.extent < 2 || l.extent > kMost || kernel.parallel.empty()) return std::nullopt;
  const VarId point = kernel.parallel.back();
  const loop::Var info = kernel.pool.var_info(point);
  if (!lies_in_planes(kernel, l, point)) return std::nullopt;
  int64_t together = kMostPoints;
  while (together >= kFewestPoints && info.extent % together != 0) --together;
  if (together < kFewestPoints) return std::nullopt;
  loop::Kernel out = kernel;
  const VarId block = out.pool.new_var(info.name, info.dtype, info.extent / together);
  out.parallel.back() = block;
  return rebuilt(out, together, l.extent, point, [&](loop::Pool& pool, ExprId row, int64_t i) {
    const ExprId first = pool.binary(Op::kMul, pool.var(block), pool.integer(together));
    return Places{.old = pool.integer(i), .point = pool.binary(Op::kAdd, first, row)};
  });
}

}  // namespace

std::optional<loop::Kernel> interleave(const loop::Kernel& kernel) {
  if (!only_stores(kernel)) return std::nullopt;
  const loop::Loop& l = kernel.loops[kernel.body[0].index];
  auto made = by_digits(kernel, l);
  return made ? std::move(made) : by_points(kernel, l);
}

}  // namespace pyc::cpu
