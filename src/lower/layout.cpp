#include "lower/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pyc::lower {

const Layout Layouts::kRowMajor;

void Layouts::set(ir::ValueId v, Layout order) {
  if (v >= orders_.size()) orders_.resize(v + size_t{1});
  if (std::is_sorted(order.begin(), order.end())) order.clear();
  orders_[v] = std::move(order);
}

bool may_have_layout(const ir::Graph& graph, ir::ValueId v) {
  return graph.value(v).kind != ir::ValueKind::kInput &&
         std::find(graph.outputs.begin(), graph.outputs.end(), v) == graph.outputs.end();
}

Status verify_layouts(const ir::Graph& graph, const Layouts& layouts) {
  for (ir::ValueId v = 0; v < graph.values.size(); ++v) {
    if (layouts.is_row_major(v)) continue;
    const std::string name = "layout of %" + graph.value(v).name;
    if (!may_have_layout(graph, v)) return {Code::kVerifyFailed, name + ": it is no inner value"};
    Layout dims = layouts.of(v);
    std::sort(dims.begin(), dims.end());
    Layout all(graph.type(v).shape.size());
    std::iota(all.begin(), all.end(), 0);
    if (dims != all) return {Code::kVerifyFailed, name + ": no order of its dims"};
  }
  return {};
}

namespace {

// The elements of a row-major constant in the layout's order.
std::shared_ptr<const ir::ConstData> placed(const ir::Value& value, const Layout& layout) {
  const ir::Shape strides = ir::strides_of(value.type.shape);
  const auto size = static_cast<size_t>(dtype_size(value.type.dtype));
  std::vector<std::byte> bytes(value.constant->bytes.size());
  std::vector<int64_t> at(layout.size(), 0);
  for (std::byte* to = bytes.data(); to != bytes.data() + bytes.size(); to += size) {
    int64_t from = 0;
    for (size_t i = 0; i < layout.size(); ++i) from += at[i] * strides[layout[i]];
    std::copy_n(value.constant->bytes.data() + static_cast<size_t>(from) * size, size, to);
    for (size_t i = layout.size(); i-- > 0;) {
      if (++at[i] < value.type.shape[layout[i]]) break;
      at[i] = 0;
    }
  }
  auto data = std::make_shared<ir::ConstData>();
  data->bytes = std::move(bytes);
  return data;
}

}  // namespace

Result<ir::VerifiedGraph> place_constants(const ir::VerifiedGraph& graph, const Layouts& layouts) {
  const auto moved = [&](ir::ValueId v) {
    return graph->value(v).kind == ir::ValueKind::kConstant && !layouts.is_row_major(v);
  };
  std::vector<ir::ValueId> all(graph->values.size());
  std::iota(all.begin(), all.end(), 0);
  if (std::none_of(all.begin(), all.end(), moved)) return graph;
  ir::Graph out = *graph;
  for (const ir::ValueId v : all) {
    if (moved(v)) out.values[v].constant = placed(out.values[v], layouts.of(v));
  }
  return ir::verify_graph(std::move(out), &graph);
}

ir::Shape in_memory(const ir::Shape& shape, const Layout& layout) {
  if (layout.empty()) return shape;
  ir::Shape out;
  for (int d : layout) out.push_back(shape[static_cast<size_t>(d)]);
  return out;
}

}  // namespace pyc::lower
