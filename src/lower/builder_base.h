#pragma once

// What builds a group's kernel. Private to lower/.

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "lower/groups.h"
#include "lower/unit_sum.h"

namespace pyc::lower {

// What all kinds of group share: buffers, inlining, reductions as pending loops.
class BuilderBase : public Reader {
 public:
  BuilderBase(const ir::Graph& graph, const Grouping& grouping, const GroupPlan& plan)
      : graph_(graph), grouping_(grouping), plan_(plan) {
    // Buffers are numbered by the nodes' order, not by the order in which ops happen to read.
    ValueSet reads;
    for (const Member& m : plan.members) {
      for (const ir::ValueId v : grouping.reads[m.value]) reads.insert(v);
    }
    std::vector<ir::NodeId> seen;
    for (const Member& m : plan.members) {
      declare_inputs(graph.value(m.value).producer, reads, seen);
    }
  }

  loop::Pool& pool() override { return kernel_.pool; }
  const Orders& orders() const override { return grouping_.orders; }

  Expr read(ir::ValueId v, std::span<const Expr> index, Expr guard, Expr fallback) override {
    const ir::Value& value = graph_.value(v);
    if (grouping_.inlined[v]) {
      const Expr x =
          lower_node(graph_, value.producer, output_index(graph_, v), index, guard, *this);
      return fallback.valid() ? chosen(guard, x, fallback) : x;
    }
    if (const Member* m = plan_.find(v)) return member(*m);
    const uint32_t slot = is_immediate(value) ? 0 : input_slot(v);
    return load_value(pool(), value, grouping_.layouts.of(v), slot, index, guard, fallback);
  }

 protected:
  void declare_inputs(ir::NodeId node, const ValueSet& reads, std::vector<ir::NodeId>& seen) {
    if (std::find(seen.begin(), seen.end(), node) != seen.end()) return;
    seen.push_back(node);
    for (ir::ValueId v : graph_.nodes[node].inputs) {
      if (grouping_.inlined[v]) {
        declare_inputs(graph_.value(v).producer, reads, seen);
      } else if (plan_.find(v) == nullptr && reads.contains(v)) {
        input_slot(v);
      }
    }
  }

  // x where `guard` holds. What only moves an element under it is one load: as a choice between
  // loads, a concatenation of many pieces would evaluate all of them for each element.
  Expr chosen(Expr guard, Expr x, Expr fallback) {
    const loop::ExprNode n = pool().node(x.id);
    if (n.op != loop::Op::kLoad || n.b != guard.id) return loop::select(guard, x, fallback);
    const auto buffer = static_cast<uint32_t>(n.imm);
    return {&pool(), pool().load(buffer, n.dtype, n.a, guard.id, fallback.id)};
  }

  // The expression of another member at the current point.
  virtual Expr member(const Member& m) = 0;

  // At the point whose place in memory is `linear`.
  Expr lower_member(ir::ValueId v, Expr linear) {
    const std::vector<Expr> index =
        delinearize(linear, graph_.type(v).shape, grouping_.layouts.of(v));
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

  loop::Stmt add_check(Expr ok, Fault fault, ir::ValueId value) {
    if (const auto slot = slots_.find(value); slot != slots_.end()) {
      const ir::Value& checked = graph_.value(value);
      fault.buffer = static_cast<int32_t>(slot->second);
      fault.value = checked.name;
      fault.dtype = checked.type.dtype;
      fault.shape = checked.type.shape;
    }
    auto it = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& f) {
      return f.message == fault.message && f.accepted.begin == fault.accepted.begin;
    });
    if (it == faults_.end()) it = faults_.insert(faults_.end(), std::move(fault));
    kernel_.checks.push_back({ok.id, static_cast<int32_t>(it - faults_.begin()) + 1});
    return {loop::StmtKind::kCheck, static_cast<uint32_t>(kernel_.checks.size() - 1)};
  }

  loop::Reduction reduction(const ReduceRequest& r, const ops::ReduceTerm& term,
                            loop::VarId result) {
    return {.kind = r.kind,
            .op = r.op,
            .value = term.value.id,
            .value2 = term.value2.id,
            .guard = term.guard.id,
            .segment = r.segment,
            .result = result};
  }

  // The loops of a product in its unit's order.
  UnitSumLoop unit_sum(
      const ReduceRequest& r,
      const std::function<ops::ReduceTerm(std::span<const Expr>, std::vector<loop::Stmt>&)>& term) {
    UnitSum sum{.unit = r.unit, .factors = r.factors, .terms = extent_of(r), .term = {}};
    sum.term = [&](Expr k, std::vector<loop::Stmt>& body) {
      return term(delinearize(k, ir::Shape(r.extents.begin(), r.extents.end())), body);
    };
    return write_unit_sum(kernel_, sum);
  }

  static int64_t extent_of(const ReduceRequest& r) {
    return std::accumulate(r.extents.begin(), r.extents.end(), int64_t{1}, std::multiplies<>());
  }

  // Whether the condition has been found to hold at every point.
  static bool always(Expr ok) {
    const loop::ExprNode& n = ok.pool->node(ok.id);
    return n.op == loop::Op::kConst && n.word != 0;
  }

  loop::VarId index_var(std::string name, int64_t extent) {
    return pool().new_var(std::move(name), DType::kI64, extent);
  }
  Expr var(loop::VarId v) { return {&pool(), pool().var(v)}; }

  Group finish() {
    Group group;
    group.kernel = std::move(kernel_);
    group.buffer_values = std::move(values_);
    group.faults = std::move(faults_);
    for (const Member& m : plan_.members) add_with_inlined(graph_.value(m.value).producer, group);
    std::sort(group.members.begin(), group.members.end());
    for (ir::NodeId n : group.members) {
      group.reasons.push_back(grouping_.reasons[graph_.nodes[n].outputs[0]]);
      set_order(grouping_.orders.unit(n), group);
    }
    return group;
  }

  // A group has one product at most whose order matters: members that join one reduce nothing.
  static void set_order(const MatrixUnit* unit, Group& group) {
    if (unit == nullptr) return;
    PYC_CHECK(group.order == kCanonicalOrder, "two products in one group");
    group.order = unit->name;
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
  loop::Kernel kernel_;
  std::vector<ir::ValueId> values_;
  std::vector<Fault> faults_;
  std::map<ir::ValueId, uint32_t> slots_;
};

}  // namespace pyc::lower
