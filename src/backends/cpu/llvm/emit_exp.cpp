// AVX-512 multiplies by a power of two in one instruction, rounding once. Loop IR's exp does it in
// two exact halves; where an expression is that function, the one instruction gives the same bits.

#include "backends/cpu/llvm/emitter.h"
#include "loop/functions.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::ExprNode;
using loop::kNone;
using loop::Op;

namespace {

// exp of an f32 variable, whose result is p·2^n.
struct Pattern {
  loop::Pool pool;
  ExprId x = kNone;
  ExprId root = kNone;
  ExprId p = kNone;
  ExprId n = kNone;

  Pattern() {
    x = pool.var(pool.new_var("x", DType::kF32, 1));
    root = loop::exp({&pool, x}).id;
    p = pool.node(pool.node(root).a).a;
    // The power's halves come from the bits of a sum; n is that sum less what was added to it.
    const ExprId sum = pool.node(pool.node(pool.node(pool.node(root).b).a).a).a;
    for (ExprId id = 0; id < pool.size(); ++id) {
      const ExprNode& node = pool.node(id);
      if (node.op == Op::kSub && node.a == pool.node(sum).a) n = id;
    }
  }
};

const Pattern& pattern() {
  static const Pattern known;
  return known;
}

// Finds for each node of the pattern the one of another pool that is the same.
class Match {
 public:
  Match(const Pattern& pattern, const loop::Pool& pool)
      : pattern_(pattern), pool_(pool), found_(pattern.pool.size(), kNone) {}

  bool same(ExprId theirs, ExprId id) {
    if (theirs == kNone || id == kNone) return theirs == id;
    if (found_[theirs] != kNone) return found_[theirs] == id;
    const ExprNode& a = pattern_.pool.node(theirs);
    const ExprNode& b = pool_.node(id);
    const bool is_x = theirs == pattern_.x && b.dtype == DType::kF32;
    const bool equal =
        is_x || (a.op == b.op && a.dtype == b.dtype && a.imm == b.imm && a.word == b.word &&
                 same(a.a, b.a) && same(a.b, b.b) && same(a.c, b.c));
    if (equal) found_[theirs] = id;
    return equal;
  }
  ExprId found(ExprId theirs) const { return found_[theirs]; }

 private:
  const Pattern& pattern_;
  const loop::Pool& pool_;
  std::vector<ExprId> found_;
};

}  // namespace

llvm::Value* ExprEmitter::emit_exp(ExprId id) {
  const Pattern& exp = pattern();
  Match match(exp, k_.pool);
  if (exp.n == kNone || !match.same(exp.root, id)) return nullptr;
  Value* p = eval_wide(match.found(exp.p));
  Value* n = eval_wide(match.found(exp.n));
  at(scope_of(id));
  return ops_.times_power_of_two(p, n);
}

}  // namespace pyc::cpu
