#include "backends/cpu/llvm/interior.h"

#include <algorithm>

#include "backends/cpu/window_kernel.h"
#include "base/convert.h"
#include "loop/renamed.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::kNone;
using loop::Op;
using loop::ReduceOp;
using loop::StmtKind;

namespace {

// More taps of all results together would be much code.
constexpr int64_t kMostTerms = 256;

class InteriorWriter {
 public:
  explicit InteriorWriter(const loop::Kernel& kernel)
      : k_(kernel), from_(kernel.loops[kernel.body[0].index]), results_(out_.kernel.pool) {
    out_.kernel = kernel;
  }

  std::optional<Interior> run() {
    int64_t terms = 0;
    size_t results = 0;
    for (const loop::Stmt& s : from_.body) {
      if (s.kind != StmtKind::kLoop) continue;
      const loop::Loop& l = k_.loops[s.index];
      terms += l.extent * static_cast<int64_t>(l.reductions.size());
      results = std::max(results, l.reductions.size());
    }
    if (terms > kMostTerms) return std::nullopt;
    for (const loop::Stmt& s : from_.body) {
      if (s.kind == StmtKind::kLoop && !write_out(k_.loops[s.index])) return std::nullopt;
    }
    add_loop();
    out_.results = static_cast<int>(results);
    if (!share_weights() || out_.byte_sums.size() != results) out_.byte_sums.clear();
    return std::move(out_);
  }

 private:
  loop::Pool& pool() { return out_.kernel.pool; }

  // The condition of the point; false if it is one of the lanes.
  bool require(ExprId guard) {
    if (guard == kNone || pool().node(guard).op == Op::kConst) return true;
    if (loop::depends_on(pool(), guard, from_.var)) return false;
    const bool seen = std::find(guards_.begin(), guards_.end(), guard) != guards_.end();
    if (seen) return true;
    guards_.push_back(guard);
    out_.condition =
        out_.condition == kNone ? guard : pool().binary(Op::kAnd, out_.condition, guard);
    return true;
  }

  // A factor of a term that counts: a load is made without its guard, which is required.
  ExprId plain(ExprId id) {
    if (id == kNone) return kNone;
    const loop::ExprNode n = pool().node(id);
    if (n.op != Op::kLoad || n.b == kNone) return id;
    if (!require(n.b)) return kNone;
    if (pool().node(n.b).op == Op::kConst && pool().node(n.b).word == 0) return n.c;
    return pool().load(static_cast<uint32_t>(n.imm), n.dtype, n.a);
  }

  ExprId first(const loop::Reduction& r) {
    return r.kind == loop::ReduceKind::kChain ? pool().constant(pool().var_info(r.result).dtype, 0)
                                              : kNone;
  }

  ExprId joined(const loop::Reduction& r, ExprId total, ExprId value, ExprId value2) {
    if (total == kNone) return value;
    if (value2 != kNone) {
      if (is_float(pool().dtype(value))) return pool().fma(value, value2, total);
      return pool().binary(Op::kAdd, total, pool().binary(Op::kMul, value, value2));
    }
    static constexpr Op kOps[] = {Op::kAdd, Op::kMul, Op::kMax, Op::kMin, Op::kAnd, Op::kOr};
    return pool().binary(kOps[static_cast<size_t>(r.op)], total, value);
  }

  // A constant, converted or not.
  std::optional<int64_t> constant(ExprId id) {
    const loop::ExprNode& n = pool().node(id);
    if (n.op == Op::kConvert && !is_float(n.dtype)) return constant(n.a);
    if (n.op != Op::kConst || is_float(n.dtype)) return std::nullopt;
    return static_cast<int64_t>(word_to_double(n.word, n.dtype));
  }

  // A byte less a constant, as i32.
  struct Byte {
    ExprId byte;
    int64_t zero = 0;
  };
  std::optional<Byte> byte(ExprId id) {
    const loop::ExprNode& n = pool().node(id);
    if (n.dtype != DType::kI32) return std::nullopt;
    if (n.op == Op::kSub) {
      const std::optional<Byte> whole = byte(n.a);
      const std::optional<int64_t> zero = constant(n.b);
      if (!whole || whole->zero != 0 || !zero) return std::nullopt;
      return Byte{whole->byte, *zero};
    }
    if (n.op != Op::kConvert) return std::nullopt;
    const DType from = pool().dtype(n.a);
    if (from != DType::kI8 && from != DType::kU8) return std::nullopt;
    return Byte{n.a};
  }

  // Signed, read where nothing is written, the same for all points.
  bool is_weight(ExprId id) {
    const loop::ExprNode& n = pool().node(id);
    return n.op == Op::kLoad && n.b == kNone && n.dtype == DType::kI8 &&
           k_.buffers[static_cast<size_t>(n.imm)].access == loop::Access::kRead &&
           std::ranges::none_of(k_.parallel,
                                [&](loop::VarId v) { return loop::depends_on(pool(), id, v); });
  }

  // One more tap; false where the sum is another.
  bool add_tap(ByteSum& sum, ExprId value, ExprId value2) {
    if (value2 == kNone) return false;
    const std::optional<Byte> x = byte(value);
    const std::optional<Byte> weight = byte(value2);
    if (!x || !weight || weight->zero != 0 || !is_weight(weight->byte)) return false;
    if (!sum.taps.empty() && sum.zero != x->zero) return false;
    sum.zero = x->zero;
    sum.taps.push_back({x->byte, weight->byte});
    return true;
  }

  bool share_weights() const {
    return std::ranges::all_of(out_.byte_sums, [&](const ByteSum& sum) {
      const ByteSum& other = out_.byte_sums.front();
      return sum.zero == other.zero &&
             std::ranges::equal(sum.taps, other.taps, {}, &ByteSum::Tap::weight,
                                &ByteSum::Tap::weight);
    });
  }

  bool write_out(const loop::Loop& l) {
    std::vector<ExprId> totals;
    for (const loop::Reduction& r : l.reductions) totals.push_back(first(r));
    std::vector<std::optional<ByteSum>> sums(l.reductions.size(), ByteSum{});
    for (int64_t k = 0; k < l.extent; ++k) {
      loop::Renamed tap(pool());
      tap.set_var(l.var, pool().integer(k));
      for (size_t i = 0; i < l.reductions.size(); ++i) {
        const loop::Reduction& r = l.reductions[i];
        const ExprId guard = tap(r.guard);
        const bool is_const = guard != kNone && pool().node(guard).op == Op::kConst;
        if (is_const && pool().node(guard).word == 0) continue;  // outside everywhere
        const ExprId value = plain(tap(r.value));
        const ExprId value2 = plain(tap(r.value2));
        const bool whole = value != kNone && (value2 != kNone) == (r.value2 != kNone);
        if (!whole || !require(guard)) return false;
        if (sums[i] && !add_tap(*sums[i], value, value2)) sums[i].reset();
        totals[i] = joined(r, totals[i], value, value2);
        out_.order.push_back(totals[i]);
      }
    }
    for (size_t i = 0; i < l.reductions.size(); ++i) {
      const loop::Reduction& r = l.reductions[i];
      if (totals[i] == kNone) return false;  // a maximum of nothing
      // A chain's only segment is added to +0.
      const bool chain = r.kind == loop::ReduceKind::kChain;
      const ExprId result = chain ? pool().binary(Op::kAdd, first(r), totals[i]) : totals[i];
      results_.set_var(r.result, result);
      if (!chain || !sums[i] || sums[i]->taps.empty()) continue;
      sums[i]->total = result;
      out_.byte_sums.push_back(*std::move(sums[i]));
    }
    return true;
  }

  void add_loop() {
    loop::Loop l = from_;
    l.body.clear();
    for (const loop::Stmt& s : from_.body) {
      if (s.kind != StmtKind::kStore) continue;
      const loop::Store& store = k_.stores[s.index];
      l.body.push_back({StmtKind::kStore, static_cast<uint32_t>(out_.kernel.stores.size())});
      out_.kernel.stores.push_back({store.buffer, store.offset, results_(store.value)});
    }
    out_.loop = static_cast<uint32_t>(out_.kernel.loops.size());
    out_.kernel.loops.push_back(std::move(l));
  }

  const loop::Kernel& k_;
  const loop::Loop& from_;
  Interior out_;
  loop::Renamed results_;
  std::vector<ExprId> guards_;
};

}  // namespace

std::optional<Interior> interior_of(const loop::Kernel& kernel) {
  if (!is_window_kernel(kernel)) return std::nullopt;
  return InteriorWriter(kernel).run();
}

}  // namespace pyc::cpu
