#include "lower/probe.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/hash.h"
#include "lower/same.h"

namespace pyc::lower {
namespace {

class ProbeReader final : public Reader {
 public:
  ProbeReader(const ir::Graph& graph, Probe& probe, const std::vector<bool>& inlined,
              const Layouts& layouts, const Orders& orders)
      : graph_(graph), probe_(probe), inlined_(inlined), layouts_(layouts), orders_(orders) {}

  loop::Pool& pool() override { return *probe_.pool; }
  const Orders& orders() const override { return orders_; }

  Expr read(ir::ValueId v, std::span<const Expr> index, Expr guard, Expr fallback) override {
    const ir::Value& value = graph_.value(v);
    if (inlined_[v]) {
      const Expr x =
          lower_node(graph_, value.producer, output_index(graph_, v), index, guard, *this);
      return fallback.valid() ? loop::select(guard, x, fallback) : x;
    }
    const Expr x = load_value(*probe_.pool, value, layouts_.of(v), v, index, guard, fallback);
    if (!is_immediate(value)) {
      const loop::ExprId offset =
          linearize(*probe_.pool, index, value.type.shape, layouts_.of(v)).id;
      probe_.reads.push_back(
          {v, v, value.type.elements(), offset, guard.valid(), depth_ > 0, guard.id});
    }
    return x;
  }

  Expr reduce(const ReduceRequest& r) override {
    const int64_t extent =
        std::accumulate(r.extents.begin(), r.extents.end(), int64_t{1}, std::multiplies<>());
    const loop::VarId k = probe_.pool->new_var("k", DType::kI64, extent);
    const ir::Shape shape(r.extents.begin(), r.extents.end());
    ++depth_;
    const ops::ReduceTerm term =
        r.term(delinearize({probe_.pool.get(), probe_.pool->var(k)}, shape));
    --depth_;
    probe_.reductions.push_back({r.kind, extent, k, term.value2.valid()});
    const loop::VarId result = probe_.pool->new_var("r", term.value.dtype(), loop::kResult);
    return {probe_.pool.get(), probe_.pool->var(result)};
  }

  void check(Expr, Fault, ir::ValueId) override {}

 private:
  const ir::Graph& graph_;
  Probe& probe_;
  const std::vector<bool>& inlined_;
  const Layouts& layouts_;
  const Orders& orders_;
  int depth_ = 0;
};

}  // namespace

int64_t Probe::domain() const {
  int64_t n = elements;
  for (const ProbeReduction& r : reductions) n *= std::max<int64_t>(r.extent, 1);
  return n;
}

bool Probe::moves_data() const {
  const loop::ExprNode& n = pool->node(result);
  return n.op == loop::Op::kLoad && n.b == loop::kNone;
}

const ProbeRead* Probe::source() const {
  if (!moves_data()) return nullptr;
  const auto loaded = static_cast<uint32_t>(pool->node(result).imm);
  const auto found = std::find_if(reads.begin(), reads.end(),
                                  [&](const ProbeRead& r) { return r.number == loaded; });
  return found == reads.end() ? nullptr : &*found;
}

bool Probe::is_view() const {
  const ProbeRead* from = source();
  return from != nullptr && pool->node(result).a == linear && from->elements == elements;
}

Probe probe_node(const ir::Graph& graph, ir::NodeId node, int output,
                 const std::vector<bool>& inlined, const Layouts& layouts, const Orders& orders) {
  Probe probe;
  const ir::ValueId value = graph.nodes[node].outputs[static_cast<size_t>(output)];
  const ir::TensorType& type = graph.type(value);
  probe.elements = type.elements();
  std::vector<Expr> index;
  for (int64_t d : type.shape) {
    if (d == 1) {
      index.push_back(loop::index(*probe.pool, 0));
    } else {
      index.push_back(
          {probe.pool.get(), probe.pool->var(probe.pool->new_var("i", DType::kI64, d))});
    }
  }
  probe.linear = linearize(*probe.pool, index, type.shape, layouts.of(value)).id;
  ProbeReader reader(graph, probe, inlined, layouts, orders);
  probe.result = lower_node(graph, node, output, index, {}, reader).id;
  return probe;
}

namespace {

// Pairs what two values are lowered from, up to what they load.
class ValuePairing {
 public:
  ValuePairing(const ir::Graph& graph, const std::vector<bool>& inlined, const Layouts& layouts,
               const Orders& orders)
      : graph_(graph), inlined_(inlined), same_(graph, inlined, layouts, orders) {}

  // Whether the two are alike.
  bool find(ir::ValueId a, ir::ValueId b) { return same_.values(a, b) && pair_producers(a, b); }

  // What the second loads where the first loads `value`.
  ir::ValueId other(ir::ValueId value) const {
    const auto* const it =
        std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& p) { return p.a == value; });
    PYC_CHECK(it != pairs_.end(), "a probe reads what its nodes do not");
    return it->b;
  }

 private:
  struct Pair {
    ir::ValueId a;
    ir::ValueId b;
  };

  bool pair_producers(ir::ValueId a, ir::ValueId b) {
    const ir::NodeId first = graph_.value(a).producer;
    const ir::NodeId second = graph_.value(b).producer;
    if (!same_.nodes(first, second) || output_index(graph_, a) != output_index(graph_, b)) {
      return false;
    }
    const ir::Node& x = graph_.nodes[first];
    const ir::Node& y = graph_.nodes[second];
    for (size_t i = 0; i < x.outputs.size(); ++i) {
      if (!same_.values(x.outputs[i], y.outputs[i])) return false;
    }
    for (size_t i = 0; i < x.inputs.size(); ++i) {
      if (!pair_inputs(x.inputs[i], y.inputs[i])) return false;
    }
    return true;
  }

  bool pair_inputs(ir::ValueId a, ir::ValueId b) {
    for (const Pair& known : pairs_) {
      if (known.a == a || known.b == b) return known.a == a && known.b == b;
    }
    pairs_.push_back({a, b});
    return same_.values(a, b) && (!inlined_[a] || pair_producers(a, b));
  }

  const ir::Graph& graph_;
  const std::vector<bool>& inlined_;
  Same same_;
  InlineVector<Pair, 12> pairs_;  // few: they are looked through from the first to the last
};

}  // namespace

Probes::Probes(const ir::Graph& graph, const std::vector<bool>& inlined, const Layouts& layouts,
               const Orders& orders, bool share)
    : graph_(graph),
      inlined_(inlined),
      layouts_(layouts),
      orders_(orders),
      share_(share),
      made_(graph.values.size()) {}

Probe& Probes::of(ir::ValueId v) {
  if (made_[v] != nullptr) return *made_[v];
  const uint64_t key = share_ ? hash(v) : 0;
  const auto [begin, end] =
      share_ ? lowered_.equal_range(key) : std::pair{lowered_.end(), lowered_.end()};
  for (auto it = begin; it != end; ++it) {
    ValuePairing pairing(graph_, inlined_, layouts_, orders_);
    if (!pairing.find(it->second, v)) continue;
    made_[v] = std::make_unique<Probe>(*made_[it->second]);
    for (ProbeRead& r : made_[v]->reads) r.value = pairing.other(r.value);
    return *made_[v];
  }
  made_[v] = std::make_unique<Probe>(probe_node(
      graph_, graph_.value(v).producer, output_index(graph_, v), inlined_, layouts_, orders_));
  if (share_) lowered_.emplace(key, v);
  return *made_[v];
}

// Equal for values that are alike.
uint64_t Probes::hash(ir::ValueId v) const {
  const ir::Node& node = graph_.nodes[graph_.value(v).producer];
  uint64_t hash = mix(node.inputs.size(), reinterpret_cast<uintptr_t>(node.op));
  const auto add = [&](ir::ValueId value) {
    for (const int64_t d : graph_.type(value).shape) hash = mix(hash, static_cast<uint64_t>(d));
  };
  add(v);
  for (const ir::ValueId input : node.inputs) {
    add(input);
    if (inlined_[input]) {
      const ir::OpDef* op = graph_.nodes[graph_.value(input).producer].op;
      hash = mix(hash, reinterpret_cast<uintptr_t>(op));
    }
  }
  return hash;
}

}  // namespace pyc::lower
