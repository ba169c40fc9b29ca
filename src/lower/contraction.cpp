#include <algorithm>
#include <numeric>

#include "lower/flat_dims.h"
#include "lower/kernel_builder.h"

namespace pyc::lower {
namespace {

using loop::ExprId;
using loop::ExprNode;
using loop::kNone;
using loop::Op;
using loop::Pool;
using loop::VarId;

// The load that `value` is, but for a conversion; kNone if it is none.
ExprId load_of(const Pool& pool, ExprId value) {
  const ExprNode& n = pool.node(value);
  if (n.op == Op::kConvert && is_float(pool.dtype(n.a))) value = n.a;
  return pool.node(value).op == Op::kLoad ? value : kNone;
}

// The only variable of an index expression made of sums, multiples, quotients and remainders;
// nullopt if it has several or is made of anything else.
std::optional<VarId> variable_of(const Pool& pool, ExprId id) {
  const ExprNode& n = pool.node(id);
  if (n.op == Op::kVar) return static_cast<VarId>(n.imm);
  if (n.op == Op::kFloorDiv || n.op == Op::kFloorMod) return variable_of(pool, n.a);
  if (n.op != Op::kAdd && n.op != Op::kSub && n.op != Op::kMul) return std::nullopt;
  std::optional<VarId> found;
  for (const ExprId operand : {n.a, n.b}) {
    if (pool.node(operand).op == Op::kConst) continue;
    const auto v = variable_of(pool, operand);
    if (!v || (found && *found != *v)) return std::nullopt;
    found = v;
  }
  return found;
}

int64_t quotient(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Such an expression's value.
int64_t value_at(const Pool& pool, ExprId id, int64_t at) {
  const ExprNode& n = pool.node(id);
  switch (n.op) {
    case Op::kConst:
      return static_cast<int64_t>(n.word);
    case Op::kVar:
      return at;
    case Op::kAdd:
      return value_at(pool, n.a, at) + value_at(pool, n.b, at);
    case Op::kSub:
      return value_at(pool, n.a, at) - value_at(pool, n.b, at);
    case Op::kMul:
      return value_at(pool, n.a, at) * value_at(pool, n.b, at);
    case Op::kFloorDiv:
      return quotient(value_at(pool, n.a, at), static_cast<int64_t>(pool.node(n.b).word));
    default: {
      const auto divisor = static_cast<int64_t>(pool.node(n.b).word);
      const int64_t x = value_at(pool, n.a, at);
      return x - quotient(x, divisor) * divisor;
    }
  }
}

bool is_positive_zero(const Pool& pool, ExprId id) {
  return id != kNone && pool.node(id).op == Op::kConst && pool.node(id).word == 0;
}

// `value` where the guard holds, else +0.
ExprId filled(Pool& pool, ExprId value, ExprId guard) {
  const ExprId load = load_of(pool, value);
  if (load != kNone && pool.node(load).b == guard && is_positive_zero(pool, pool.node(load).c)) {
    return value;
  }
  return pool.select(guard, value, pool.constant(pool.dtype(value), 0));
}

bool is_byte(DType t) { return t == DType::kI8 || t == DType::kU8; }

// A widened byte less another that is the same for all k.
struct Difference {
  ExprId byte = kNone;
  ExprId zero = kNone;  // kNone: 0
};

// The byte that an i32 is; kNone if it is none.
ExprId widened_byte(const Pool& pool, ExprId id) {
  const ExprNode& n = pool.node(id);
  return n.op == Op::kConvert && is_byte(pool.dtype(n.a)) ? n.a : kNone;
}

// `byte` where the guard holds, else `other`.
ExprId guarded_byte(Pool& pool, ExprId byte, ExprId guard, ExprId other) {
  const ExprNode n = pool.node(byte);
  if (n.op == Op::kLoad && (n.b == kNone || n.b == guard)) {
    return pool.load(static_cast<uint32_t>(n.imm), n.dtype, n.a, guard, other);
  }
  return pool.select(guard, byte, other);
}

// The value as such a difference; without a byte if it is none.
Difference difference_of(Pool& pool, ExprId value, VarId k) {
  const ExprNode n = pool.node(value);
  if (const ExprId byte = widened_byte(pool, value); byte != kNone) return {byte, kNone};
  if (n.op == Op::kSub) {
    const Difference d{widened_byte(pool, n.a), widened_byte(pool, n.b)};
    if (d.byte == kNone || d.zero == kNone || loop::depends_on(pool, d.zero, k)) return {};
    const ExprNode& zero = pool.node(d.zero);
    return zero.op == Op::kConst && zero.word == 0 ? Difference{d.byte, kNone} : d;
  }
  if (n.op == Op::kSelect && is_positive_zero(pool, n.c)) {
    Difference d = difference_of(pool, n.b, k);
    if (d.byte == kNone) return {};
    const DType t = pool.dtype(d.byte);
    if (d.zero != kNone && pool.dtype(d.zero) != t) return {};
    d.byte = guarded_byte(pool, d.byte, n.a, d.zero != kNone ? d.zero : pool.constant(t, 0));
    return d;
  }
  return {};
}

class Finder {
 public:
  Finder(const loop::Kernel& kernel, const FiniteTest& is_finite, std::string* why_not)
      : kernel_(std::make_shared<loop::Kernel>(kernel)), is_finite_(is_finite), why_not_(why_not) {}

  std::optional<Contraction> find() {
    if (!find_loops() || !find_operands()) return std::nullopt;
    describe(c_.a, c_.m_var);
    describe(c_.b, c_.n_var);
    c_.kernel = std::move(kernel_);
    return std::move(c_);
  }

 private:
  bool no(const char* reason) {
    *why_not_ = reason;
    return false;
  }
  Pool& pool() { return kernel_->pool; }
  bool depends(ExprId id, VarId v) {
    return id != kNone && v != kNone && loop::depends_on(pool(), id, v);
  }

  bool find_loops();
  bool find_operands();
  bool place_guard(ExprId guard);
  void find_variables();
  void describe(Contraction::Operand& o, VarId row);
  void describe_bytes(Contraction::Operand& o);

  std::shared_ptr<loop::Kernel> kernel_;
  const FiniteTest& is_finite_;
  std::string* why_not_;
  const loop::Loop* outer_ = nullptr;
  const loop::Loop* inner_ = nullptr;
  Contraction c_;
};

bool Finder::find_loops() {
  const loop::Kernel& kernel = *kernel_;
  if (kernel.body.size() != 1 || kernel.body[0].kind != loop::StmtKind::kLoop) {
    return no("not_one_loop");
  }
  outer_ = &kernel.loops[kernel.body[0].index];
  if (!outer_->reductions.empty()) return no("reduces_rows");
  for (const loop::Stmt& s : outer_->body) {
    if (s.kind == loop::StmtKind::kCheck) return no("has_checks");
    if (s.kind != loop::StmtKind::kLoop) continue;
    if (inner_ != nullptr) return no("several_reductions");
    inner_ = &kernel.loops[s.index];
  }
  if (inner_ == nullptr) return no("no_reduction");
  if (!inner_->body.empty()) return no("terms_are_checked");
  if (inner_->reductions.size() != 1) return no("several_reductions");
  const loop::Reduction& r = inner_->reductions[0];
  if (r.kind != loop::ReduceKind::kChain || r.value2 == kNone) return no("not_a_product_chain");
  c_.n_var = outer_->var;
  c_.n = outer_->extent;
  c_.k_var = inner_->var;
  c_.k = inner_->extent;
  c_.segment = r.segment;
  c_.result = r.result;
  c_.dtype = kernel.pool.var_info(r.result).dtype;
  return true;
}

bool Finder::find_operands() {
  const loop::Reduction& r = inner_->reductions[0];
  const bool first_has_n = depends(r.value, c_.n_var);
  const bool second_has_n = depends(r.value2, c_.n_var);
  if (first_has_n == second_has_n) return no("no_free_column");
  c_.a.value = first_has_n ? r.value2 : r.value;
  c_.b.value = first_has_n ? r.value : r.value2;
  if (r.guard != kNone && !place_guard(r.guard)) return false;
  find_variables();
  return true;
}

bool Finder::place_guard(ExprId guard) {
  const bool of_columns = guards_columns(pool(), guard, c_.a.value, c_.b.value, c_.n_var);
  Contraction::Operand& own = of_columns ? c_.b : c_.a;
  const Contraction::Operand& other = of_columns ? c_.a : c_.b;
  if (!is_float(c_.dtype)) {
    own.value = filled(pool(), own.value, guard);
    return true;
  }
  const ExprId load = load_of(pool(), other.value);
  if (load == kNone || pool().node(load).b != kNone) return no("skips_terms_of_a_computed_factor");
  if (!is_finite_(static_cast<uint32_t>(pool().node(load).imm))) {
    return no("skips_terms_of_a_factor_not_known_finite");
  }
  own.value = filled(pool(), own.value, guard);
  return true;
}

void Finder::find_variables() {
  for (const VarId v : kernel_->parallel) {
    if (v != outer_->chunk_var && !depends(c_.b.value, v) && depends(c_.a.value, v)) c_.m_var = v;
  }
  if (c_.m_var != kNone) c_.m = pool().var_info(c_.m_var).extent;
  for (const VarId v : kernel_->parallel) {
    if (v == outer_->chunk_var || v == c_.m_var) continue;
    c_.batch_vars.push_back(v);
    c_.batch.push_back(pool().var_info(v).extent);
  }
}

void Finder::describe(Contraction::Operand& o, VarId row) {
  o.form = Contraction::Form::kComputed;
  describe_bytes(o);
  const ExprId load = o.byte != kNone ? load_of(pool(), o.byte) : load_of(pool(), o.value);
  if (load == kNone || pool().node(load).b != kNone) return;
  const ExprNode n = pool().node(load);
  const loop::Affine offset = loop::affine_of(pool(), n.a);
  const auto has = [&](const auto& is) {
    return std::all_of(offset.terms.begin(), offset.terms.end(),
                       [&](const auto& term) { return is(term.first); });
  };
  if (!has([&](ExprId atom) { return variable_of(pool(), atom).has_value(); })) return;
  o.form = Contraction::Form::kDigits;
  o.load = load;
  o.buffer = static_cast<uint32_t>(n.imm);
  o.dtype = n.dtype;
  if (load != o.value || !has([&](ExprId atom) { return pool().node(atom).op == Op::kVar; })) {
    return;
  }
  o.form = Contraction::Form::kLinear;
  const auto stride = [&](VarId v) { return v == kNone ? 0 : offset.coefficient(pool().var(v)); };
  o.base = offset.constant;
  o.row_stride = stride(row);
  o.k_stride = stride(c_.k_var);
  for (const VarId v : c_.batch_vars) o.batch_strides.push_back(stride(v));
}

void Finder::describe_bytes(Contraction::Operand& o) {
  if (c_.dtype != DType::kI32) return;
  const Difference d = difference_of(pool(), o.value, c_.k_var);
  o.byte = d.byte;
  o.zero = d.zero;
}

}  // namespace

bool guards_columns(const Pool& pool, ExprId guard, ExprId a, ExprId b, VarId n) {
  if (loop::depends_on(pool, guard, n)) return true;
  const ExprId load = load_of(pool, b);
  return load != kNone && pool.node(load).b == guard && load_of(pool, a) != kNone;
}

int64_t Contraction::batch_size() const {
  return std::accumulate(batch.begin(), batch.end(), int64_t{1}, std::multiplies<>());
}

int64_t Contraction::base_of(const Operand& operand) const {
  return loop::affine_of(kernel->pool, kernel->pool.node(operand.load).a).constant;
}

std::vector<int64_t> Contraction::offsets_of(const Operand& operand, loop::VarId var) const {
  if (var == kNone) return {0};
  const Pool& pool = kernel->pool;
  std::vector<int64_t> out(static_cast<size_t>(pool.var_info(var).extent), 0);
  for (const auto& [atom, c] : loop::affine_of(pool, pool.node(operand.load).a).terms) {
    if (variable_of(pool, atom) != var) continue;
    const bool is_var = pool.node(atom).op == Op::kVar;
    for (size_t i = 0; i < out.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      out[i] += c * (is_var ? at : value_at(pool, atom, at));
    }
  }
  return out;
}

std::optional<Contraction> find_contraction(const loop::Kernel& kernel, const FiniteTest& is_finite,
                                            std::string* why_not) {
  return Finder(kernel, is_finite, why_not).find();
}

}  // namespace pyc::lower
