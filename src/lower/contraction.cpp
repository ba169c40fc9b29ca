#include <algorithm>
#include <numeric>

#include "lower/kernel_builder.h"

namespace pyc::lower {
namespace {

using loop::ExprId;
using loop::kNone;

struct Access {
  const loop::ExprNode* load = nullptr;
  loop::Affine offset;
};

bool read_operand(const loop::Kernel& kernel, ExprId id, Access& out, std::string* why_not) {
  const loop::ExprNode& n = kernel.pool.node(id);
  if (n.op != loop::Op::kLoad || n.b != kNone) {
    *why_not = "operand_is_computed";
    return false;
  }
  out.load = &n;
  out.offset = loop::affine_of(kernel.pool, n.a);
  const auto is_var = [&](const auto& term) {
    return kernel.pool.node(term.first).op == loop::Op::kVar;
  };
  if (!std::all_of(out.offset.terms.begin(), out.offset.terms.end(), is_var)) {
    *why_not = "operand_index_not_linear";
    return false;
  }
  return true;
}

}  // namespace

int64_t Contraction::batch_size() const {
  return std::accumulate(batch.begin(), batch.end(), int64_t{1}, std::multiplies<>());
}

std::optional<Contraction> find_contraction(const loop::Kernel& kernel, std::string* why_not) {
  const auto no = [&](const char* reason) {
    *why_not = reason;
    return std::nullopt;
  };
  if (kernel.body.size() != 1 || kernel.body[0].kind != loop::StmtKind::kLoop) {
    return no("not_one_loop");
  }
  const loop::Loop& outer = kernel.loops[kernel.body[0].index];
  if (!outer.reductions.empty()) return no("reduces_rows");
  const loop::Loop* inner = nullptr;
  for (const loop::Stmt& s : outer.body) {
    if (s.kind == loop::StmtKind::kCheck) return no("has_checks");
    if (s.kind != loop::StmtKind::kLoop) continue;
    if (inner != nullptr) return no("several_reductions");
    inner = &kernel.loops[s.index];
  }
  if (inner == nullptr) return no("no_reduction");
  if (inner->reductions.size() != 1 || !inner->body.empty()) return no("several_reductions");
  const loop::Reduction& r = inner->reductions[0];
  if (r.kind != loop::ReduceKind::kChain || r.value2 == kNone) return no("not_a_product_chain");
  if (r.guard != kNone) return no("guarded_terms");

  Access first;
  Access second;
  if (!read_operand(kernel, r.value, first, why_not)) return std::nullopt;
  if (!read_operand(kernel, r.value2, second, why_not)) return std::nullopt;

  loop::Pool pool = kernel.pool;  // var() may add a node
  const auto coefficient = [&](const Access& x, loop::VarId v) {
    return x.offset.coefficient(pool.var(v));
  };
  const bool first_has_n = coefficient(first, outer.var) != 0;
  const bool second_has_n = coefficient(second, outer.var) != 0;
  if (first_has_n == second_has_n) return no("no_free_column");
  const Access& a = first_has_n ? second : first;
  const Access& b = first_has_n ? first : second;

  Contraction c;
  c.n_var = outer.var;
  c.n = outer.extent;
  c.k = inner->extent;
  c.segment = r.segment;
  c.result = r.result;
  c.dtype = kernel.pool.var_info(r.result).dtype;
  for (loop::VarId v : kernel.parallel) {
    if (v != outer.chunk_var && coefficient(b, v) == 0 && coefficient(a, v) != 0) c.m_var = v;
  }
  if (c.m_var != kNone) c.m = kernel.pool.var_info(c.m_var).extent;
  for (loop::VarId v : kernel.parallel) {
    if (v == outer.chunk_var || v == c.m_var) continue;
    c.batch_vars.push_back(v);
    c.batch.push_back(kernel.pool.var_info(v).extent);
  }
  const auto operand = [&](const Access& x, loop::VarId row) {
    Contraction::Operand o;
    o.buffer = static_cast<uint32_t>(x.load->imm);
    o.dtype = x.load->dtype;
    o.base = x.offset.constant;
    o.row_stride = row == kNone ? 0 : coefficient(x, row);
    o.k_stride = coefficient(x, inner->var);
    for (loop::VarId v : c.batch_vars) o.batch_strides.push_back(coefficient(x, v));
    return o;
  };
  c.a = operand(a, c.m_var);
  c.b = operand(b, c.n_var);
  return c;
}

}  // namespace pyc::lower
