#include "lower/probe.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/hash.h"
#include "ir/rules.h"

namespace pyc::lower {
namespace {

class ProbeReader final : public Reader {
 public:
  ProbeReader(const ir::Graph& graph, Probe& probe, const std::vector<bool>& inlined,
              const Layouts& layouts, const Orders& orders)
      : graph_(graph), probe_(probe), inlined_(inlined), layouts_(layouts), orders_(orders) {}

  loop::Pool& pool() override { return probe_.pool; }
  const Orders& orders() const override { return orders_; }

  Expr read(ir::ValueId v, std::span<const Expr> index, Expr guard, Expr fallback) override {
    const ir::Value& value = graph_.value(v);
    if (inlined_[v]) {
      const Expr x =
          lower_node(graph_, value.producer, output_index(graph_, v), index, guard, *this);
      return fallback.valid() ? loop::select(guard, x, fallback) : x;
    }
    const Expr x = load_value(probe_.pool, value, layouts_.of(v), v, index, guard, fallback);
    if (!is_immediate(value)) {
      const loop::ExprId offset =
          linearize(probe_.pool, index, value.type.shape, layouts_.of(v)).id;
      probe_.reads.push_back(
          {v, v, value.type.elements(), offset, guard.valid(), depth_ > 0, guard.id});
    }
    return x;
  }

  Expr reduce(const ReduceRequest& r) override {
    const int64_t extent =
        std::accumulate(r.extents.begin(), r.extents.end(), int64_t{1}, std::multiplies<>());
    const loop::VarId k = probe_.pool.new_var("k", DType::kI64, extent);
    const ir::Shape shape(r.extents.begin(), r.extents.end());
    ++depth_;
    const ops::ReduceTerm term = r.term(delinearize({&probe_.pool, probe_.pool.var(k)}, shape));
    --depth_;
    probe_.reductions.push_back({r.kind, extent, k, term.value2.valid()});
    const loop::VarId result = probe_.pool.new_var("r", term.value.dtype(), loop::kResult);
    return {&probe_.pool, probe_.pool.var(result)};
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
  const loop::ExprNode& n = pool.node(result);
  return n.op == loop::Op::kLoad && n.b == loop::kNone;
}

const ProbeRead* Probe::source() const {
  if (!moves_data()) return nullptr;
  const auto loaded = static_cast<uint32_t>(pool.node(result).imm);
  const auto found = std::find_if(reads.begin(), reads.end(),
                                  [&](const ProbeRead& r) { return r.number == loaded; });
  return found == reads.end() ? nullptr : &*found;
}

bool Probe::is_view() const {
  const ProbeRead* from = source();
  return from != nullptr && pool.node(result).a == linear && from->elements == elements;
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
      index.push_back(loop::index(probe.pool, 0));
    } else {
      index.push_back({&probe.pool, probe.pool.var(probe.pool.new_var("i", DType::kI64, d))});
    }
  }
  probe.linear = linearize(probe.pool, index, type.shape, layouts.of(value)).id;
  ProbeReader reader(graph, probe, inlined, layouts, orders);
  probe.result = lower_node(graph, node, output, index, {}, reader).id;
  return probe;
}

namespace {

bool read_alike(const ir::Graph& graph, const Layouts& layouts, ir::ValueId a, ir::ValueId b) {
  const ir::Value& x = graph.value(a);
  const ir::Value& y = graph.value(b);
  if (x.type != y.type || layouts.of(a) != layouts.of(b) || is_immediate(x) != is_immediate(y)) {
    return false;
  }
  return !is_immediate(x) || x.constant->bytes == y.constant->bytes;
}

// Where `v` stands first among the values.
size_t first_place(std::span<const ir::ValueId> values, ir::ValueId v) {
  return static_cast<size_t>(std::ranges::find(values, v) - values.begin());
}

}  // namespace

bool probes_alike(const ir::Graph& graph, const Layouts& layouts, const Orders& orders,
                  ir::ValueId a, ir::ValueId b) {
  const ir::NodeId first = graph.value(a).producer;
  const ir::NodeId second = graph.value(b).producer;
  const ir::Node& x = graph.nodes[first];
  const ir::Node& y = graph.nodes[second];
  if (x.op != y.op || x.inputs.size() != y.inputs.size() || x.outputs.size() != y.outputs.size() ||
      output_index(graph, a) != output_index(graph, b) ||
      orders.unit(first) != orders.unit(second) || !ir::same_attrs(x.attrs, y.attrs)) {
    return false;
  }
  for (size_t i = 0; i < x.outputs.size(); ++i) {
    if (!read_alike(graph, layouts, x.outputs[i], y.outputs[i])) return false;
  }
  for (size_t i = 0; i < x.inputs.size(); ++i) {
    if (!read_alike(graph, layouts, x.inputs[i], y.inputs[i]) ||
        first_place(x.inputs, x.inputs[i]) != first_place(y.inputs, y.inputs[i])) {
      return false;
    }
  }
  return true;
}

uint64_t probe_hash(const ir::Graph& graph, ir::ValueId value) {
  const ir::Node& node = graph.nodes[graph.value(value).producer];
  uint64_t hash = mix(node.inputs.size(), reinterpret_cast<uintptr_t>(node.op));
  const auto add = [&](ir::ValueId v) {
    for (const int64_t d : graph.type(v).shape) hash = mix(hash, static_cast<uint64_t>(d));
  };
  add(value);
  for (const ir::ValueId v : node.inputs) add(v);
  return hash;
}

Probe probe_like(const ir::Graph& graph, const Probe& probe, ir::ValueId a, ir::ValueId b) {
  Probe out = probe;
  const ir::Node& from = graph.nodes[graph.value(a).producer];
  const ir::Node& to = graph.nodes[graph.value(b).producer];
  for (ProbeRead& r : out.reads) r.value = to.inputs[first_place(from.inputs, r.value)];
  return out;
}

}  // namespace pyc::lower
