#include "lower/kernel_builder.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <unordered_set>

namespace pyc::lower {
namespace {

using loop::ExprId;
using loop::Kernel;
using loop::kNone;
using loop::Op;
using loop::Pool;
using loop::VarId;

// A row member with more arithmetic than this is kept in scratch between passes, else recomputed.
constexpr int kRecomputeLimit = 4;
// Long inner loops are cut so that every thread gets some of it.
constexpr int64_t kMinChunk = 2048;
constexpr int64_t kWantedTasks = 64;

ir::Shape without_ones(const ir::Shape& shape) {
  ir::Shape out;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(out),
               [](int64_t d) { return d != 1; });
  return out;
}

// What both kinds of group share: buffers, inlining, reductions as pending loops.
class BuilderBase : public Reader {
 public:
  BuilderBase(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan)
      : graph_(graph), grouping_(grouping), plan_(plan) {
    // Buffers are numbered by the nodes' order, not by the order in which ops happen to read.
    std::set<ir::ValueId> reads;
    for (const Member& m : plan.members) {
      reads.insert(grouping.reads[m.value].begin(), grouping.reads[m.value].end());
    }
    std::unordered_set<ir::NodeId> seen;
    for (const Member& m : plan.members) {
      declare_inputs(graph.value(m.value).producer, reads, seen);
    }
  }

  Pool& pool() override { return kernel_.pool; }

  Expr read(ir::ValueId v, std::span<const Expr> index, Expr guard, Expr fallback) override {
    const ir::Value& value = graph_.value(v);
    if (grouping_.inlined[v]) {
      const Expr x =
          lower_node(graph_, value.producer, output_index(graph_, v), index, guard, *this);
      return fallback.valid() ? loop::select(guard, x, fallback) : x;
    }
    if (const Member* m = plan_.find(v)) return member(*m);
    const uint32_t slot = is_immediate(value) ? 0 : input_slot(v);
    return load_value(pool(), value, slot, index, guard, fallback);
  }

 protected:
  void declare_inputs(ir::NodeId node, const std::set<ir::ValueId>& reads,
                      std::unordered_set<ir::NodeId>& seen) {
    if (!seen.insert(node).second) return;
    for (ir::ValueId v : graph_.nodes[node].inputs) {
      if (grouping_.inlined[v]) {
        declare_inputs(graph_.value(v).producer, reads, seen);
      } else if (plan_.find(v) == nullptr && reads.contains(v)) {
        input_slot(v);
      }
    }
  }

  // The expression of another member at the current point.
  virtual Expr member(const Member& m) = 0;

  Expr lower_member(ir::ValueId v, Expr linear) {
    const std::vector<Expr> index = delinearize(linear, graph_.type(v).shape);
    return lower_node(graph_, graph_.value(v).producer, output_index(graph_, v), index, {}, *this);
  }

  uint32_t add_buffer(ir::ValueId v, std::string name, DType t, int64_t elements,
                      loop::Access access) {
    kernel_.buffers.push_back({std::move(name), t, elements, access});
    values_.push_back(v);
    return static_cast<uint32_t>(kernel_.buffers.size() - 1);
  }

  uint32_t input_slot(ir::ValueId v) {
    const auto it = slots_.find(v);
    if (it != slots_.end()) return it->second;
    const ir::Value& value = graph_.value(v);
    const uint32_t slot =
        add_buffer(v, value.name, value.type.dtype, value.type.elements(), loop::Access::kRead);
    slots_[v] = slot;
    return slot;
  }

  loop::Stmt store(ir::ValueId v, Expr offset, Expr value) {
    const ir::Value& info = graph_.value(v);
    const uint32_t slot =
        add_buffer(v, info.name, info.type.dtype, info.type.elements(), loop::Access::kWrite);
    // Float outputs carry one NaN only.
    if (grouping_.forwarded_output[v] >= 0) value = loop::canonical_nan(value);
    return add_store(slot, offset, value);
  }

  loop::Stmt add_store(uint32_t slot, Expr offset, Expr value) {
    kernel_.stores.push_back({slot, offset.id, value.id});
    return {loop::StmtKind::kStore, static_cast<uint32_t>(kernel_.stores.size() - 1)};
  }

  loop::Stmt add_loop(loop::Loop l) {
    kernel_.loops.push_back(std::move(l));
    return {loop::StmtKind::kLoop, static_cast<uint32_t>(kernel_.loops.size() - 1)};
  }

  loop::Stmt add_check(Expr ok, std::string message) {
    auto it = std::find(faults_.begin(), faults_.end(), message);
    if (it == faults_.end()) it = faults_.insert(faults_.end(), std::move(message));
    kernel_.checks.push_back({ok.id, static_cast<int32_t>(it - faults_.begin()) + 1});
    return {loop::StmtKind::kCheck, static_cast<uint32_t>(kernel_.checks.size() - 1)};
  }

  loop::Reduction reduction(const ReduceRequest& r, const ops::ReduceTerm& term, VarId result) {
    return {.kind = r.kind,
            .op = r.op,
            .value = term.value.id,
            .value2 = term.value2.id,
            .guard = term.guard.id,
            .segment = r.segment,
            .result = result};
  }

  VarId index_var(std::string name, int64_t extent) {
    return pool().new_var(std::move(name), DType::kI64, extent);
  }
  Expr var(VarId v) { return {&pool(), pool().var(v)}; }

  Group finish() {
    Group group;
    group.kernel = std::move(kernel_);
    group.buffer_values = std::move(values_);
    group.faults = std::move(faults_);
    for (const Member& m : plan_.members) add_with_inlined(graph_.value(m.value).producer, group);
    std::sort(group.members.begin(), group.members.end());
    for (ir::NodeId n : group.members) {
      group.reasons.push_back(grouping_.reasons[graph_.nodes[n].outputs[0]]);
    }
    return group;
  }

  // The node and the producers it reads through.
  void add_with_inlined(ir::NodeId node, Group& group) const {
    if (std::find(group.members.begin(), group.members.end(), node) != group.members.end()) return;
    group.members.push_back(node);
    for (ir::ValueId v : graph_.nodes[node].inputs) {
      if (grouping_.inlined[v]) add_with_inlined(graph_.value(v).producer, group);
    }
  }

  const ir::Graph& graph_;
  const Grouping& grouping_;
  const GroupPlan& plan_;
  Kernel kernel_;
  std::vector<ir::ValueId> values_;
  std::vector<std::string> faults_;
  std::map<ir::ValueId, uint32_t> slots_;
};

// One element per point of a space cut into `dims`; any factors of the element count are right, and
// fewer dims are faster.
class FlatBuilder final : public BuilderBase {
 public:
  FlatBuilder(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan,
              ir::Shape dims)
      : BuilderBase(graph, grouping, plan), dims_(std::move(dims)) {
    for (int64_t d : dims_) vars_.push_back(index_var("i", d));
    std::vector<Expr> index;
    for (VarId v : vars_) index.push_back(var(v));
    linear_ = linearize(pool(), index, dims_);
    for (const Member& m : plan_.members) exprs_[m.value] = lower_member(m.value, linear_);
    for (const Member& m : plan_.members) {
      if (grouping_.stored[m.value]) inner_.push_back(store(m.value, linear_, exprs_[m.value]));
    }
  }

  // The dims with every pair of neighbours joined that all accesses run through as one.
  ir::Shape collapsed() const {
    std::unordered_set<ExprId> seen;
    std::vector<ExprId> offsets;
    std::unordered_set<ExprId> fixed;  // variables used otherwise than in a linear offset
    for (const loop::Store& s : kernel_.stores) visit(s.value, seen, offsets, fixed);
    for (const loop::Check& c : kernel_.checks) visit(c.ok, seen, offsets, fixed);
    for (const loop::Loop& l : kernel_.loops) {
      for (const loop::Reduction& r : l.reductions) {
        for (ExprId e : {r.value, r.value2, r.guard}) visit(e, seen, offsets, fixed);
      }
    }
    Pool pool = kernel_.pool;
    ir::Shape out;
    for (size_t d = dims_.size(); d-- > 0;) {
      bool joins = d + 1 < dims_.size();
      if (joins) {
        const ExprId outer = pool.var(vars_[d]);
        const ExprId inner = pool.var(vars_[d + 1]);
        joins = !fixed.contains(outer) && !fixed.contains(inner);
        for (size_t i = 0; joins && i < offsets.size(); ++i) {
          const loop::Affine sum = loop::affine_of(pool, offsets[i]);
          joins = sum.coefficient(outer) == sum.coefficient(inner) * dims_[d + 1];
        }
      }
      if (joins) {
        out.front() *= dims_[d];
      } else {
        out.insert(out.begin(), dims_[d]);
      }
    }
    return out;
  }

  Group take() {
    std::vector<loop::Stmt> body = std::move(reduction_loops_);
    body.insert(body.end(), checks_.begin(), checks_.end());
    body.insert(body.end(), inner_.begin(), inner_.end());
    if (dims_.empty()) {
      kernel_.body = std::move(body);
      return finish();
    }
    kernel_.parallel.assign(vars_.begin(), vars_.end() - 1);
    loop::Loop l;
    l.var = vars_.back();
    l.extent = dims_.back();
    l.vector = true;
    l.body = std::move(body);
    const int64_t tasks = plan_.elements / std::max<int64_t>(dims_.back(), 1);
    if (tasks < kWantedTasks && l.extent >= 2 * kMinChunk) {
      const int64_t wanted =
          std::max(kMinChunk, (l.extent * tasks + kWantedTasks - 1) / kWantedTasks);
      l.chunk = (wanted + 63) / 64 * 64;
      l.chunk_var = index_var("c", (l.extent + l.chunk - 1) / l.chunk);
      kernel_.parallel.push_back(l.chunk_var);
    }
    kernel_.body.push_back(add_loop(std::move(l)));
    return finish();
  }

  Expr reduce(const ReduceRequest& r) override {
    const int64_t extent =
        std::accumulate(r.extents.begin(), r.extents.end(), int64_t{1}, std::multiplies<>());
    const VarId k = index_var("k", extent);
    const ops::ReduceTerm term =
        r.term(delinearize(var(k), ir::Shape(r.extents.begin(), r.extents.end())));
    const VarId result = pool().new_var("r", term.value.dtype(), loop::kResult);
    loop::Loop l;
    l.var = k;
    l.extent = extent;
    l.reductions.push_back(reduction(r, term, result));
    reduction_loops_.push_back(add_loop(std::move(l)));
    return var(result);
  }

  void check(Expr ok, std::string message) override {
    checks_.push_back(add_check(ok, std::move(message)));
  }

 protected:
  Expr member(const Member& m) override { return exprs_.at(m.value); }

 private:
  void visit(ExprId id, std::unordered_set<ExprId>& seen, std::vector<ExprId>& offsets,
             std::unordered_set<ExprId>& fixed) const {
    if (id == kNone || !seen.insert(id).second) return;
    const Pool& p = kernel_.pool;
    const loop::ExprNode& n = p.node(id);
    if (n.op == Op::kVar) {
      fixed.insert(id);
      return;
    }
    if (n.op == Op::kLoad) {
      offsets.push_back(n.a);
      for (const auto& [atom, c] : loop::affine_of(p, n.a).terms) {
        if (p.node(atom).op != Op::kVar) visit(atom, seen, offsets, fixed);
      }
      visit(n.b, seen, offsets, fixed);
      visit(n.c, seen, offsets, fixed);
      return;
    }
    visit(n.a, seen, offsets, fixed);
    visit(n.b, seen, offsets, fixed);
    visit(n.c, seen, offsets, fixed);
  }

  ir::Shape dims_;
  std::vector<VarId> vars_;
  Expr linear_;
  std::map<ir::ValueId, Expr> exprs_;
  std::vector<loop::Stmt> reduction_loops_;
  std::vector<loop::Stmt> checks_;
  std::vector<loop::Stmt> inner_;
};

// One row per parallel point, several passes over its columns.
class RowBuilder final : public BuilderBase {
 public:
  using BuilderBase::BuilderBase;

  Group build() {
    const Member* first = nullptr;
    int passes = 0;
    for (const Member& m : plan_.members) {
      if (m.per_row && first == nullptr) first = &m;
      if (!m.per_row || m.reduces) passes = std::max(passes, m.level + 1);
    }
    const ir::Shape rows = without_ones(graph_.type(first->value).shape);
    std::vector<Expr> index;
    for (int64_t d : rows) {
      kernel_.parallel.push_back(index_var("i", d));
      index.push_back(var(kernel_.parallel.back()));
    }
    row_ = linearize(pool(), index, rows);
    passes_.resize(static_cast<size_t>(passes));
    for (Pass& p : passes_) p.column = index_var("j", plan_.cols);

    for (const Member& m : plan_.members) {
      if (m.per_row) {
        row_value(m);
      } else if (grouping_.stored[m.value]) {
        const Expr x = point_value(m, m.level);
        passes_[static_cast<size_t>(m.level)].body.push_back(store(m.value, point(m.level), x));
      }
    }
    for (Pass& p : passes_) {
      loop::Loop l;
      l.var = p.column;
      l.extent = plan_.cols;
      l.vector = true;
      l.body = std::move(p.body);
      l.reductions = std::move(p.reductions);
      kernel_.body.push_back(add_loop(std::move(l)));
    }
    kernel_.body.insert(kernel_.body.end(), row_checks_.begin(), row_checks_.end());
    for (const Member& m : plan_.members) {
      if (m.per_row && grouping_.stored[m.value]) {
        kernel_.body.push_back(store(m.value, row_, row_values_.at(m.value)));
      }
    }
    return finish();
  }

  Expr reduce(const ReduceRequest& r) override {
    PYC_CHECK(reducing_ >= 0, "a reduction inside a pointwise member");
    const int level = reducing_;
    reducing_ = -1;
    Pass& pass = passes_[static_cast<size_t>(level)];
    const int outer = std::exchange(level_, level);
    const ops::ReduceTerm term =
        r.term(delinearize(var(pass.column), ir::Shape(r.extents.begin(), r.extents.end())));
    level_ = outer;
    const VarId result = pool().new_var("r", term.value.dtype(), loop::kResult);
    pass.reductions.push_back(reduction(r, term, result));
    return var(result);
  }

  void check(Expr ok, std::string message) override {
    const loop::Stmt stmt = add_check(ok, std::move(message));
    (level_ < 0 ? row_checks_ : passes_[static_cast<size_t>(level_)].body).push_back(stmt);
  }

 protected:
  Expr member(const Member& m) override {
    return m.per_row ? row_value(m) : point_value(m, level_);
  }

 private:
  struct Pass {
    VarId column = kNone;
    std::vector<loop::Stmt> body;
    std::vector<loop::Reduction> reductions;
    std::map<ir::ValueId, Expr> values;
  };

  Expr point(int level) {
    return row_ * loop::index(pool(), plan_.cols) + var(passes_[static_cast<size_t>(level)].column);
  }

  Expr row_value(const Member& m) {
    const auto it = row_values_.find(m.value);
    if (it != row_values_.end()) return it->second;
    const int outer = std::exchange(level_, -1);
    reducing_ = m.reduces ? m.level : -1;
    const Expr x = lower_member(m.value, row_);
    level_ = outer;
    row_values_[m.value] = x;
    return x;
  }

  Expr point_value(const Member& m, int level) {
    Pass& pass = passes_[static_cast<size_t>(level)];
    const auto it = pass.values.find(m.value);
    if (it != pass.values.end()) return it->second;
    Expr x;
    if (level > m.level && expensive(point_value(m, m.level), m.level)) {
      x = from_scratch(m, level);
    } else {
      const int outer = std::exchange(level_, level);
      x = lower_member(m.value, point(level));
      level_ = outer;
    }
    pass.values[m.value] = x;
    return x;
  }

  Expr from_scratch(const Member& m, int level) {
    auto it = scratch_.find(m.value);
    const DType t = graph_.type(m.value).dtype;
    if (it == scratch_.end()) {
      const uint32_t slot = add_buffer(ir::kNoId, "row", t, plan_.cols, loop::Access::kScratch);
      it = scratch_.emplace(m.value, slot).first;
      Pass& own = passes_[static_cast<size_t>(m.level)];
      own.body.push_back(add_store(slot, var(own.column), point_value(m, m.level)));
    }
    const Expr column = var(passes_[static_cast<size_t>(level)].column);
    return {&pool(), pool().load(it->second, t, column.id)};
  }

  // Arithmetic done per column, not counting index computations.
  bool expensive(Expr x, int level) {
    std::unordered_set<ExprId> seen;
    int count = 0;
    const VarId column = passes_[static_cast<size_t>(level)].column;
    std::function<void(ExprId)> visit = [&](ExprId id) {
      if (id == kNone || count > kRecomputeLimit || !seen.insert(id).second) return;
      const loop::ExprNode& n = pool().node(id);
      if (n.op == Op::kLoad || n.op == Op::kVar || n.op == Op::kConst) return;
      if (!loop::depends_on(pool(), id, column)) return;
      ++count;
      visit(n.a);
      visit(n.b);
      visit(n.c);
    };
    visit(x.id);
    return count > kRecomputeLimit;
  }

  Expr row_;
  std::vector<Pass> passes_;
  std::map<ir::ValueId, Expr> row_values_;
  std::map<ir::ValueId, uint32_t> scratch_;
  std::vector<loop::Stmt> row_checks_;
  int level_ = -1;     // the pass being built, -1 outside of all
  int reducing_ = -1;  // the pass the next reduction belongs to
};

// Steps of all reductions in `body`, a product and a sum counting two, run `times` times.
double reduction_steps(const Kernel& kernel, const std::vector<loop::Stmt>& body, double times) {
  double steps = 0.0;
  for (const loop::Stmt& s : body) {
    if (s.kind != loop::StmtKind::kLoop) continue;
    const loop::Loop& l = kernel.loops[s.index];
    const int64_t trips = l.chunk_var == kNone ? l.extent : std::min(l.chunk, l.extent);
    const double runs = times * static_cast<double>(trips);
    for (const loop::Reduction& r : l.reductions) steps += runs * (r.value2 != kNone ? 2.0 : 1.0);
    steps += reduction_steps(kernel, l.body, runs);
  }
  return steps;
}

// A rough count of the kernel's arithmetic: the reductions' steps, and every float operation once
// per element.
double arithmetic(const Kernel& kernel, int64_t elements) {
  const auto points = static_cast<double>(kernel.parallel_size());
  size_t operations = 0;
  for (ExprId id = 0; id < kernel.pool.size(); ++id) {
    const loop::ExprNode& n = kernel.pool.node(id);
    if (is_float(n.dtype) && n.op >= Op::kAdd) ++operations;
  }
  return static_cast<double>(elements) * static_cast<double>(operations) +
         reduction_steps(kernel, kernel.body, points);
}

}  // namespace

Group build_group(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan) {
  Group group;
  if (plan.shape == GroupShape::kRows) {
    group = RowBuilder(graph, grouping, plan).build();
  } else {
    const ir::Shape dims = without_ones(graph.type(plan.members.front().value).shape);
    FlatBuilder first(graph, grouping, plan, dims);
    const ir::Shape fewer = first.collapsed();
    group = fewer == dims ? first.take() : FlatBuilder(graph, grouping, plan, fewer).take();
  }
  group.flops = arithmetic(group.kernel, plan.elements);
  for (size_t i = 0; i < group.kernel.buffers.size(); ++i) {
    const loop::Buffer& b = group.kernel.buffers[i];
    if (b.access != loop::Access::kScratch) group.bytes += b.elements * dtype_size(b.dtype);
  }
  return group;
}

}  // namespace pyc::lower
