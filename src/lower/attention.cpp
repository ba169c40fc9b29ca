#include "lower/attention.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "loop/functions.h"

namespace pyc::lower {
namespace {

using loop::Expr;
using loop::kNone;
using Order = ops::KernelContext::Order;

constexpr int64_t kKeysPerBlock = 128;
constexpr double kNothing = -std::numeric_limits<double>::infinity();

// The variable that an index is; kNone for the 0 of a dim with one element.
loop::VarId var_of(Expr index) {
  const loop::ExprNode& n = index.pool->node(index.id);
  return n.op == loop::Op::kVar ? static_cast<loop::VarId>(n.imm) : kNone;
}

class Writer {
 public:
  Writer(ops::KernelContext& context, const ops::AttentionForm& form,
         const std::function<Expr(uint32_t, Expr)>& as_stored)
      : c_(context), f_(form), as_stored_(as_stored) {}

  Attention run();

 private:
  struct Row {  // what a row carries from block to block
    Expr m;
    Expr l;
  };

  Expr number(double v) { return constant(c_.pool(), t_, v); }
  Expr zero() { return c_.index(0); }
  Expr variable(loop::VarId& v, const char* name) {
    v = c_.pool().new_var(name, t_, loop::kResult);
    return {&c_.pool(), c_.pool().var(v)};
  }

  // The formulas of a row.
  Expr weight(Expr s, Expr m) {
    return select(eq(s, number(kNothing)), number(0.0), loop::exp(s - m));
  }
  Expr factor(Expr before, Expr m) {
    return select(eq(m, number(kNothing)), number(1.0), loop::exp(before - m));
  }
  Expr result(Expr o, Expr l, Expr m) {
    return select(eq(m, number(kNothing)), number(0.0), (o + number(0.0)) / l);
  }

  Row one_block(Expr j, Row before);
  void scores(Expr j);
  void store_row(Row row);
  void describe();
  std::optional<Attention::Operand> operand(Expr x, Expr row, Expr column, Expr block) const;

  ops::KernelContext& c_;
  const ops::AttentionForm& f_;
  const std::function<Expr(uint32_t, Expr)>& as_stored_;
  Attention a_;
  DType t_ = DType::kF32;
  std::vector<Expr> at_;
  Expr query_;
  bool has_rest_ = false;  // the last block has fewer keys
  uint32_t weights_ = 0;   // scratch: a block's scores, then their weights
  uint32_t sums_ = 0;      // scratch: the row's result so far
};

Attention Writer::run() {
  t_ = c_.output_type(0).dtype;
  a_.dtype = t_;
  a_.batch = f_.batch;
  a_.queries = f_.queries;
  a_.keys = f_.keys;
  a_.depth = f_.depth;
  a_.columns = f_.columns;
  a_.block = std::clamp<int64_t>(f_.keys, 1, kKeysPerBlock);
  for (const int64_t extent : f_.batch) {
    at_.push_back(c_.parallel(extent));
    a_.batch_vars.push_back(var_of(at_.back()));
  }
  query_ = c_.parallel(f_.queries);
  a_.query_var = var_of(query_);
  has_rest_ = f_.keys % a_.block != 0;
  weights_ = c_.scratch(t_, a_.block);
  sums_ = c_.scratch(t_, f_.columns);
  for (int i = 0; i < 3; ++i) a_.outputs[i].buffer = c_.output(i);

  c_.each(f_.columns, Order::kVector, [&](Expr e) { c_.store(sums_, e, number(0.0)); });
  const int64_t blocks = (f_.keys + a_.block - 1) / a_.block;
  const ops::KernelContext::Carried start[] = {{number(kNothing)}, {number(0.0)}};
  const std::vector<Expr> end =
      c_.loop(blocks, Order::kSerial, start, [&](Expr j, std::span<const Expr> carried) {
        const Row row = one_block(j, {carried[0], carried[1]});
        return std::vector<Expr>{row.m, row.l};
      });
  store_row({end[0], end[1]});
  describe();
  return a_;
}

void Writer::scores(Expr j) {
  a_.block_var = var_of(j);
  c_.each(a_.block, Order::kVector, [&](Expr u) {
    a_.key_var = var_of(u);
    const Expr key = j * c_.index(a_.block) + u;
    const Expr in_range = has_rest_ ? lt(key, c_.index(f_.keys)) : Expr{};
    const int64_t extents[] = {f_.depth};
    const Expr product = c_.reduce(
        loop::ReduceKind::kChain, loop::ReduceOp::kSum, extents,
        [&](std::span<const Expr> d) {
          const Expr q = f_.q(at_, query_, d[0]);
          const Expr k = f_.k(at_, key, d[0], in_range);
          a_.q = operand(q, query_, d[0], zero());
          a_.k = operand(k, u, d[0], j);
          return ops::ReduceTerm{q, k};
        },
        ops::kChainSegment);
    a_.product = var_of(product);
    Expr s = f_.score(at_, query_, key, product, in_range);
    if (has_rest_) s = select(in_range, s, number(kNothing));
    a_.score = s.id;
    c_.store(weights_, u, s);
  });
}

Writer::Row Writer::one_block(Expr j, Row before) {
  scores(j);
  const int64_t extents[] = {a_.block};
  const auto stored = [&](std::span<const Expr> u) {
    return ops::ReduceTerm{c_.load(weights_, u[0])};
  };
  const Expr top = c_.reduce(loop::ReduceKind::kExact, loop::ReduceOp::kMax, extents, stored, 0);
  const Expr m = max(before.m, top);
  const Expr kept = factor(before.m, m);
  c_.each(a_.block, Order::kVector,
          [&](Expr u) { c_.store(weights_, u, weight(c_.load(weights_, u), m)); });
  const Expr sum = c_.reduce(loop::ReduceKind::kTree, loop::ReduceOp::kSum, extents, stored, 0);
  c_.each(f_.columns, Order::kVector, [&](Expr e) {
    const Expr values = c_.reduce(
        loop::ReduceKind::kChain, loop::ReduceOp::kSum, extents,
        [&](std::span<const Expr> u) {
          const Expr key = j * c_.index(a_.block) + u[0];
          const Expr in_range = has_rest_ ? lt(key, c_.index(f_.keys)) : Expr{};
          const Expr v = f_.v(at_, key, e, in_range);
          a_.v = operand(v, u[0], e, j);
          return ops::ReduceTerm{c_.load(weights_, u[0]), v, in_range};
        },
        0);
    c_.store(sums_, e, c_.load(sums_, e) * kept + values);
  });
  return {m, before.l * kept + sum};
}

void Writer::store_row(Row row) {
  Expr at = zero();
  for (size_t i = 0; i < at_.size(); ++i) at = at * c_.index(f_.batch[i]) + at_[i];
  at = at * c_.index(f_.queries) + query_;
  c_.each(f_.columns, Order::kVector, [&](Expr e) {
    c_.store(a_.outputs[0].buffer, at * c_.index(f_.columns) + e,
             result(c_.load(sums_, e), row.l, row.m));
  });
  c_.store(a_.outputs[1].buffer, at, row.m);
  c_.store(a_.outputs[2].buffer, at, row.l);
}

void Writer::describe() {
  a_.lane_var = c_.pool().new_var("e", DType::kI64, std::max(a_.block, f_.columns));
  const Expr s = variable(a_.s, "s");
  const Expr before = variable(a_.m_before, "m");
  const Expr m = variable(a_.m, "m");
  const Expr o = variable(a_.o, "o");
  const Expr l = variable(a_.l, "l");
  a_.weight = weight(s, m).id;
  a_.factor = factor(before, m).id;
  const Expr values[] = {result(o, l, m), m, l};
  a_.result = values[0].id;
  for (size_t i = 0; i < 3; ++i) {
    Attention::Output& out = a_.outputs[i];
    if (out.buffer != kNone) out.value = as_stored_(out.buffer, values[i]).id;
  }
}

// The operand at (row, column) and, where rows are counted in blocks, block `block`.
std::optional<Attention::Operand> Writer::operand(Expr x, Expr row, Expr column, Expr block) const {
  const loop::Pool& pool = *x.pool;
  const loop::ExprNode& load = pool.node(x.id);
  if (load.op != loop::Op::kLoad) return std::nullopt;
  const loop::Affine offset = loop::affine_of(pool, load.a);
  Attention::Operand out;
  out.buffer = static_cast<uint32_t>(load.imm);
  out.dtype = load.dtype;
  out.base = offset.constant;
  size_t known = 0;
  // Terms of what is counted by `index`; 0 for a dim of one element.
  const auto stride = [&](Expr index) {
    const int64_t c = offset.coefficient(index.id);
    if (c != 0) ++known;
    return c;
  };
  out.row_stride = stride(row);
  out.column_stride = stride(column);
  for (const Expr& index : at_) out.batch_strides.push_back(stride(index));
  // The one block there may be is block 0, whatever its factor.
  const bool in_blocks = var_of(block) != kNone;
  const int64_t block_stride = in_blocks ? stride(block) : 0;
  if (in_blocks && f_.keys > a_.block && block_stride != out.row_stride * a_.block) {
    return std::nullopt;
  }
  if (known != offset.terms.size()) return std::nullopt;
  return out;
}

}  // namespace

int64_t Attention::batch_size() const {
  return std::accumulate(batch.begin(), batch.end(), int64_t{1}, std::multiplies<>());
}

Attention write_attention(ops::KernelContext& context, const ops::AttentionForm& form,
                          const std::function<Expr(uint32_t, Expr)>& as_stored) {
  return Writer(context, form, as_stored).run();
}

}  // namespace pyc::lower
