#include "loop/apart.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

namespace pyc::loop {
namespace {

uint64_t distance(int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  return a < b ? y - x : x - y;
}

// The digits [low, high) of a variable that an expression over it shows: its value is
// (variable mod high) div low. kAll stands for no upper end.
struct Digits {
  VarId var = kNone;
  int64_t low = 1;
  int64_t high = 0;
};
constexpr int64_t kAll = INT64_MAX;

Digits digits_of(const Pool& pool, ExprId e) {
  const ExprNode& n = pool.node(e);
  if (n.op == Op::kVar) return {static_cast<VarId>(n.imm), 1, kAll};
  if (n.op != Op::kFloorDiv && n.op != Op::kFloorMod) return {};
  Digits d = digits_of(pool, n.a);
  if (d.var == kNone) return {};
  const auto divisor = static_cast<int64_t>(pool.node(n.b).word);
  int64_t edge = 0;
  if (__builtin_mul_overflow(d.low, divisor, &edge)) return {};
  if (d.high != kAll && d.high % edge != 0) return {};
  (n.op == Op::kFloorDiv ? d.low : d.high) = edge;
  return d;
}

class Prover {
 public:
  explicit Prover(const Kernel& kernel) : kernel_(kernel), pool_(kernel.pool) {}

  bool apart(const Place& x, const Place& y, const std::vector<VarId>& wanted,
             const std::vector<VarId>& fixed) const {
    if (wanted.empty()) return true;
    const ExprNode& a = pool_.node(x.offset);
    const ExprNode& b = pool_.node(y.offset);
    if (a.hi < b.lo || b.hi < a.lo) return true;

    const Affine sum = affine_of(pool_, x.offset);
    const Affine sum2 = affine_of(pool_, y.offset);
    std::vector<Term> terms = joined(sum, sum2);
    // What is the same at both places: terms of one value, and those of fixed variables.
    std::erase_if(terms, [&](const Term& t) {
      if (t.lo == 0 && t.hi == 0) return true;
      if (t.atom == kNone || t.atom != t.other) return false;
      const VarId v = digits_of(pool_, t.atom).var;
      return std::find(fixed.begin(), fixed.end(), v) != fixed.end();
    });
    for (Term& t : terms) {
      const VarId v = named_var(t, x, y, wanted);
      t.names_point = std::find(wanted.begin(), wanted.end(), v) != wanted.end();
    }
    // Below the smallest term that names the point, terms need not be told apart.
    const auto named = [](const Term& t) { return t.names_point; };
    const auto lowest = std::find_if(terms.begin(), terms.end(), named);
    const auto beyond = std::find_if(terms.rbegin(), terms.rend(), named).base();
    // Whether the terms before `end` can be told apart where the rest of the difference is `span`,
    // which grows by what they reach.
    const auto separate = [&](auto end, Span& span) {
      for (auto t = terms.begin(); t != end; ++t) {
        // Above the largest of them, terms only have to leave the lower ones alone.
        if (t >= beyond && common_factor(t, terms.end()) > span.reach()) break;
        if (t >= lowest && distance(t->coefficient, 0) <= span.reach()) return false;
        if (!span.add(*t)) return false;
      }
      return true;
    };
    int64_t constants = 0;
    if (__builtin_sub_overflow(sum.constant, sum2.constant, &constants)) return false;
    // A multiple of the upper terms' common factor between the constants is one more such term.
    const uint64_t factor = common_factor(beyond, terms.end());
    const auto below = [&](int64_t rest) {
      Span span{rest, rest};
      return separate(beyond, span) && span.reach() < factor;
    };
    Span all{constants, constants};
    if (!separate(terms.end(), all)) {
      if (factor == 0 || factor > INT64_MAX) return false;
      const auto modulus = static_cast<int64_t>(factor);
      const int64_t rest = constants % modulus;
      if (!below(rest) && !below(rest < 0 ? rest + modulus : rest - modulus)) return false;
    }
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](VarId v) { return follows(v, terms, x, y, wanted); });
  }

 private:
  // One term of an offset, or of two offsets that must not meet.
  struct Term {
    int64_t coefficient = 0;
    ExprId atom = kNone;   // of the first offset, kNone if only the second has the coefficient
    ExprId other = kNone;  // of the second offset
    int64_t lo = 0;        // how far the first atom can be below the second one
    int64_t hi = 0;        // and above it
    bool names_point = false;
  };

  // What a part of the difference of two offsets can be.
  struct Span {
    int64_t lo = 0;
    int64_t hi = 0;

    uint64_t reach() const { return std::max(distance(lo, 0), distance(hi, 0)); }
    // False where it does not fit, or the term has no bound.
    bool add(const Term& t) {
      if (t.lo == INT64_MIN || t.hi == INT64_MAX) return false;
      const int64_t least = t.coefficient < 0 ? t.hi : t.lo;
      const int64_t most = t.coefficient < 0 ? t.lo : t.hi;
      int64_t down = 0;
      int64_t up = 0;
      return !__builtin_mul_overflow(t.coefficient, least, &down) &&
             !__builtin_mul_overflow(t.coefficient, most, &up) &&
             !__builtin_add_overflow(lo, down, &lo) && !__builtin_add_overflow(hi, up, &hi);
    }
  };

  static uint64_t common_factor(std::vector<Term>::const_iterator begin,
                                std::vector<Term>::const_iterator end) {
    uint64_t factor = 0;
    for (auto t = begin; t != end; ++t) factor = std::gcd(factor, distance(t->coefficient, 0));
    return factor;
  }

  // The terms of both sums by coefficient, the smallest first. Terms of one sum with equal
  // coefficients stay apart. What is always 0, a loop of one iteration, is no term: it would be
  // joined with one that is not.
  std::vector<Term> joined(const Affine& x, const Affine& y) const {
    std::vector<Term> terms;
    for (const auto& [atom, c] : x.terms) {
      const ExprNode& n = pool_.node(atom);
      if (n.lo == 0 && n.hi == 0) continue;
      terms.push_back({c, atom, kNone, n.lo, n.hi, false});
    }
    for (const auto& [atom, c] : y.terms) {
      const ExprNode& n = pool_.node(atom);
      if (n.lo == 0 && n.hi == 0) continue;
      auto match = std::find_if(terms.begin(), terms.end(), [&, c = c](const Term& t) {
        return t.coefficient == c && t.other == kNone;
      });
      if (match == terms.end()) match = terms.insert(terms.end(), {c, kNone, kNone, 0, 0, false});
      match->other = atom;
      if (__builtin_sub_overflow(match->lo, n.hi, &match->lo)) match->lo = INT64_MIN;
      if (__builtin_sub_overflow(match->hi, n.lo, &match->hi)) match->hi = INT64_MAX;
    }
    std::stable_sort(terms.begin(), terms.end(), [](const Term& s, const Term& t) {
      return distance(s.coefficient, 0) < distance(t.coefficient, 0);
    });
    return terms;
  }

  const Loop* loop_of(VarId v, const Place& place) const {
    for (uint32_t i : place.loops) {
      if (kernel_.loops[i].var == v) return &kernel_.loops[i];
    }
    return nullptr;
  }

  // The wanted variable that digits shown by the term belong to, for both accesses alike; a
  // chunked loop's variable belongs to the parallel variable that counts its chunks.
  VarId named_var(const Term& t, const Place& x, const Place& y,
                  const std::vector<VarId>& wanted) const {
    if (t.atom == kNone || t.other == kNone) return kNone;
    const Digits d = digits_of(pool_, t.atom);
    const Digits e = digits_of(pool_, t.other);
    if (d.var == kNone || e.var == kNone || d.low != e.low || d.high != e.high) return kNone;
    const auto is_one = [&](const std::vector<VarId>& vars) {
      return std::find(vars.begin(), vars.end(), d.var) != vars.end();
    };
    if (is_one(wanted) || is_one(kernel_.parallel)) return d.var == e.var ? d.var : kNone;
    const Loop* l = loop_of(d.var, x);
    const Loop* m = loop_of(e.var, y);
    if (l == nullptr || m == nullptr || l->chunk != m->chunk) return kNone;
    return l->chunk_var == m->chunk_var ? l->chunk_var : kNone;
  }

  // Whether the digits that the terms show make up the whole variable, be it the parallel variable
  // itself or the variable of one loop that it cuts into chunks.
  bool follows(VarId v, const std::vector<Term>& terms, const Place& x, const Place& y,
               const std::vector<VarId>& wanted) const {
    std::map<std::pair<VarId, VarId>, std::vector<Digits>> shown;
    for (const Term& t : terms) {
      if (!t.names_point || named_var(t, x, y, wanted) != v) continue;
      const Digits d = digits_of(pool_, t.atom);
      shown[{d.var, digits_of(pool_, t.other).var}].push_back(d);
    }
    for (auto& [vars, digits] : shown) {
      std::sort(digits.begin(), digits.end(),
                [](const Digits& s, const Digits& t) { return s.low < t.low; });
      const int64_t extent =
          std::max(pool_.var_info(vars.first).extent, pool_.var_info(vars.second).extent);
      int64_t known = 1;
      for (const Digits& d : digits) {
        if (d.low == known) known = d.high;
      }
      if (known >= extent) return true;
    }
    return false;
  }

  const Kernel& kernel_;
  const Pool& pool_;
};

}  // namespace

bool apart(const Kernel& kernel, const Place& x, const Place& y, const std::vector<VarId>& wanted,
           const std::vector<VarId>& fixed) {
  return Prover(kernel).apart(x, y, wanted, fixed);
}

}  // namespace pyc::loop
