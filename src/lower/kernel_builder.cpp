#include "lower/kernel_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "base/convert.h"
#include "loop/function.h"
#include "loop/verify.h"
#include "loop/walk.h"
#include "lower/builder_base.h"
#include "lower/flat_dims.h"

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

// One element per point of a space cut into `dims`; any factors of the element count are right, and
// fewer dims are faster.
class FlatBuilder final : public BuilderBase {
 public:
  // How a product in a named order is written: by the loops that compute it, or as the chain that
  // stands for it in a contraction.
  enum class Form : uint8_t { kLoops, kChain };

  FlatBuilder(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan,
              ir::Shape dims, Form form = Form::kLoops)
      : BuilderBase(graph, grouping, plan), form_(form), dims_(std::move(dims)) {
    for (int64_t d : dims_) vars_.push_back(index_var("i", d));
    std::vector<Expr> index;
    for (VarId v : vars_) index.push_back(var(v));
    linear_ = linearize(pool(), index, dims_);
    for (const Member& m : plan_.members) exprs_[m.value] = lower_member(m.value, linear_);
    for (const Member& m : plan_.members) {
      if (grouping_.stored[m.value]) inner_.push_back(store(m.value, linear_, exprs_[m.value]));
    }
  }

  // To be asked before take().
  FlatKernel flat() const { return {kernel_, vars_, dims_}; }
  // Whether it would be the same in the other form: no product has a named order.
  bool has_one_form() const { return !on_unit_; }

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
    if (r.unit != nullptr && form_ == Form::kLoops) return reduce_on_unit(r);
    const int64_t extent = extent_of(r);
    const VarId k = index_var("k", extent);
    // What the term checks is checked at every step.
    std::vector<loop::Stmt> outer = std::exchange(checks_, {});
    const ops::ReduceTerm term =
        r.term(delinearize(var(k), ir::Shape(r.extents.begin(), r.extents.end())));
    const VarId result = pool().new_var("r", term.value.dtype(), loop::kResult);
    loop::Loop l;
    l.var = k;
    l.extent = extent;
    l.body = std::exchange(checks_, std::move(outer));
    l.reductions.push_back(reduction(r, term, result));
    reduction_loops_.push_back(add_loop(std::move(l)));
    return var(result);
  }

  void check(Expr ok, Fault fault, ir::ValueId value) override {
    if (always(ok)) return;
    checks_.push_back(add_check(ok, std::move(fault), value));
  }

 protected:
  Expr member(const Member& m) override { return exprs_.at(m.value); }

 private:
  Expr reduce_on_unit(const ReduceRequest& r) {
    on_unit_ = true;
    const UnitSumLoop sum =
        unit_sum(r, [&](std::span<const Expr> k, std::vector<loop::Stmt>& body) {
          std::vector<loop::Stmt> outer = std::exchange(checks_, {});
          const ops::ReduceTerm term = r.term(k);
          body = std::exchange(checks_, std::move(outer));
          return term;
        });
    reduction_loops_.push_back(sum.stmt);
    return sum.value;
  }

  Form form_;
  bool on_unit_ = false;
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
    const ir::Shape rows = without_ones(
        in_memory(graph_.type(first->value).shape, grouping_.layouts.of(first->value)));
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

  void check(Expr ok, Fault fault, ir::ValueId value) override {
    if (always(ok)) return;
    const loop::Stmt stmt = add_check(ok, std::move(fault), value);
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
    int count = 0;
    const VarId column = passes_[static_cast<size_t>(level)].column;
    loop::Walk{pool()}(x.id, [&](ExprId id, const loop::ExprNode& n) {
      if (count > kRecomputeLimit) return false;
      if (n.op == Op::kLoad || n.op == Op::kVar || n.op == Op::kConst) return false;
      if (!loop::depends_on(pool(), id, column)) return false;
      count += loop::operations_of(pool(), n);
      return true;
    });
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
    if (n.op == Op::kCall) {
      loop::each_operation(loop::callee(kernel.pool, n), [&](const Pool&, const loop::ExprNode& o) {
        if (is_float(o.dtype) && o.op >= Op::kAdd) ++operations;
      });
    } else if (is_float(n.dtype) && n.op >= Op::kAdd) {
      ++operations;
    }
  }
  return static_cast<double>(elements) * static_cast<double>(operations) +
         reduction_steps(kernel, kernel.body, points);
}

// The dims into which a product's kernel is best cut. `first`: the kernel with `dims`.
ir::Shape dims_of_product(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan,
                          const ir::Shape& dims, const FlatBuilder& first) {
  const auto next_dims = [&](const ir::Shape& now) {
    if (now == dims && first.has_one_form()) return product_dims(first.flat());
    return product_dims(FlatBuilder(graph, grouping, plan, now, FlatBuilder::Form::kChain).flat());
  };
  // A dim that is cut makes the list longer; joining comes last.
  for (ir::Shape now = dims;;) {
    ir::Shape next = next_dims(now);
    const bool was_cut = next.size() > now.size();
    now = std::move(next);
    if (!was_cut) return now;
  }
}

bool is_finite(const ir::Value& value) {
  if (value.kind != ir::ValueKind::kConstant || !is_float(value.type.dtype)) return false;
  const DType t = value.type.dtype;
  const auto* bytes = value.constant->bytes.data();
  const auto size = static_cast<size_t>(dtype_size(t));
  const auto elements = static_cast<size_t>(value.type.elements());
  if (t == DType::kF32) {
    float sum = 0.0f;  // x - x is 0 unless x is infinite or NaN; then it is NaN, and stays so
    for (size_t i = 0; i < elements; ++i) {
      float x = 0.0f;
      std::memcpy(&x, bytes + i * size, size);
      sum += x - x;
    }
    return sum == 0.0f;
  }
  for (size_t i = 0; i < elements; ++i) {
    if (!std::isfinite(word_to_double(load_word(bytes + i * size, t), t))) return false;
  }
  return true;
}

Group build_flat(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan,
                 BuildNotes* notes) {
  const ir::ValueId front = plan.members.front().value;
  const ir::Shape dims =
      without_ones(in_memory(graph.type(front).shape, grouping.layouts.of(front)));
  FlatBuilder first(graph, grouping, plan, dims);
  const ir::Shape fewer = collapsed_dims(first.flat());
  ir::Shape cut;
  if (plan.lane_reduction) cut = dims_of_product(graph, grouping, plan, dims, first);
  Group group = fewer == dims ? first.take() : FlatBuilder(graph, grouping, plan, fewer).take();
  if (!plan.lane_reduction) return group;
  const auto finite = [&](uint32_t buffer) {
    notes->read_contents = true;
    const ir::ValueId v = group.buffer_values[buffer];
    return v != ir::kNoId && is_finite(graph.value(v));
  };
  const auto chain = [&](const ir::Shape& shape) {
    return FlatBuilder(graph, grouping, plan, shape, FlatBuilder::Form::kChain).take();
  };
  if (cut != fewer) {
    const Group other = cut == dims && first.has_one_form() ? first.take() : chain(cut);
    if (other.buffer_values == group.buffer_values && loop::verify_kernel(other.kernel).ok()) {
      group.contraction = find_contraction(other.kernel, finite, &notes->why_not);
    }
  }
  if (!group.contraction) {
    const bool named = group.order != kCanonicalOrder;
    group.contraction =
        find_contraction(named ? chain(fewer).kernel : group.kernel, finite, &notes->why_not);
  }
  return group;
}

}  // namespace

Group build_group(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan,
                  BuildNotes* notes) {
  Group group;
  if (plan.shape == GroupShape::kKernel) {
    group = build_whole_kernel(graph, grouping, plan);
  } else if (plan.shape == GroupShape::kRows) {
    group = RowBuilder(graph, grouping, plan).build();
  } else {
    group = build_flat(graph, grouping, plan, notes);
  }
  group.flops = arithmetic(group.kernel, plan.elements);
  for (size_t i = 0; i < group.kernel.buffers.size(); ++i) {
    const loop::Buffer& b = group.kernel.buffers[i];
    if (b.access != loop::Access::kScratch) group.bytes += b.elements * dtype_size(b.dtype);
  }
  return group;
}

}  // namespace pyc::lower
