#include "lower/attention.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "loop/functions.h"

namespace pyc::lower {
namespace {

using loop::Expr;
using loop::ExprId;
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
  Writer(ops::KernelContext& context, const ops::AttentionForm& form, AttentionBuilder& builder)
      : c_(context), f_(form), builder_(builder) {}

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

  // The formulas of a row. m is at least s and `before`, or NaN.
  Expr weight(Expr s, Expr m) {
    if (c_.unit() != nullptr) return unit_weight(s, m);
    return select(eq(s, number(kNothing)), number(0.0), loop::exp_nonpositive(s - m));
  }
  Expr factor(Expr before, Expr m) {
    if (c_.unit() != nullptr) return select(eq(before, m), number(1.0), unit_weight(before, m));
    return select(eq(m, number(kNothing)), number(1.0), loop::exp_nonpositive(before - m));
  }
  Expr unit_weight(Expr s, Expr m);
  Expr result(Expr o, Expr l, Expr m) {
    return select(eq(m, number(kNothing)), number(0.0), (o + number(0.0)) / l);
  }

  Row one_block(Expr j, Row before);
  void scores(Expr j);
  Expr unit_values(Expr j, Expr e, Expr kept);
  // Blocks of a unit are added one after the other.
  Order each_order() const { return c_.unit() == nullptr ? Order::kVector : Order::kSerial; }
  void store_row(Row row);
  void describe();
  // Key u of block j, and whether there is one.
  struct Key {
    Expr number;
    Expr in_range;  // not valid: always
  };
  Key key_at(Expr j, Expr u);
  // What `build` makes of a key. It is given a variable that never leaves the keys, as the number
  // of a block's key may, so that reads through reshapes keep their strides.
  Expr of_key(const Key& key, const std::function<Expr(Expr)>& build);
  // The same of element d along the depth, which a unit's sum counts by blocks.
  Expr of_depth(Expr d, const std::function<Expr(Expr)>& build);
  std::optional<Attention::Operand> operand(Expr x, Expr row, Expr column, Expr in_range) const;

  ops::KernelContext& c_;
  const ops::AttentionForm& f_;
  AttentionBuilder& builder_;
  Attention a_;
  DType t_ = DType::kF32;
  std::vector<Expr> at_;
  Expr query_;
  bool has_rest_ = false;  // the last block has fewer keys
  uint32_t weights_ = 0;   // scratch: a block's scores, then their weights
  uint32_t sums_ = 0;      // scratch: the row's result so far
};

Attention Writer::run() {
  t_ = c_.output_type(1).dtype;  // the rows may be stored rounded
  a_.dtype = t_;
  a_.factors = c_.input_type(0).dtype;
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

Writer::Key Writer::key_at(Expr j, Expr u) {
  const Expr number = j * c_.index(a_.block) + u;
  return {number, has_rest_ ? lt(number, c_.index(f_.keys)) : Expr{}};
}

Expr Writer::of_key(const Key& key, const std::function<Expr(Expr)>& build) {
  const loop::VarId standing = c_.pool().new_var("key", DType::kI64, std::max<int64_t>(f_.keys, 1));
  const Expr any{&c_.pool(), c_.pool().var(standing)};
  return builder_.replaced(standing, key.number, [&] { return build(any); });
}

Expr Writer::of_depth(Expr d, const std::function<Expr(Expr)>& build) {
  if (c_.unit() == nullptr) return build(d);
  const loop::VarId standing = c_.pool().new_var("d", DType::kI64, std::max<int64_t>(f_.depth, 1));
  const Expr any{&c_.pool(), c_.pool().var(standing)};
  return builder_.replaced(standing, d, [&] { return build(any); });
}

// exp(s − m) for s ≤ m, as docs/NUMERICS.md has it for sm90: 2^n·2^r by a polynomial of r, to whose
// exponent n is added; +0 from 2^−127 down, where the polynomial is 1 and n −127, and for a NaN.
Expr Writer::unit_weight(Expr s, Expr m) {
  constexpr double kStep = 0x1.743cfp-7;     // log2(e) / 127
  constexpr double kRound = 0x1.8p23 - 127;  // the low bits of n + 127 + kRound are n
  // From the highest power down; what rounding to the factors' type leaves of them is enough.
  constexpr double kShort[] = {0x1.c2a21cp-5, 0x1.f00c5ep-3, 0x1.62f5fcp-1, 1.0};
  constexpr double kLong[] = {0x1.3a02d2p-7, 0x1.c9fc5p-5, 0x1.ec0378p-3, 0x1.62e12cp-1, 1.0};
  const std::span<const double> terms =
      a_.factors == DType::kBF16 ? std::span<const double>(kShort) : std::span<const double>(kLong);
  const Expr height = fma(s, number(kStep), fma(m, number(-kStep), number(1.0)));
  const Expr z = select(gt(height, number(0.0)), min(height, number(1.0)), number(0.0));
  const Expr sum = fma(z, number(127.0), number(kRound));
  const Expr r = fma(z, number(127.0), number(kRound) - sum);
  Expr power = number(terms[0]);
  for (const double term : terms.subspan(1)) power = fma(power, r, number(term));
  const Expr shift = constant_int(c_.pool(), DType::kI32, 23);
  return bitcast(bitcast(power, DType::kI32) + shl(bitcast(sum, DType::kI32), shift), DType::kF32);
}

void Writer::scores(Expr j) {
  a_.block_var = var_of(j);
  c_.each(a_.block, each_order(), [&](Expr u) {
    a_.key_var = var_of(u);
    const Key key = key_at(j, u);
    const int64_t extents[] = {f_.depth};
    const Expr product = c_.reduce(
        loop::ReduceKind::kChain, loop::ReduceOp::kSum, extents,
        [&](std::span<const Expr> d) {
          const Expr q = of_depth(d[0], [&](Expr at_depth) {
            const Expr x = f_.q(at_, query_, at_depth);
            a_.q = operand(x, query_, at_depth, {});
            return x;
          });
          const Expr k = of_key(key, [&](Expr any) {
            return of_depth(d[0], [&](Expr at_depth) {
              const Expr x = f_.k(at_, any, at_depth, key.in_range);
              a_.k = operand(x, any, at_depth, key.in_range);
              return x;
            });
          });
          return ops::ReduceTerm{q, k};
        },
        ops::kChainSegment);
    const auto score = [&](Expr p) {
      const Expr s =
          of_key(key, [&](Expr any) { return f_.score(at_, query_, any, p, key.in_range); });
      return has_rest_ ? select(key.in_range, s, number(kNothing)) : s;
    };
    a_.product = var_of(product);
    if (has_rest_) a_.in_range = key.in_range.id;
    a_.score = score(c_.unit() == nullptr ? product : variable(a_.product, "p")).id;
    c_.store(weights_, u, score(product));
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
  c_.each(f_.columns, each_order(), [&](Expr e) {
    if (c_.unit() != nullptr) return c_.store(sums_, e, unit_values(j, e, kept));
    const Expr values = c_.reduce(
        loop::ReduceKind::kChain, loop::ReduceOp::kSum, extents,
        [&](std::span<const Expr> u) {
          const Key key = key_at(j, u[0]);
          const Expr value = of_key(key, [&](Expr any) {
            const Expr v = f_.v(at_, any, e, key.in_range);
            a_.v = operand(v, any, e, key.in_range);
            return v;
          });
          return ops::ReduceTerm{c_.load(weights_, u[0]), value, key.in_range};
        },
        0);
    c_.store(sums_, e, c_.load(sums_, e) * kept + values);
  });
  return {m, before.l * kept + sum};
}

// The unit adds the block's products to what is kept of the sum, the weights rounded for them.
Expr Writer::unit_values(Expr j, Expr e, Expr kept) {
  return c_.add_products(c_.load(sums_, e) * kept, a_.block, [&](Expr u) {
    const Key key = key_at(j, u);
    const Expr value = of_key(key, [&](Expr any) {
      const Expr v = f_.v(at_, any, e, key.in_range);
      a_.v = operand(v, any, e, key.in_range);
      return v;
    });
    return ops::ReduceTerm{convert(c_.load(weights_, u), a_.factors), value};
  });
}

void Writer::store_row(Row row) {
  Expr at = zero();
  for (size_t i = 0; i < at_.size(); ++i) at = at * c_.index(f_.batch[i]) + at_[i];
  at = at * c_.index(f_.queries) + query_;
  c_.each(f_.columns, Order::kVector, [&](Expr e) {
    c_.store(a_.outputs[0].buffer, at * c_.index(f_.columns) + e,
             convert(result(c_.load(sums_, e), row.l, row.m), c_.output_type(0).dtype));
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
  const Expr row = result(o, l, m);
  const Expr values[] = {convert(row, c_.output_type(0).dtype), m, l};
  a_.result = row.id;
  for (size_t i = 0; i < 3; ++i) {
    Attention::Output& out = a_.outputs[i];
    if (out.buffer != kNone) out.value = builder_.as_stored(out.buffer, values[i]).id;
  }
}

// The operand at (row, column), as it is where `in_range` holds and before it is widened.
std::optional<Attention::Operand> Writer::operand(Expr x, Expr row, Expr column,
                                                  Expr in_range) const {
  const loop::Pool& pool = *x.pool;
  ExprId id = x.id;
  if (pool.node(id).op == loop::Op::kConvert && is_half(pool.dtype(pool.node(id).a))) {
    id = pool.node(id).a;
  }
  while (pool.node(id).op == loop::Op::kSelect && in_range.valid() &&
         pool.node(id).a == in_range.id) {
    id = pool.node(id).b;
  }
  const loop::ExprNode& load = pool.node(id);
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
  if (known != offset.terms.size()) return std::nullopt;
  return out;
}

}  // namespace

int64_t Attention::batch_size() const {
  return std::accumulate(batch.begin(), batch.end(), int64_t{1}, std::multiplies<>());
}

Attention write_attention(ops::KernelContext& context, const ops::AttentionForm& form,
                          AttentionBuilder& builder) {
  return Writer(context, form, builder).run();
}

}  // namespace pyc::lower
