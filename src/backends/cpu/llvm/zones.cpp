#include "backends/cpu/llvm/zones.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

namespace pyc::cpu {

using loop::ExprId;
using loop::ExprNode;
using loop::kNone;
using loop::Op;

namespace {

// A comparison that is false before `open_begin`, true from `open_end` on and unknown between (or
// the other way round if it falls).
struct Cut {
  ExprId id;
  int64_t open_begin;
  int64_t open_end;
  bool rises;
  bool guards;  // it takes part in the guard of a load
};

int64_t floor_div(__int128 a, __int128 b, int64_t extent) {
  __int128 q = a / b;
  if (a % b != 0 && (a < 0) != (b < 0)) --q;
  return static_cast<int64_t>(std::clamp<__int128>(q, -1, extent));
}

class Finder {
 public:
  Finder(const loop::Kernel& kernel, const loop::Loop& l)
      : k_(kernel), loop_(l), seen_(kernel.pool.size(), 0) {}

  std::vector<Cut> find() {
    visit_body(loop_);
    return std::move(cuts_);
  }

 private:
  void visit_body(const loop::Loop& l) {
    for (const loop::Stmt& s : l.body) {
      switch (s.kind) {
        case loop::StmtKind::kStore:
          visit(k_.stores[s.index].value, false);
          visit(k_.stores[s.index].offset, false);
          break;
        case loop::StmtKind::kCheck:
          visit(k_.checks[s.index].ok, false);
          break;
        case loop::StmtKind::kLoop:
          visit_body(k_.loops[s.index]);
          break;
      }
    }
    for (const loop::Reduction& r : l.reductions) {
      visit(r.value, false);
      visit(r.value2, false);
      visit(r.guard, false);
    }
    for (const loop::Carry& c : l.carries) visit(c.next, false);
  }

  void visit(ExprId id, bool guards) {
    const uint8_t mark = guards ? 3 : 1;
    if (id == kNone || seen_[id] >= mark) return;
    seen_[id] = mark;
    const ExprNode& n = k_.pool.node(id);
    if ((n.op == Op::kLt || n.op == Op::kLe) && k_.pool.dtype(n.a) == DType::kI64) {
      if (const auto cut = cut_of(id, guards)) {
        std::erase_if(cuts_, [&](const Cut& c) { return c.id == id; });
        cuts_.push_back(*cut);
      }
    }
    visit(n.a, guards);
    visit(n.b, guards || n.op == Op::kLoad);
    visit(n.c, guards);
  }

  // a < b as coefficient · variable + rest >= limit.
  std::optional<Cut> cut_of(ExprId id, bool guards) const {
    const ExprNode& n = k_.pool.node(id);
    const int limit = n.op == Op::kLt ? 1 : 0;
    __int128 coefficient = 0;
    __int128 low = 0;
    __int128 high = 0;
    const auto add = [&](ExprId side, int sign) {
      const loop::Affine sum = loop::affine_of(k_.pool, side);
      low += static_cast<__int128>(sum.constant) * sign;
      high += static_cast<__int128>(sum.constant) * sign;
      for (const auto& [atom, c] : sum.terms) {
        const ExprNode& a = k_.pool.node(atom);
        const __int128 factor = static_cast<__int128>(c) * sign;
        if (a.op == Op::kVar && static_cast<loop::VarId>(a.imm) == loop_.var) {
          coefficient += factor;
          continue;
        }
        const bool bounded = a.lo > std::numeric_limits<int64_t>::min() &&
                             a.hi < std::numeric_limits<int64_t>::max();
        if (!bounded || loop::depends_on(k_.pool, atom, loop_.var)) return false;
        low += factor * (factor > 0 ? a.lo : a.hi);
        high += factor * (factor > 0 ? a.hi : a.lo);
      }
      return true;
    };
    if (!add(n.b, 1) || !add(n.a, -1) || coefficient == 0) return std::nullopt;
    const int64_t extent = loop_.extent;
    Cut cut{id, 0, 0, coefficient > 0, guards};
    if (cut.rises) {
      cut.open_begin = floor_div(limit - high - 1, coefficient, extent) + 1;
      cut.open_end = floor_div(limit - low - 1, coefficient, extent) + 1;
    } else {
      cut.open_begin = floor_div(low - limit, -coefficient, extent) + 1;
      cut.open_end = floor_div(high - limit, -coefficient, extent) + 1;
    }
    cut.open_begin = std::clamp<int64_t>(cut.open_begin, 0, extent);
    cut.open_end = std::clamp<int64_t>(cut.open_end, 0, extent);
    return cut;
  }

  const loop::Kernel& k_;
  const loop::Loop& loop_;
  std::vector<uint8_t> seen_;
  std::vector<Cut> cuts_;
};

}  // namespace

std::vector<Zone> zones_of(const loop::Kernel& kernel, const loop::Loop& l, size_t most) {
  const std::vector<Cut> cuts = Finder(kernel, l).find();
  std::set<int64_t> borders{0, l.extent};
  for (const Cut& c : cuts) {
    borders.insert(c.open_begin);
    borders.insert(c.open_end);
  }
  if (borders.size() > most + 1) borders = {0, l.extent};
  std::vector<Zone> zones;
  for (auto it = borders.begin(); std::next(it) != borders.end(); ++it) {
    Zone zone{*it, *std::next(it), {}, false};
    for (const Cut& c : cuts) {
      if (zone.end <= c.open_begin) {
        zone.known.push_back({c.id, !c.rises});
      } else if (zone.begin >= c.open_end) {
        zone.known.push_back({c.id, c.rises});
      } else {
        zone.open_guards |= c.guards;
      }
    }
    zones.push_back(std::move(zone));
  }
  return zones;
}

}  // namespace pyc::cpu
