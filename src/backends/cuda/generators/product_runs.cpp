#include "backends/cuda/generators/product_runs.h"

#include <unordered_map>

namespace pyc::cuda {
namespace {

using loop::ExprId;
using loop::ExprNode;
using loop::kNone;
using loop::Op;
using loop::Pool;
using loop::VarId;

// What an expression is along a run, element e of which is at width·i + e of the variable.
enum class Along : uint8_t {
  kSame,    // for all elements
  kCounts,  // a multiple of the width, plus e
  kOther,
};

class Runs {
 public:
  Runs(const Pool& pool, VarId var, int64_t width) : pool_(pool), var_(var), width_(width) {}

  Along along(ExprId e) {
    if (e == kNone) return Along::kSame;
    const auto [it, is_new] = known_.try_emplace(e, Along::kOther);
    if (!is_new) return it->second;
    const Along found = look(e);
    return known_[e] = found;
  }

 private:
  bool is_multiple(int64_t x) const { return x % width_ == 0; }
  bool is_constant(ExprId e) const { return pool_.node(e).op == Op::kConst; }
  int64_t constant(ExprId e) const { return static_cast<int64_t>(pool_.node(e).word); }

  Along look(ExprId e) {
    const ExprNode& n = pool_.node(e);
    if (n.op == Op::kVar) return static_cast<VarId>(n.imm) == var_ ? Along::kCounts : Along::kSame;
    const Along a = along(n.a);
    if (a == Along::kSame && along(n.b) == Along::kSame && along(n.c) == Along::kSame) {
      return Along::kSame;
    }
    switch (n.op) {
      case Op::kFloorDiv:
      case Op::kFloorMod:
        if (a != Along::kCounts || !is_constant(n.b) || !is_multiple(constant(n.b))) break;
        return n.op == Op::kFloorDiv ? Along::kSame : Along::kCounts;
      case Op::kLt:
      case Op::kLe:
        return compares_runs(n) ? Along::kSame : Along::kOther;
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
        return n.dtype == DType::kI64 ? sum(e) : Along::kOther;
      default:
        break;
    }
    return Along::kOther;
  }

  // Whether a run lies on one side of a constant: x < c, x <= c, c < x or c <= x.
  bool compares_runs(const ExprNode& n) {
    const bool on_right = is_constant(n.a);
    const ExprId x = on_right ? n.b : n.a;
    const ExprId c = on_right ? n.a : n.b;
    if (!is_constant(c) || along(x) != Along::kCounts) return false;
    // x < c and x >= c part the numbers at c, x <= c and x > c behind it.
    const bool behind = on_right == (n.op == Op::kLt);
    return is_multiple(constant(c) + (behind ? 1 : 0));
  }

  Along sum(ExprId e) {
    const loop::Affine sum = loop::affine_of(pool_, e);
    bool counts = false;
    bool multiple = is_multiple(sum.constant);
    for (const auto& [atom, c] : sum.terms) {
      if (atom == e) return Along::kOther;  // a product of two expressions
      const Along a = along(atom);
      if (a == Along::kSame) {
        multiple = multiple && is_multiple(c);
      } else if (a == Along::kCounts && c == 1 && !counts) {
        counts = true;
      } else {
        return Along::kOther;
      }
    }
    return counts && multiple ? Along::kCounts : Along::kOther;
  }

  const Pool& pool_;
  VarId var_;
  int64_t width_;
  std::unordered_map<ExprId, Along> known_;
};

}  // namespace

ExprId padded_load(const Pool& pool, ExprId value, DType type) {
  if (pool.node(value).op == Op::kConvert) value = pool.node(value).a;
  const ExprNode& n = pool.node(value);
  if (n.op != Op::kLoad || n.dtype != type) return kNone;
  if (n.b == kNone) return value;
  const bool zero = n.c != kNone && pool.node(n.c).op == Op::kConst && pool.node(n.c).word == 0;
  return zero ? value : kNone;
}

bool lies_in_runs(const Pool& pool, ExprId load, VarId var, int64_t extent, int64_t width) {
  if (var == kNone || extent % width != 0) return false;
  const ExprNode& n = pool.node(load);
  Runs runs(pool, var, width);
  return runs.along(n.a) == Along::kCounts && runs.along(n.b) == Along::kSame;
}

}  // namespace pyc::cuda
