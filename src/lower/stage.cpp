#include "lower/stage.h"

#include <algorithm>

namespace pyc::lower {
namespace {

class NodeContext final : public ops::LowerContext {
 public:
  NodeContext(const ir::Graph& graph, ir::NodeId node, Expr guard, Reader& reader)
      : graph_(graph), node_(graph.nodes[node]), guard_(guard), reader_(reader) {}

  const ir::Node& node() const override { return node_; }
  const ir::TensorType& input_type(int i) const override {
    return graph_.type(node_.inputs[static_cast<size_t>(i)]);
  }
  const ir::TensorType& output_type(int i) const override {
    return graph_.type(node_.outputs[static_cast<size_t>(i)]);
  }
  loop::Pool& pool() override { return reader_.pool(); }

  Expr input(int i, std::span<const Expr> index) override {
    return reader_.read(node_.inputs[static_cast<size_t>(i)], index, guard_, {});
  }
  Expr input_if(int i, std::span<const Expr> index, Expr guard, Expr fallback) override {
    const Expr all = guard_.valid() ? guard_ & guard : guard;
    return reader_.read(node_.inputs[static_cast<size_t>(i)], index, all, fallback);
  }
  Expr reduce(loop::ReduceKind kind, loop::ReduceOp op, std::span<const int64_t> extents,
              const std::function<ops::ReduceTerm(std::span<const Expr>)>& term,
              int64_t segment) override {
    return reader_.reduce({kind, op, extents, term, segment});
  }
  void check(Expr ok, std::string_view message) override {
    const Expr all = guard_.valid() ? ok | ~guard_ : ok;
    const std::string& where = node_.loc.empty() ? graph_.value(node_.outputs[0]).name : node_.loc;
    reader_.check(all, std::string(node_.op->name) + " '" + where + "': " + std::string(message));
  }

 private:
  const ir::Graph& graph_;
  const ir::Node& node_;
  Expr guard_;
  Reader& reader_;
};

}  // namespace

Expr lower_node(const ir::Graph& graph, ir::NodeId node, int output, std::span<const Expr> index,
                Expr guard, Reader& reader) {
  NodeContext context(graph, node, guard, reader);
  const Expr result = graph.nodes[node].op->lower(context, output, index);
  PYC_CHECK(result.dtype() == context.output_type(output).dtype,
            "op '" + std::string(graph.nodes[node].op->name) + "' lowered to another dtype");
  return result;
}

int output_index(const ir::Graph& graph, ir::ValueId value) {
  const ir::Node& node = graph.nodes[graph.value(value).producer];
  const auto it = std::find(node.outputs.begin(), node.outputs.end(), value);
  return static_cast<int>(it - node.outputs.begin());
}

Expr linearize(loop::Pool& pool, std::span<const Expr> index, const ir::Shape& shape) {
  Expr linear = loop::index(pool, 0);
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1) linear = linear + index[d] * loop::index(pool, stride);
    stride *= shape[d];
  }
  return linear;
}

std::vector<Expr> delinearize(Expr linear, const ir::Shape& shape) {
  loop::Pool& pool = *linear.pool;
  std::vector<Expr> index(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] <= 1) {
      index[d] = loop::index(pool, 0);
      continue;
    }
    index[d] = loop::floor_mod(loop::floor_div(linear, loop::index(pool, stride)),
                               loop::index(pool, shape[d]));
    stride *= shape[d];
  }
  return index;
}

bool is_immediate(const ir::Value& value) {
  return value.kind == ir::ValueKind::kConstant && value.type.elements() == 1;
}

Expr load_value(loop::Pool& pool, const ir::Value& value, uint32_t slot,
                std::span<const Expr> index, Expr guard, Expr fallback) {
  const DType t = value.type.dtype;
  if (is_immediate(value)) {
    const Expr word = loop::constant_bits(pool, t, load_word(value.constant->bytes.data(), t));
    return fallback.valid() ? loop::select(guard, word, fallback) : word;
  }
  const Expr offset = linearize(pool, index, value.type.shape);
  if (!guard.valid()) return {&pool, pool.load(slot, t, offset.id)};
  if (!fallback.valid()) fallback = loop::constant_bits(pool, t, 0);
  if (pool.node(guard.id).op == loop::Op::kConst) {
    return pool.node(guard.id).word != 0 ? Expr{&pool, pool.load(slot, t, offset.id)} : fallback;
  }
  return {&pool, pool.load(slot, t, offset.id, guard.id, fallback.id)};
}

}  // namespace pyc::lower
