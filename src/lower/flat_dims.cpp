#include "lower/flat_dims.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "loop/walk.h"

namespace pyc::lower {
namespace {

using loop::ExprId;
using loop::ExprNode;
using loop::kNone;
using loop::Op;
using loop::Pool;
using loop::VarId;

// How a kernel's expressions use the variables.
class Accesses {
 public:
  explicit Accesses(const Pool& pool) : pool_(pool), seen_(pool.size()), fixed_(pool.var_count()) {}

  void add(ExprId id) {
    if (id == kNone || seen_[id]) return;
    seen_[id] = true;
    const ExprNode& n = pool_.node(id);
    if (n.op == Op::kVar) {
      fixed_[static_cast<VarId>(n.imm)] = true;
      return;
    }
    if (n.op == Op::kLoad) {
      const loop::Affine offset = loop::affine_of(pool_, n.a);
      for (const auto& [atom, c] : offset.terms) {
        if (pool_.node(atom).op != Op::kVar) add(atom);
      }
      offsets_.push_back(offset);
    } else {
      add(n.a);
    }
    add(n.b);
    add(n.c);
  }

  // Whether all of them run through the two variables as through one, `inner` of extent `extent`.
  bool joins(VarId outer, VarId inner, int64_t extent) const {
    if (fixed_[outer] || fixed_[inner]) return false;
    return std::all_of(offsets_.begin(), offsets_.end(), [&](const loop::Affine& offset) {
      return offset.coefficient(pool_, outer) == offset.coefficient(pool_, inner) * extent;
    });
  }

 private:
  const Pool& pool_;
  std::vector<bool> seen_;             // by expression
  std::vector<loop::Affine> offsets_;  // of loads
  std::vector<bool> fixed_;            // by variable: used otherwise than in a linear offset
};

void add_stored(const loop::Kernel& kernel, Accesses& out) {
  for (const loop::Store& s : kernel.stores) out.add(s.value);
  for (const loop::Check& c : kernel.checks) out.add(c.ok);
}

void add_reduced(const loop::Kernel& kernel, Accesses& out) {
  for (const loop::Loop& l : kernel.loops) {
    for (const loop::Reduction& r : l.reductions) {
      for (const ExprId e : {r.value, r.value2, r.guard}) out.add(e);
    }
  }
}

// The dims with neighbours d and d + 1 joined where `joins` says so.
template <class Joins>
ir::Shape joined(const ir::Shape& dims, const Joins& joins) {
  ir::Shape out;
  for (size_t d = dims.size(); d-- > 0;) {
    if (d + 1 < dims.size() && joins(d)) {
      out.front() *= dims[d];
    } else {
      out.insert(out.begin(), dims[d]);
    }
  }
  return out;
}

// What an operand sees of a variable: nothing, all of it, or only its quotient by `divisor`.
struct View {
  bool used = false;
  bool whole = false;
  int64_t divisor = 0;

  bool in_pieces() const { return used && !whole; }
};

View view_of(const Pool& pool, std::initializer_list<ExprId> exprs, VarId v) {
  View view;
  loop::Walk walk(pool);
  const auto look = [&](ExprId, const ExprNode& n) {
    if (n.op == Op::kVar) {
      if (static_cast<VarId>(n.imm) == v) view.used = view.whole = true;
      return false;
    }
    const ExprNode* inner = n.op == Op::kFloorDiv ? &pool.node(n.a) : nullptr;
    if (inner == nullptr || inner->op != Op::kVar || static_cast<VarId>(inner->imm) != v) {
      return true;
    }
    const auto divisor = static_cast<int64_t>(pool.node(n.b).word);
    view.whole |= view.used && view.divisor != divisor;
    view.used = true;
    view.divisor = divisor;
    return false;
  };
  for (const ExprId e : exprs) walk(e, look);
  return view;
}

// The sum of products of a kernel that has just one.
const loop::Reduction* product_of(const loop::Kernel& kernel) {
  if (kernel.loops.size() != 1 || kernel.loops[0].reductions.size() != 1) return nullptr;
  const loop::Reduction& r = kernel.loops[0].reductions[0];
  return r.kind == loop::ReduceKind::kChain && r.value2 != kNone ? &r : nullptr;
}

}  // namespace

ir::Shape collapsed_dims(const FlatKernel& flat) {
  Accesses all(flat.kernel.pool);
  add_stored(flat.kernel, all);
  add_reduced(flat.kernel, all);
  return joined(flat.dims, [&](size_t d) {
    return all.joins(flat.vars[d], flat.vars[d + 1], flat.dims[d + 1]);
  });
}

ir::Shape product_dims(const FlatKernel& flat) {
  const loop::Reduction* r = product_of(flat.kernel);
  if (r == nullptr || flat.dims.empty()) return flat.dims;
  const Pool& pool = flat.kernel.pool;
  const size_t dims = flat.dims.size();
  const VarId last = flat.vars.back();
  // The second operand is the one with columns.
  ExprId a = r->value;
  ExprId b = r->value2;
  const View last_in_a = view_of(pool, {a}, last);
  if (last_in_a.whole || (last_in_a.used && !view_of(pool, {b}, last).used)) std::swap(a, b);
  const bool guards_b = r->guard != kNone && guards_columns(pool, r->guard, a, b, last);
  const ExprId a_guard = guards_b ? kNone : r->guard;
  const ExprId b_guard = guards_b ? r->guard : kNone;
  std::vector<View> in_a;
  std::vector<View> in_b;
  for (size_t d = 0; d < dims; ++d) {
    in_a.push_back(view_of(pool, {a, a_guard}, flat.vars[d]));
    in_b.push_back(view_of(pool, {b, b_guard}, flat.vars[d]));
    const View& pieces = in_a[d].in_pieces() ? in_a[d] : in_b[d];
    const View& other = in_a[d].in_pieces() ? in_b[d] : in_a[d];
    if (!pieces.in_pieces() || !other.whole || flat.dims[d] % pieces.divisor != 0) continue;
    ir::Shape cut = flat.dims;
    cut[d] = flat.dims[d] / pieces.divisor;
    cut.insert(cut.begin() + static_cast<std::ptrdiff_t>(d) + 1, pieces.divisor);
    return cut;
  }
  Accesses stored(pool);
  add_stored(flat.kernel, stored);
  Accesses all = stored;
  add_reduced(flat.kernel, all);
  size_t columns = dims;  // dims from here on are columns
  while (columns > 0 && in_b[columns - 1].used && !in_a[columns - 1].used) --columns;
  const auto is_row = [&](size_t d) { return in_a[d].used && !in_b[d].used; };
  return joined(flat.dims, [&](size_t d) {
    if (is_row(d) && is_row(d + 1)) return true;
    return (d >= columns ? stored : all).joins(flat.vars[d], flat.vars[d + 1], flat.dims[d + 1]);
  });
}

}  // namespace pyc::lower
