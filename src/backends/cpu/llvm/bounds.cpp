#include "backends/cpu/llvm/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "loop/function.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::ExprNode;
using loop::kNone;
using loop::Op;
using loop::VarId;

namespace {

// Whether `element` is what some iteration of a loop gives to one of its reductions as `value`: the
// same expression, with a variable of no larger extent in place of the loop's.
class Occurrence {
 public:
  Occurrence(const loop::Kernel& kernel, const loop::Loop& l) : k_(kernel), loop_(l) {}

  bool is(ExprId value, ExprId element) {
    const ExprNode& a = k_.pool.node(value);
    const ExprNode& b = k_.pool.node(element);
    if (b.op == Op::kLoad && is_kept(value, b)) return true;
    if (a.op != b.op || a.dtype != b.dtype || a.word != b.word) return false;
    if (a.op == Op::kVar) return is_var(static_cast<VarId>(a.imm), static_cast<VarId>(b.imm));
    if (a.imm != b.imm) return false;
    if (a.op == Op::kLoad) {
      const bool constant =
          k_.buffers[static_cast<size_t>(a.imm)].access == loop::Access::kRead && a.b == kNone;
      return constant && b.b == kNone && is_sum(a.a, b.a);
    }
    const auto part = [this](ExprId x, ExprId y) {
      return x == kNone || y == kNone ? x == y : is(x, y);
    };
    return part(a.a, b.a) && part(a.b, b.b) && part(a.c, b.c);
  }

 private:
  bool is_var(VarId a, VarId b) {
    if (a != loop_.var) return a == b;
    if (other_ == kNone) other_ = b;
    const int64_t extent = k_.pool.var_info(b).extent;
    return other_ == b && extent != loop::kResult && extent <= loop_.extent;
  }

  // The same sum with the loop's variable replaced. Terms are listed by age, so that the two
  // variables need not be at the same place.
  bool is_sum(ExprId a, ExprId b) {
    const loop::Affine x = loop::affine_of(k_.pool, a);
    loop::Affine y = loop::affine_of(k_.pool, b);
    if (x.constant != y.constant || x.terms.size() != y.terms.size()) return false;
    int64_t coefficient = 0;
    for (const auto& term : x.terms) {
      const ExprNode& atom = k_.pool.node(term.first);
      if (atom.op == Op::kVar && static_cast<VarId>(atom.imm) == loop_.var) {
        coefficient = term.second;
      } else if (erase(y.terms, term) == 0 || loop::depends_on(k_.pool, term.first, loop_.var)) {
        return false;
      }
    }
    if (coefficient == 0) return true;
    const ExprNode& atom = k_.pool.node(y.terms[0].first);
    return y.terms[0].second == coefficient && atom.op == Op::kVar &&
           is_var(loop_.var, static_cast<VarId>(atom.imm));
  }

  // Whether `load` reads what the loop keeps of `value` in scratch memory.
  bool is_kept(ExprId value, const ExprNode& load) {
    const auto buffer = static_cast<uint32_t>(load.imm);
    if (k_.buffers[buffer].access != loop::Access::kScratch || load.b != kNone) return false;
    const auto writes = [buffer](const loop::Store& s) { return s.buffer == buffer; };
    if (std::count_if(k_.stores.begin(), k_.stores.end(), writes) != 1) return false;
    return std::any_of(loop_.body.begin(), loop_.body.end(), [&](const loop::Stmt& s) {
      if (s.kind != loop::StmtKind::kStore) return false;
      const loop::Store& store = k_.stores[s.index];
      return writes(store) && store.value == value && is_sum(store.offset, load.a);
    });
  }

  const loop::Kernel& k_;
  const loop::Loop& loop_;
  VarId other_ = kNone;
};

bool is_maximum_over(const loop::Kernel& kernel, VarId result, ExprId element) {
  for (const loop::Loop& l : kernel.loops) {
    if (l.chunk_var != kNone) continue;
    for (const loop::Reduction& r : l.reductions) {
      if (r.result != result) continue;
      return r.kind == loop::ReduceKind::kExact && r.op == loop::ReduceOp::kMax &&
             r.guard == kNone && Occurrence(kernel, l).is(r.value, element);
    }
  }
  return false;
}

struct FloatRange {
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
};

// Where a float lies unless it is NaN, as far as its last operations tell.
FloatRange range_of(const loop::Pool& pool, ExprId id) {
  const ExprNode& n = pool.node(id);
  switch (n.op) {
    case Op::kCall:
      return {loop::callee(pool, n).lo, loop::callee(pool, n).hi};
    case Op::kNeg: {
      const FloatRange r = range_of(pool, n.a);
      return {-r.hi, -r.lo};
    }
    case Op::kAbs: {
      const FloatRange r = range_of(pool, n.a);
      return {0.0, std::max(std::abs(r.lo), std::abs(r.hi))};
    }
    default:
      return {};
  }
}

bool is_not_positive(const ExprNode& n) {
  return n.op == Op::kConst && word_to_double(n.word, n.dtype) <= 0.0;
}

}  // namespace

bool never_positive(const loop::Kernel& kernel, ExprId id) {
  const ExprNode& n = kernel.pool.node(id);
  if (!is_float(n.dtype)) return false;
  if (range_of(kernel.pool, id).hi <= 0.0) return true;
  if (n.op == Op::kMax) {
    return is_not_positive(kernel.pool.node(n.b)) && never_positive(kernel, n.a);
  }
  if (n.op != Op::kSub || kernel.pool.node(n.b).op != Op::kVar) return false;
  return is_maximum_over(kernel, static_cast<VarId>(kernel.pool.node(n.b).imm), n.a);
}

bool has_no_effect(const loop::Kernel& kernel, ExprId id) {
  const ExprNode& n = kernel.pool.node(id);
  if ((n.op != Op::kMin && n.op != Op::kMax) || !is_float(n.dtype)) return false;
  const ExprNode& bound = kernel.pool.node(n.b);
  if (bound.op != Op::kConst) return false;
  const double c = word_to_double(bound.word, bound.dtype);
  if (n.op == Op::kMin && c > 0.0 && never_positive(kernel, n.a)) return true;
  // Of two zeros min and max choose by the sign, which a range does not tell.
  if (c == 0.0) return false;
  const FloatRange r = range_of(kernel.pool, n.a);
  return n.op == Op::kMin ? r.hi <= c : r.lo >= c;
}

}  // namespace pyc::cpu
