#include "lower/unit_sum.h"

#include <algorithm>

#include "loop/unit.h"

namespace pyc::lower {
namespace {

using loop::Expr;
using loop::VarId;

class UnitSumWriter {
 public:
  UnitSumWriter(loop::Kernel& kernel, const UnitSum& sum)
      : kernel_(kernel), sum_(sum), block_(kernel.pool, *sum.unit, sum.factors) {}

  UnitSumLoop write() {
    const int64_t blocks = (sum_.terms + width() - 1) / width();
    const int64_t per_segment = sum_.unit->segment / width();
    loop::Loop l;
    l.var = pool().new_var("j", DType::kI64, blocks);
    l.extent = blocks;
    const bool segmented = !sum_.start.valid() && blocks > per_segment;
    const Expr zero = loop::constant(pool(), DType::kF32, 0.0);
    const Expr carried = carry(l, sum_.start.valid() ? sum_.start : zero);
    Expr acc = carried;
    if (segmented) {
      // Where a segment begins, the one before it is joined; before the first that is +0.
      const Expr begins =
          loop::eq(loop::floor_mod(var(l.var), loop::index(pool(), per_segment)), index(0));
      acc = loop::select(begins, zero, carried);
      const Expr total = carry(l, zero);
      l.carries[1].next = loop::select(begins, total + carried, total).id;
    }
    l.carries[0].next = add_block(var(l.var), acc, l.body).id;
    const Expr last = var(l.carries[0].result);
    const Expr before = segmented ? var(l.carries[1].result) : zero;
    const loop::Stmt stmt = add_loop(std::move(l));
    return {stmt, sum_.start.valid() ? last : before + last};
  }

 private:
  struct Factors {
    Expr a;
    Expr b;
  };

  loop::Pool& pool() { return kernel_.pool; }
  int64_t width() const { return sum_.unit->block; }
  Expr var(VarId v) { return {&pool(), pool().var(v)}; }
  Expr index(int64_t v) { return loop::index(pool(), v); }

  loop::Stmt add_loop(loop::Loop l) {
    kernel_.loops.push_back(std::move(l));
    return {loop::StmtKind::kLoop, static_cast<uint32_t>(kernel_.loops.size() - 1)};
  }

  Expr carry(loop::Loop& l, Expr init) {
    const VarId inside = pool().new_var("c", init.dtype(), loop::kResult);
    const VarId result = pool().new_var("r", init.dtype(), loop::kResult);
    l.carries.push_back({.var = inside, .init = init.id, .next = loop::kNone, .result = result});
    return var(inside);
  }

  Expr reduced(loop::Loop& l, loop::ReduceOp op, Expr value) {
    const VarId result = pool().new_var("r", value.dtype(), loop::kResult);
    l.reductions.push_back(
        {.kind = loop::ReduceKind::kExact, .op = op, .value = value.id, .result = result});
    return var(result);
  }

  loop::Loop over_block() {
    loop::Loop l;
    l.var = pool().new_var("i", DType::kI64, width());
    l.extent = width();
    return l;
  }

  // The factors of one product of block j; what is missing in the last block is +0 on both sides.
  Factors factors_at(Expr j, Expr i, std::vector<loop::Stmt>& body) {
    Expr k = j * index(width()) + i;
    const bool all = sum_.terms % width() == 0;
    const Expr there = loop::lt(k, index(sum_.terms));
    if (!all) k = loop::min(k, index(std::max<int64_t>(sum_.terms - 1, 0)));
    const ops::ReduceTerm term = sum_.term(k, body);
    Factors f{block_.factor(term.value), block_.factor(term.value2)};
    if (all) return f;
    return {loop::select(there, f.a, index(0)), loop::select(there, f.b, index(0))};
  }

  Expr add_block(Expr j, Expr acc, std::vector<loop::Stmt>& body) {
    loop::Loop first = over_block();
    const Factors f = factors_at(j, var(first.var), first.body);
    const Expr largest = reduced(first, loop::ReduceOp::kMax, block_.exponent(f.a, f.b));
    const Expr special = reduced(first, loop::ReduceOp::kOr, block_.special(f.a, f.b));
    body.push_back(add_loop(std::move(first)));

    const Expr scale = block_.scale(acc, largest);
    loop::Loop second = over_block();
    std::vector<loop::Stmt> again;  // the first loop has checked the terms
    const Factors g = factors_at(j, var(second.var), again);
    const Expr sum = reduced(second, loop::ReduceOp::kSum, block_.addend(g.a, g.b, scale));
    body.push_back(add_loop(std::move(second)));
    return block_.result(acc, special, block_.finite(acc, sum, scale));
  }

  loop::Kernel& kernel_;
  const UnitSum& sum_;
  loop::UnitBlock block_;
};

}  // namespace

UnitSumLoop write_unit_sum(loop::Kernel& kernel, const UnitSum& sum) {
  return UnitSumWriter(kernel, sum).write();
}

}  // namespace pyc::lower
