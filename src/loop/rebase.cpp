#include "loop/rebase.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "loop/renamed.h"
#include "loop/walk.h"

namespace pyc::loop {
namespace {

// Every place of the kernel that names an expression.
std::vector<ExprId*> roots_of(Kernel& kernel, std::span<ExprId* const> others) {
  std::vector<ExprId*> roots(others.begin(), others.end());
  for (Store& s : kernel.stores) {
    roots.push_back(&s.offset);
    roots.push_back(&s.value);
  }
  for (Check& c : kernel.checks) roots.push_back(&c.ok);
  for (Loop& l : kernel.loops) {
    for (Reduction& r : l.reductions) {
      for (ExprId* e : {&r.value, &r.value2, &r.guard}) roots.push_back(e);
    }
    for (Carry& c : l.carries) {
      for (ExprId* e : {&c.init, &c.next}) roots.push_back(e);
    }
  }
  std::erase_if(roots, [](const ExprId* e) { return *e == kNone; });
  return roots;
}

// From the first to the last.
struct Elements {
  int64_t lo;
  int64_t hi;
};

// The range of an offset where `guard` holds, as far as comparisons of variables with constants
// tell. Without a guard: everywhere.
class GuardedRange {
 public:
  GuardedRange(const Pool& pool, ExprId guard) : pool_(pool) {
    if (guard != kNone) assume(guard);
  }

  Elements of(ExprId offset) const {
    const ExprNode& whole = pool_.node(offset);
    if (known_.empty() || whole.lo == kMin || whole.hi == kMax) return {whole.lo, whole.hi};
    const Affine sum = affine_of(pool_, offset);
    __int128 lo = sum.constant;
    __int128 hi = sum.constant;
    for (const auto& [atom, c] : sum.terms) {
      const Elements r = atom_range(atom);
      lo += static_cast<__int128>(c > 0 ? r.lo : r.hi) * c;
      hi += static_cast<__int128>(c > 0 ? r.hi : r.lo) * c;
    }
    return {static_cast<int64_t>(std::max<__int128>(lo, whole.lo)),
            static_cast<int64_t>(std::min<__int128>(hi, whole.hi))};
  }

 private:
  void assume(ExprId id) {
    const ExprNode& n = pool_.node(id);
    if (n.op == Op::kAnd) {
      assume(n.a);
      assume(n.b);
    }
    if ((n.op != Op::kLt && n.op != Op::kLe) || pool_.dtype(n.a) != DType::kI64) return;
    const int64_t less = n.op == Op::kLt ? 1 : 0;
    const ExprNode& a = pool_.node(n.a);
    const ExprNode& b = pool_.node(n.b);
    if (a.op == Op::kVar && b.op == Op::kConst && b.lo != kMin) {
      known_.push_back({n.a, {a.lo, b.lo - less}});
    }
    if (a.op == Op::kConst && b.op == Op::kVar && a.lo != kMax) {
      known_.push_back({n.b, {a.lo + less, b.hi}});
    }
  }

  Elements atom_range(ExprId atom) const {
    Elements r{pool_.node(atom).lo, pool_.node(atom).hi};
    for (const auto& [var, range] : known_) {
      if (var == atom) r = {std::max(r.lo, range.lo), std::min(r.hi, range.hi)};
    }
    return r;
  }

  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

  const Pool& pool_;
  std::vector<std::pair<ExprId, Elements>> known_;  // of variables
};

// The elements of a buffer that loads can reach.
struct Reach {
  bool loaded = false;
  bool fixed = false;  // some load may not be within the buffer, and no guard is there to say so
  int64_t lo = 0;
  int64_t hi = 0;
};

class Survey {
 public:
  explicit Survey(const Kernel& kernel)
      : kernel_(kernel), walk_(kernel.pool), reach(kernel.buffers.size()) {}

  void visit(ExprId e) {
    walk_(e, [this](ExprId, const ExprNode& n) {
      if (n.op == Op::kLoad) take(n);
    });
  }

 private:
  void take(const ExprNode& load) {
    const auto buffer = static_cast<size_t>(load.imm);
    const int64_t elements = kernel_.buffers[buffer].elements;
    Elements at = GuardedRange(kernel_.pool, load.b).of(load.a);
    // A guard leaves out what is not within the buffer.
    if (load.b != kNone) at = {std::max<int64_t>(at.lo, 0), std::min(at.hi, elements - 1)};
    Reach& r = reach[buffer];
    r.fixed = r.fixed || at.lo < 0 || at.lo > at.hi || at.hi >= elements;
    r.lo = r.loaded ? std::min(r.lo, at.lo) : at.lo;
    r.hi = r.loaded ? std::max(r.hi, at.hi) : at.hi;
    r.loaded = true;
  }

  const Kernel& kernel_;
  Walk walk_;

 public:
  std::vector<Reach> reach;
};

}  // namespace

std::vector<int64_t> rebase(Kernel& kernel, std::span<ExprId* const> others) {
  std::vector<int64_t> begins(kernel.buffers.size(), 0);
  const std::vector<ExprId*> roots = roots_of(kernel, others);
  Survey survey(kernel);
  for (const ExprId* root : roots) survey.visit(*root);
  for (size_t i = 0; i < begins.size(); ++i) {
    const Reach& r = survey.reach[i];
    Buffer& b = kernel.buffers[i];
    if (b.access != Access::kRead || !r.loaded || r.fixed) continue;
    begins[i] = r.lo;
    b.elements = r.hi - r.lo + 1;
  }
  if (std::all_of(begins.begin(), begins.end(), [](int64_t begin) { return begin == 0; })) {
    return begins;
  }
  Renamed renamed(kernel.pool);
  for (size_t i = 0; i < begins.size(); ++i) {
    if (begins[i] != 0) renamed.set_begin(static_cast<uint32_t>(i), begins[i]);
  }
  for (ExprId* root : roots) *root = renamed(*root);
  return begins;
}

}  // namespace pyc::loop
