#include "loop/loop.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/hash.h"
#include "base/status.h"
#include "loop/function.h"

namespace pyc::loop {
namespace {

constexpr int64_t kMinI64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMaxI64 = std::numeric_limits<int64_t>::max();

struct Range {
  int64_t lo;
  int64_t hi;
};
constexpr Range kFullRange{kMinI64, kMaxI64};

// A range that left i64 means the value may have wrapped: nothing is known then. Requires lo <= hi.
Range checked(__int128 lo, __int128 hi) {
  if (lo < kMinI64 || hi > kMaxI64) return kFullRange;
  return {static_cast<int64_t>(lo), static_cast<int64_t>(hi)};
}

Range range_of_dtype(DType t) {
  switch (t) {
    case DType::kBool:
      return {0, 1};
    case DType::kI2:
      return {-2, 1};
    case DType::kI4:
      return {-8, 7};
    case DType::kI8:
      return {-128, 127};
    case DType::kI16:
      return {-32768, 32767};
    case DType::kI32:
      return {INT32_MIN, INT32_MAX};
    case DType::kU2:
      return {0, 3};
    case DType::kU4:
      return {0, 15};
    case DType::kU8:
      return {0, 255};
    case DType::kU16:
      return {0, 65535};
    case DType::kU32:
      return {0, UINT32_MAX};
    default:
      return kFullRange;
  }
}

int64_t floor_div_i64(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

int64_t floor_mod_i64(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

bool same(const ExprNode& x, const ExprNode& y) {
  return x.op == y.op && x.dtype == y.dtype && x.a == y.a && x.b == y.b && x.c == y.c &&
         x.imm == y.imm && x.word == y.word;
}

}  // namespace

namespace {

uint32_t hash_of(const ExprNode& n) {
  const auto pair = [](uint64_t a, uint64_t b) { return a | (b << 32); };
  const uint64_t kind = static_cast<uint64_t>(n.op) * 64 + static_cast<uint64_t>(n.dtype);
  const uint64_t operands = mix(pair(kind, n.a), pair(n.b, n.c));
  return static_cast<uint32_t>(mix(mix(operands, static_cast<uint64_t>(n.imm)), n.word));
}

}  // namespace

void Pool::grow_index() {
  constexpr size_t kFirstSlots = 64;
  std::vector<Slot> more(std::max(kFirstSlots, 2 * index_.size()));
  for (const Slot& slot : index_) {
    if (slot.id == kNone) continue;
    size_t at = slot.hash & (more.size() - 1);
    while (more[at].id != kNone) at = (at + 1) & (more.size() - 1);
    more[at] = slot;
  }
  index_ = std::move(more);
  nodes_.reserve(index_.size() / 2);
}

ExprId Pool::intern(ExprNode n) {
  if (2 * nodes_.size() >= index_.size()) grow_index();
  const uint32_t hash = hash_of(n);
  size_t at = hash & (index_.size() - 1);
  for (; index_[at].id != kNone; at = (at + 1) & (index_.size() - 1)) {
    if (index_[at].hash == hash && same(nodes_[index_[at].id], n)) return index_[at].id;
  }
  const auto id = static_cast<ExprId>(nodes_.size());
  nodes_.push_back(n);
  index_[at] = {hash, id};
  return id;
}

ExprId Pool::constant(DType t, Word word) {
  ExprNode n{.op = Op::kConst, .dtype = t, .word = word};
  const Range r = is_float(t) || t == DType::kU64
                      ? kFullRange
                      : Range{static_cast<int64_t>(word), static_cast<int64_t>(word)};
  n.lo = r.lo;
  n.hi = r.hi;
  return intern(n);
}

VarId Pool::new_var(std::string name, DType t, int64_t extent) {
  constexpr size_t kFirstVars = 8;
  if (vars_.empty()) vars_.reserve(kFirstVars);
  vars_.push_back({std::move(name), t, extent});
  return static_cast<VarId>(vars_.size() - 1);
}

ExprId Pool::var(VarId v) {
  const Var& info = vars_[v];
  ExprNode n{.op = Op::kVar, .dtype = info.dtype, .imm = v};
  const Range r = info.extent != kResult ? Range{0, std::max<int64_t>(info.extent - 1, 0)}
                                         : range_of_dtype(info.dtype);
  n.lo = r.lo;
  n.hi = r.hi;
  return intern(n);
}

ExprId Pool::load(uint32_t buffer, DType t, ExprId offset, ExprId guard, ExprId fallback) {
  PYC_CHECK((guard == kNone) == (fallback == kNone), "a guarded load needs a fallback");
  ExprNode n{.op = Op::kLoad, .dtype = t, .a = offset, .b = guard, .c = fallback, .imm = buffer};
  const Range r = range_of_dtype(t);
  n.lo = r.lo;
  n.hi = r.hi;
  return intern(n);
}

uint32_t Pool::table(DType t, std::vector<Word> words) {
  for (uint32_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].dtype == t && tables_[i].words == words) return i;
  }
  tables_.push_back({t, std::move(words)});
  return static_cast<uint32_t>(tables_.size() - 1);
}

ExprId Pool::table_load(uint32_t table, ExprId index) {
  const Range r = range_of_dtype(tables_[table].dtype);
  return intern({.op = Op::kTable,
                 .dtype = tables_[table].dtype,
                 .a = index,
                 .imm = table,
                 .lo = r.lo,
                 .hi = r.hi});
}

uint32_t Pool::function(const std::shared_ptr<const Function>& function) {
  for (uint32_t i = 0; i < functions_.size(); ++i) {
    if (same_function(*functions_[i], *function)) return i;
  }
  functions_.push_back(function);
  return static_cast<uint32_t>(functions_.size() - 1);
}

ExprId Pool::call(uint32_t function, ExprId a, ExprId b, ExprId c) {
  const ExprNode& result = functions_[function]->result();
  return intern({.op = Op::kCall,
                 .dtype = result.dtype,
                 .a = a,
                 .b = b,
                 .c = c,
                 .imm = function,
                 .lo = result.lo,
                 .hi = result.hi});
}

ExprId Pool::unary(Op op, ExprId a) {
  const DType t = dtype(a);
  if (op == Op::kNeg && t == DType::kI64) return binary(Op::kMul, a, integer(-1));
  if (op == Op::kNot && t == DType::kBool && nodes_[a].op == Op::kConst) {
    return constant(t, nodes_[a].word ^ 1);
  }
  const Range r = range_of_dtype(t);
  return intern({.op = op, .dtype = t, .a = a, .lo = r.lo, .hi = r.hi});
}

bool Pool::is_integer(ExprId id, int64_t value) const {
  const ExprNode& n = nodes_[id];
  return n.op == Op::kConst && n.dtype == DType::kI64 && static_cast<int64_t>(n.word) == value;
}

int64_t Affine::coefficient(ExprId atom) const {
  for (const auto& [id, c] : terms) {
    if (id == atom) return c;
  }
  return 0;
}

int64_t Affine::coefficient(const Pool& pool, VarId var) const {
  for (const auto& [id, c] : terms) {
    const ExprNode& n = pool.node(id);
    if (n.op == Op::kVar && static_cast<VarId>(n.imm) == var) return c;
  }
  return 0;
}

namespace {

void add_term(Affine& sum, ExprId atom, int64_t coefficient) {
  auto it = std::lower_bound(sum.terms.begin(), sum.terms.end(), atom,
                             [](const auto& t, ExprId id) { return t.first < id; });
  if (it != sum.terms.end() && it->first == atom) {
    it->second = static_cast<int64_t>(static_cast<uint64_t>(it->second) +
                                      static_cast<uint64_t>(coefficient));
    if (it->second == 0) sum.terms.erase(it);
  } else if (coefficient != 0) {
    sum.terms.insert(it, {atom, coefficient});
  }
}

int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

void add_scaled(const Pool& pool, ExprId id, int64_t scale, Affine& sum) {
  const ExprNode& n = pool.node(id);
  if (n.dtype == DType::kI64) {
    if (n.op == Op::kConst) {
      sum.constant = static_cast<int64_t>(
          static_cast<uint64_t>(sum.constant) +
          static_cast<uint64_t>(wrap_mul(static_cast<int64_t>(n.word), scale)));
      return;
    }
    if (n.op == Op::kAdd || n.op == Op::kSub) {
      add_scaled(pool, n.a, scale, sum);
      add_scaled(pool, n.b, n.op == Op::kAdd ? scale : wrap_mul(scale, -1), sum);
      return;
    }
    if (n.op == Op::kMul && pool.node(n.b).op == Op::kConst) {
      add_scaled(pool, n.a, wrap_mul(scale, static_cast<int64_t>(pool.node(n.b).word)), sum);
      return;
    }
  }
  add_term(sum, id, scale);
}

// Whether a remainder is among the terms of the sum that `id` is.
bool has_remainder(const Pool& pool, ExprId id) {
  const ExprNode& n = pool.node(id);
  if (n.op == Op::kAdd || n.op == Op::kSub) {
    return has_remainder(pool, n.a) || has_remainder(pool, n.b);
  }
  if (n.op == Op::kMul && pool.node(n.b).op == Op::kConst) return has_remainder(pool, n.a);
  return n.op == Op::kFloorMod;
}

Range range_of_multiple(const ExprNode& n, int64_t c) {
  int64_t lo = 0;
  int64_t hi = 0;
  if (__builtin_mul_overflow(n.lo, c, &lo) || __builtin_mul_overflow(n.hi, c, &hi)) {
    return kFullRange;
  }
  return {std::min(lo, hi), std::max(lo, hi)};
}

// The range of a sum, term by term.
class RangeSum {
 public:
  // A term's atom, and the range of its multiple.
  void add(const ExprNode& atom, Range multiple) {
    known_ = known_ && atom.lo != kMinI64 && atom.hi != kMaxI64 && multiple.lo != kMinI64 &&
             multiple.hi != kMaxI64;
    if (!known_) return;
    lo_ += multiple.lo;
    hi_ += multiple.hi;
  }
  // Of the terms so far and a constant.
  Range with(int64_t constant) const {
    return known_ ? checked(lo_ + constant, hi_ + constant) : kFullRange;
  }

 private:
  bool known_ = true;
  __int128 lo_ = 0;
  __int128 hi_ = 0;
};

Range range_of(const Pool& pool, const Affine& sum) {
  RangeSum range;
  for (const auto& [id, c] : sum.terms) {
    const ExprNode& n = pool.node(id);
    range.add(n, range_of_multiple(n, c));
  }
  return range.with(sum.constant);
}

// The sum in its normal form, all at once. `intern` makes a node of what it is given.
template <class Intern>
ExprId write_sum(Pool& pool, const Affine& sum, const Intern& intern) {
  const auto raw = [&](Op op, ExprId a, ExprId b, Range range) {
    return intern({.op = op, .dtype = DType::kI64, .a = a, .b = b, .lo = range.lo, .hi = range.hi});
  };
  RangeSum known;
  ExprId total = kNone;
  for (const auto& [atom, c] : sum.terms) {
    const Range product = range_of_multiple(pool.node(atom), c);
    known.add(pool.node(atom), product);
    ExprId term = atom;
    if (c != 1) term = raw(Op::kMul, atom, pool.integer(c), product);
    total = total == kNone ? term : raw(Op::kAdd, total, term, known.with(0));
  }
  if (total == kNone) return pool.integer(sum.constant);
  if (sum.constant == 0) return total;
  return raw(Op::kAdd, total, pool.integer(sum.constant), known.with(sum.constant));
}

// What from_affine gives: a sum without remainders has nothing that adding up could join.
template <class Intern>
ExprId write_or_add_up(Pool& pool, const Affine& sum, const Intern& intern) {
  const bool joins = std::any_of(sum.terms.begin(), sum.terms.end(), [&](const auto& term) {
    return pool.node(term.first).op == Op::kFloorMod;
  });
  return joins ? from_affine(pool, sum) : write_sum(pool, sum, intern);
}

// What a term is a multiple of; kNone for a sum or a constant.
ExprId atom_of_term(const Pool& pool, ExprId id) {
  const ExprNode& n = pool.node(id);
  if (n.op == Op::kMul && pool.node(n.b).op == Op::kConst) return n.a;
  return n.op == Op::kAdd || n.op == Op::kSub || n.op == Op::kConst ? kNone : id;
}

// Whether a + b, both in normal form, is so too: b is one term behind all of a, nothing in them can
// be joined, and their ranges are known.
bool goes_behind(const Pool& pool, ExprId a, ExprId b) {
  const ExprNode& x = pool.node(a);
  const ExprNode& y = pool.node(b);
  const ExprId last = atom_of_term(pool, x.op == Op::kAdd ? x.b : a);
  const ExprId next = atom_of_term(pool, b);
  if (last == kNone || next == kNone || last >= next) return false;
  if (x.lo == kMinI64 || x.hi == kMaxI64 || y.lo == kMinI64 || y.hi == kMaxI64) return false;
  return pool.node(next).op != Op::kFloorMod && !has_remainder(pool, a);
}

// A sum as factor·high + low with 0 <= low < factor, where the factor divides `divisor`: then low
// never carries into a quotient by `divisor`, nor into what is left of it.
struct Split {
  int64_t factor;
  Affine high;
  Affine low;
};

std::optional<Split> split_without_carry(const Pool& pool, const Affine& sum, int64_t divisor) {
  for (const auto& [candidate, coefficient] : sum.terms) {
    Split s{.factor = std::gcd(coefficient, divisor), .high = {}, .low = {}};
    if (s.factor <= 1 || s.factor == divisor) continue;
    for (const auto& [atom, c] : sum.terms) {
      if (c % s.factor == 0) {
        s.high.terms.push_back({atom, c / s.factor});
      } else {
        s.low.terms.push_back({atom, c});
      }
    }
    s.high.constant = floor_div_i64(sum.constant, s.factor);
    s.low.constant = floor_mod_i64(sum.constant, s.factor);
    const Range low = range_of(pool, s.low);
    if (low.lo >= 0 && low.hi < s.factor) return s;
  }
  return std::nullopt;
}

}  // namespace

Affine affine_of(const Pool& pool, ExprId id) {
  Affine sum;
  add_scaled(pool, id, 1, sum);
  return sum;
}

ExprId from_affine(Pool& pool, const Affine& sum) {
  ExprId total = kNone;
  for (const auto& [atom, c] : sum.terms) {
    ExprId term = atom;
    if (c != 1) term = pool.binary(Op::kMul, atom, pool.integer(c));
    total = total == kNone ? term : pool.binary(Op::kAdd, total, term);
  }
  if (total == kNone) return pool.integer(sum.constant);
  if (sum.constant != 0) total = pool.binary(Op::kAdd, total, pool.integer(sum.constant));
  return total;
}

// c·m·floor_div(x, c) + m·floor_mod(x, c) = m·x: undoes the split of an index into digits.
void Pool::recombine(Affine& sum) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [atom, m] : sum.terms) {
      const ExprNode n = nodes_[atom];
      if (n.op != Op::kFloorMod) continue;
      const auto c = static_cast<int64_t>(nodes_[n.b].word);
      const ExprId quotient = floor_div(n.a, c);
      const int64_t factor = wrap_mul(m, c);
      if (sum.coefficient(quotient) != factor) continue;
      const int64_t scale = m;
      add_term(sum, atom, wrap_mul(scale, -1));
      add_term(sum, quotient, wrap_mul(factor, -1));
      add_scaled(*this, n.a, scale, sum);
      changed = true;
      break;
    }
  }
}

// Sums and constant multiples of i64 values, brought to the one normal form that affine_of reads.
ExprId Pool::fold_integer(Op op, ExprId a, ExprId b) {
  if (op == Op::kMul && nodes_[a].op == Op::kConst) std::swap(a, b);
  if (op == Op::kMul && nodes_[b].op != Op::kConst) return kNone;
  // x·1, x + 0 and x - 0 are x, which has the normal form already.
  if (is_integer(b, op == Op::kMul ? 1 : 0) && !has_remainder(*this, a)) return a;
  if (op == Op::kAdd && is_integer(a, 0) && !has_remainder(*this, b)) return b;
  if (op == Op::kAdd && goes_behind(*this, a, b)) {
    const ExprNode& x = nodes_[a];
    const ExprNode& y = nodes_[b];
    const Range range =
        checked(static_cast<__int128>(x.lo) + y.lo, static_cast<__int128>(x.hi) + y.hi);
    return intern({.op = op, .dtype = x.dtype, .a = a, .b = b, .lo = range.lo, .hi = range.hi});
  }
  Affine sum;
  if (op == Op::kMul) {
    add_scaled(*this, a, static_cast<int64_t>(nodes_[b].word), sum);
  } else {
    add_scaled(*this, a, 1, sum);
    add_scaled(*this, b, op == Op::kAdd ? 1 : -1, sum);
  }
  recombine(sum);
  return write_sum(*this, sum, [this](const ExprNode& n) { return intern(n); });
}

// floor((Σ d·q + rest) / d) = Σ q + floor(rest / d), and 0 for the last part if 0 <= rest < d.
ExprId Pool::floor_div(ExprId a, int64_t divisor) {
  if (divisor == 1) return a;
  const auto written = [this](const Affine& x) {
    return write_or_add_up(*this, x, [this](const ExprNode& n) { return intern(n); });
  };
  const Affine sum = affine_of(*this, a);
  Affine quotient;
  Affine rest;
  for (const auto& [atom, c] : sum.terms) {
    if (c % divisor == 0) {
      quotient.terms.push_back({atom, c / divisor});
    } else {
      rest.terms.push_back({atom, c});
    }
  }
  quotient.constant = floor_div_i64(sum.constant, divisor);
  rest.constant = floor_mod_i64(sum.constant, divisor);
  const Range r = range_of(*this, rest);
  if (range_of(*this, sum).lo == kMinI64 || r.lo == kMinI64) {  // may wrap: leave it alone
    return intern({.op = Op::kFloorDiv,
                   .dtype = DType::kI64,
                   .a = a,
                   .b = integer(divisor),
                   .lo = kMinI64,
                   .hi = kMaxI64});
  }
  const int64_t lo = floor_div_i64(r.lo, divisor);
  const int64_t hi = floor_div_i64(r.hi, divisor);
  const ExprId q = written(quotient);
  if (lo == hi) return binary(Op::kAdd, q, integer(lo));
  // Divide numerator and divisor by what is common to all coefficients: the constant's remainder
  // cannot reach the next multiple.
  int64_t g = divisor;
  for (const auto& [atom, c] : rest.terms) g = std::gcd(g, c);
  if (g > 1) {
    Affine reduced;
    for (const auto& [atom, c] : rest.terms) reduced.terms.push_back({atom, c / g});
    reduced.constant = floor_div_i64(rest.constant, g);
    return binary(Op::kAdd, q, floor_div(written(reduced), divisor / g));
  }
  if (const auto split = split_without_carry(*this, rest, divisor)) {
    return binary(Op::kAdd, q, floor_div(written(split->high), divisor / split->factor));
  }
  const ExprId numerator = written(rest);
  const ExprNode inner = nodes_[numerator];
  if (inner.op == Op::kFloorDiv) {  // floor(floor(x / c) / d) = floor(x / (c·d))
    const auto c = static_cast<int64_t>(nodes_[inner.b].word);
    if (c <= kMaxI64 / divisor) return binary(Op::kAdd, q, floor_div(inner.a, c * divisor));
  }
  const ExprId part = intern({.op = Op::kFloorDiv,
                              .dtype = DType::kI64,
                              .a = numerator,
                              .b = integer(divisor),
                              .lo = lo,
                              .hi = hi});
  return binary(Op::kAdd, q, part);
}

ExprId Pool::floor_mod(ExprId a, int64_t divisor) {
  if (divisor == 1) return integer(0);
  const auto written = [this](const Affine& x) {
    return write_or_add_up(*this, x, [this](const ExprNode& n) { return intern(n); });
  };
  const Affine sum = affine_of(*this, a);
  Affine rest;
  for (const auto& [atom, c] : sum.terms) {
    if (c % divisor != 0) rest.terms.push_back({atom, c});
  }
  rest.constant = floor_mod_i64(sum.constant, divisor);
  const Range r = range_of(*this, rest);
  const bool known = range_of(*this, sum).lo != kMinI64 && r.lo != kMinI64;
  if (known && r.lo >= 0 && r.hi < divisor) return written(rest);
  if (const auto split = known ? split_without_carry(*this, rest, divisor) : std::nullopt) {
    const ExprId high = floor_mod(written(split->high), divisor / split->factor);
    return binary(Op::kAdd, binary(Op::kMul, high, integer(split->factor)), written(split->low));
  }
  return intern({.op = Op::kFloorMod,
                 .dtype = DType::kI64,
                 .a = known ? written(rest) : a,
                 .b = integer(divisor),
                 .lo = 0,
                 .hi = divisor - 1});
}

ExprId Pool::binary(Op op, ExprId a, ExprId b) {
  const DType t = dtype(a);
  PYC_CHECK(t == dtype(b), "operands of different dtype");
  if (op == Op::kFloorDiv || op == Op::kFloorMod) {
    const ExprNode& d = nodes_[b];
    PYC_CHECK(t == DType::kI64 && d.op == Op::kConst && static_cast<int64_t>(d.word) > 0,
              "floor_div and floor_mod take i64 and a positive constant");
    const auto divisor = static_cast<int64_t>(d.word);
    return op == Op::kFloorDiv ? floor_div(a, divisor) : floor_mod(a, divisor);
  }
  if (t == DType::kI64 && (op == Op::kAdd || op == Op::kSub || op == Op::kMul)) {
    const ExprId folded = fold_integer(op, a, b);
    if (folded != kNone) return folded;
  }
  const ExprNode x = nodes_[a];
  const ExprNode y = nodes_[b];
  const bool known = t == DType::kI64;
  if (known && is_comparison(op)) {
    const auto truth = [&](bool v) { return constant(DType::kBool, v ? 1 : 0); };
    if (op == Op::kLt && x.hi < y.lo) return truth(true);
    if (op == Op::kLt && x.lo >= y.hi) return truth(false);
    if (op == Op::kLe && x.hi <= y.lo) return truth(true);
    if (op == Op::kLe && x.lo > y.hi) return truth(false);
  }
  if (t == DType::kBool && (op == Op::kAnd || op == Op::kOr)) {
    const bool is_and = op == Op::kAnd;
    if (x.op == Op::kConst) return (x.word != 0) == is_and ? b : a;
    if (y.op == Op::kConst) return (y.word != 0) == is_and ? a : b;
    if (a == b) return a;
  }
  if (known && op == Op::kMin && x.hi <= y.lo) return a;
  if (known && op == Op::kMin && y.hi <= x.lo) return b;
  if (known && op == Op::kMax && x.lo >= y.hi) return a;
  if (known && op == Op::kMax && y.lo >= x.hi) return b;
  Range r = is_comparison(op) ? Range{0, 1} : range_of_dtype(t);
  if (known && op == Op::kMin) r = {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
  if (known && op == Op::kMax) r = {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
  return intern({.op = op,
                 .dtype = is_comparison(op) ? DType::kBool : t,
                 .a = a,
                 .b = b,
                 .lo = r.lo,
                 .hi = r.hi});
}

ExprId Pool::fma(ExprId a, ExprId b, ExprId c) {
  const Range r = kFullRange;
  return intern(
      {.op = Op::kFma, .dtype = dtype(a), .a = a, .b = b, .c = c, .lo = r.lo, .hi = r.hi});
}

ExprId Pool::select(ExprId cond, ExprId a, ExprId b) {
  PYC_CHECK(dtype(cond) == DType::kBool && dtype(a) == dtype(b), "select of different dtypes");
  if (nodes_[cond].op == Op::kConst) return nodes_[cond].word != 0 ? a : b;
  if (a == b) return a;
  const ExprNode& x = nodes_[a];
  const ExprNode& y = nodes_[b];
  return intern({.op = Op::kSelect,
                 .dtype = dtype(a),
                 .a = cond,
                 .b = a,
                 .c = b,
                 .lo = std::min(x.lo, y.lo),
                 .hi = std::max(x.hi, y.hi)});
}

ExprId Pool::convert(ExprId a, DType to) {
  const ExprNode x = nodes_[a];
  if (x.dtype == to) return a;
  Range r = range_of_dtype(to);
  const bool from_int = !is_float(x.dtype) && x.dtype != DType::kU64;
  if (from_int && !is_float(to) && x.lo >= r.lo && x.hi <= r.hi) r = {x.lo, x.hi};
  if (from_int && to == DType::kI64 && x.op == Op::kConst) {
    return integer(static_cast<int64_t>(x.word));
  }
  return intern({.op = Op::kConvert, .dtype = to, .a = a, .lo = r.lo, .hi = r.hi});
}

ExprId Pool::bitcast(ExprId a, DType to) {
  if (dtype(a) == to) return a;
  PYC_CHECK(dtype_bits(dtype(a)) == dtype_bits(to), "bitcast between different sizes");
  const Range r = range_of_dtype(to);
  return intern({.op = Op::kBitcast, .dtype = to, .a = a, .lo = r.lo, .hi = r.hi});
}

ExprId Pool::like(const ExprNode& n, ExprId a, ExprId b, ExprId c) {
  const auto number = static_cast<uint32_t>(n.imm);
  switch (n.op) {
    case Op::kLoad:
      return load(number, n.dtype, a, b, c);
    case Op::kTable:
      return table_load(number, a);
    case Op::kCall:
      return call(number, a, b, c);
    case Op::kFma:
      return fma(a, b, c);
    case Op::kSelect:
      return select(a, b, c);
    case Op::kConvert:
      return convert(a, n.dtype);
    case Op::kBitcast:
      return bitcast(a, n.dtype);
    default:
      return b == kNone ? unary(n.op, a) : binary(n.op, a, b);
  }
}

namespace {

bool depends(const Pool& pool, ExprId id, VarId var, std::vector<uint8_t>& seen) {
  if (id == kNone) return false;
  if (seen[id] != 0) return seen[id] == 2;
  seen[id] = 1;
  const ExprNode& n = pool.node(id);
  const bool yes = (n.op == Op::kVar && static_cast<VarId>(n.imm) == var) ||
                   depends(pool, n.a, var, seen) || depends(pool, n.b, var, seen) ||
                   depends(pool, n.c, var, seen);
  if (yes) seen[id] = 2;
  return yes;
}

}  // namespace

bool depends_on(const Pool& pool, ExprId id, VarId var) {
  std::vector<uint8_t> seen(pool.size(), 0);
  return depends(pool, id, var, seen);
}

int64_t Kernel::parallel_size() const {
  int64_t n = 1;
  for (VarId v : parallel) n *= pool.var_info(v).extent;
  return n;
}

std::vector<int64_t> Kernel::scratch_offsets() const {
  std::vector<int64_t> offsets(buffers.size(), -1);
  int64_t at = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].access != Access::kScratch) continue;
    offsets[i] = at;
    at += (buffers[i].elements * dtype_size(buffers[i].dtype) + 63) / 64 * 64;
  }
  return offsets;
}

int64_t Kernel::scratch_bytes() const {
  int64_t total = 0;
  for (const Buffer& b : buffers) {
    if (b.access == Access::kScratch) {
      total += (b.elements * dtype_size(b.dtype) + 63) / 64 * 64;
    }
  }
  return total;
}

}  // namespace pyc::loop
