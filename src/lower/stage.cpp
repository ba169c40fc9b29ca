#include "lower/stage.h"

#include <algorithm>
#include <cstring>

namespace pyc::lower {

Expr lower_node(const ir::Graph& graph, ir::NodeId node, int output, std::span<const Expr> index,
                Expr guard, Reader& reader) {
  NodeContext<ops::LowerContext> context(graph, node, guard, reader);
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

namespace {

// The dim at place i of the order.
size_t dim_at(const Layout& layout, size_t i) {
  return layout.empty() ? i : static_cast<size_t>(layout[i]);
}

}  // namespace

Expr linearize(loop::Pool& pool, std::span<const Expr> index, const ir::Shape& shape,
               const Layout& layout) {
  Expr linear = loop::index(pool, 0);
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    const size_t d = dim_at(layout, i);
    if (shape[d] != 1) linear = linear + index[d] * loop::index(pool, stride);
    stride *= shape[d];
  }
  return linear;
}

std::vector<Expr> delinearize(Expr linear, const ir::Shape& shape, const Layout& layout) {
  loop::Pool& pool = *linear.pool;
  std::vector<Expr> index(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    const size_t d = dim_at(layout, i);
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
  if (value.kind != ir::ValueKind::kConstant || value.type.elements() == 0) return false;
  if (value.type.elements() == 1) return true;
  if (value.type.dtype != DType::kI8 && value.type.dtype != DType::kU8) return false;
  const auto& bytes = value.constant->bytes;
  return std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

Expr load_value(loop::Pool& pool, const ir::Value& value, const Layout& layout, uint32_t slot,
                std::span<const Expr> index, Expr guard, Expr fallback) {
  const DType t = value.type.dtype;
  if (is_immediate(value)) {
    const Expr word = loop::constant_bits(pool, t, load_word(value.constant->bytes.data(), t));
    return fallback.valid() ? loop::select(guard, word, fallback) : word;
  }
  const Expr offset = linearize(pool, index, value.type.shape, layout);
  if (!guard.valid()) return {&pool, pool.load(slot, t, offset.id)};
  if (!fallback.valid()) fallback = loop::constant_bits(pool, t, 0);
  if (pool.node(guard.id).op == loop::Op::kConst) {
    return pool.node(guard.id).word != 0 ? Expr{&pool, pool.load(slot, t, offset.id)} : fallback;
  }
  return {&pool, pool.load(slot, t, offset.id, guard.id, fallback.id)};
}

}  // namespace pyc::lower
