#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "passes/look.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

using ir::kNoId;
using ir::NodeView;
using ir::ValueId;

constexpr std::string_view kJoinProducts = "join_products";
constexpr size_t kOperands = 3;  // of attention: q, k and v

// One of attention's operands as it is made: a product with constant weights, perhaps a constant
// row added to it, then data movement and perhaps one cast.
struct Branch {
  ValueId end = kNoId;  // what attention reads
  ir::NodeId last = 0;  // the node that makes it
  NodeView product;
  ValueId bias = kNoId;
  std::optional<DType> cast;
  std::vector<NodeView> moves;  // in order

  ValueId weights() const { return product.input(1); }
  int64_t columns() const { return product.input_type(1).shape[1]; }
};

class Joiner {
 public:
  Joiner(ir::Patch& patch, const PassContext& context)
      : patch_(patch), context_(context), readers_(count_readers(patch.graph())) {}

  void visit(const NodeView& attention) {
    std::vector<Branch> branches;
    for (size_t i = 0; i < kOperands; ++i) {
      auto branch = branch_to(attention.input(i));
      if (branch && (branches.empty() || is_alike(branches[0], *branch))) {
        branches.push_back(std::move(*branch));
      }
    }
    if (branches.size() > 1) join(branches);
  }

 private:
  bool has_one_reader(ValueId v) const { return v < readers_.size() && readers_[v] == 1; }

  std::optional<Branch> branch_to(ValueId v) const {
    if (!has_one_reader(v) || !patch_.producer(v)) return std::nullopt;
    Branch branch;
    branch.end = v;
    branch.last = patch_.graph().value(v).producer;
    NodeView node = patch_.producer(v);
    for (; has_one_reader(v) && node; node = patch_.producer(v = node.input(0))) {
      if (node.is("cast") && !branch.cast) {
        branch.cast = node.type().dtype;
      } else if (node.is("reshape") || node.is("transpose")) {
        branch.moves.insert(branch.moves.begin(), node);
      } else {
        break;
      }
    }
    if (node.is("add") && has_one_reader(v) && is_row(node.input(1), node.type())) {
      branch.bias = node.input(1);
      v = node.input(0);
      node = patch_.producer(v);
    }
    if (!has_one_reader(v) || !is_joinable(node)) return std::nullopt;
    branch.product = node;
    return branch;
  }

  // A constant of one row of the matrix and no more dims. It may have other readers: a row more
  // takes no memory to speak of.
  bool is_row(ValueId v, const ir::TensorType& matrix) const {
    const ir::TensorType& type = patch_.type(v);
    return patch_.constant(v) != nullptr && type.rank() >= 1 && type.rank() <= matrix.rank() &&
           type.dtype == matrix.dtype && type.elements() == type.shape.back() &&
           type.shape.back() == matrix.shape.back();
  }

  bool is_joinable(const NodeView& node) const {
    return node.is("matmul") && node.input_type(0).rank() >= 2 && node.input_type(1).rank() == 2 &&
           patch_.constant(node.input(1)) != nullptr && has_one_reader(node.input(1)) &&
           is_float(node.input_type(1).dtype) && dtype_size(node.input_type(1).dtype) > 1;
  }

  static bool is_alike(const Branch& a, const Branch& b) {
    return a.product.input(0) == b.product.input(0) &&
           a.product.type().dtype == b.product.type().dtype && a.cast == b.cast &&
           (a.bias == kNoId) == (b.bias == kNoId);
  }

  // The rows side by side: once, since no pass that joins equal constants comes behind.
  ValueId one_row(const std::vector<ValueId>& parts) {
    const auto [it, is_new] = rows_.try_emplace(parts, kNoId);
    if (is_new) it->second = side_by_side(parts, 0);
    return it->second;
  }

  // The matrices, or rows, side by side.
  ValueId side_by_side(const std::vector<ValueId>& parts, int64_t rows) {
    const DType dtype = patch_.type(parts[0]).dtype;
    int64_t columns = 0;
    for (const ValueId v : parts) columns += patch_.type(v).shape.back();
    const ir::TensorType type{dtype, rows == 0 ? ir::Shape{columns} : ir::Shape{rows, columns}};
    std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
    std::byte* to = bytes.data();
    for (int64_t r = 0; r < std::max<int64_t>(rows, 1); ++r) {
      for (const ValueId v : parts) {
        const auto length = static_cast<size_t>(patch_.type(v).shape.back() * dtype_size(dtype));
        std::memcpy(to, patch_.constant(v)->bytes.data() + static_cast<size_t>(r) * length, length);
        to += length;
      }
    }
    return patch_.constant(type, ir::dense_data(SharedBytes(std::move(bytes))));
  }

  void join(const std::vector<Branch>& branches) {
    ir::NodeId first = branches[0].last;
    std::vector<ValueId> weights;
    std::vector<ValueId> rows;
    for (const Branch& b : branches) {
      first = std::min(first, b.last);
      weights.push_back(b.weights());
      rows.push_back(b.bias);
    }
    patch_.at(first);
    const NodeView& product = branches[0].product;
    const int64_t k = product.input_type(1).shape[0];
    if (k == 0) return;
    ValueId all =
        patch_.op("matmul", {product.input(0), side_by_side(weights, k)}, product.attrs());
    if (branches[0].bias != kNoId) all = patch_.op("add", {all, one_row(rows)});
    if (branches[0].cast) all = patch_.op("cast", {all}, {{"to", *branches[0].cast}});
    int64_t from = 0;
    for (const Branch& b : branches) {
      const int64_t axis = patch_.type(all).rank() - 1;
      const int64_t end = from + b.columns();
      ValueId part = patch_.op("slice", {all},
                               {{"starts", std::vector<int64_t>{from}},
                                {"ends", std::vector<int64_t>{end}},
                                {"axes", std::vector<int64_t>{axis}}});
      for (const NodeView& move : b.moves) part = patch_.op(move.op().name, {part}, move.attrs());
      patch_.replace(b.end, part);
      from = end;
    }
    context_.count("attention_operands");
    context_.decide(kJoinProducts, patch_.graph().value(branches[0].end).name, "one product",
                    "shared_input", std::to_string(branches.size()) + " products");
  }

  ir::Patch& patch_;
  const PassContext& context_;
  std::vector<int> readers_;
  std::map<std::vector<ValueId>, ValueId> rows_;  // joined, by their parts
};

// Roundings of attention's rows that nobody reads unrounded, behind moves or not: attention stores
// them rounded.
class Rounder {
 public:
  Rounder(ir::Patch& patch, const PassContext& context)
      : patch_(patch), context_(context), readers_(count_readers(patch.graph())) {}

  void visit(ir::NodeId n) {
    const NodeView cast = patch_.node(n);
    std::vector<NodeView> moves;
    ValueId v = cast.input(0);
    NodeView from = patch_.producer(v);
    for (; readers_[v] == 1 && from && from.op().traits.moves_data && from.inputs() == 1 &&
           from.outputs().size() == 1;
         from = patch_.producer(v)) {
      moves.push_back(from);
      v = from.input(0);
    }
    if (readers_[v] != 1 || !from || !from.is("attend") || from.outputs()[0] != v) return;
    const DType to = cast.type().dtype;
    if (!is_half(to) || from.input_type(0).dtype != to || from.attrs().contains("stored_as"))
      return;
    for (size_t i = 1; i < from.outputs().size(); ++i) {
      if (readers_[from.outputs()[i]] > 0) return;
    }
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < from.inputs(); ++i) inputs.push_back(from.input(i));
    ir::Attrs attrs = from.attrs();
    attrs["stored_as"] = to;
    patch_.at(n);
    ValueId rounded = patch_.op("attend", std::move(inputs), std::move(attrs));
    for (size_t i = moves.size(); i-- > 0;) {
      rounded = patch_.op(moves[i].op().name, {rounded}, moves[i].attrs());
    }
    patch_.replace(cast.outputs()[0], rounded);
    context_.count("attention_rounding");
  }

 private:
  ir::Patch& patch_;
  const PassContext& context_;
  std::vector<int> readers_;
};

}  // namespace

Result<bool> join_products(ir::Graph& graph, const PassContext& context) {
  if (!context.join_products) return false;
  ir::Patch patch(graph, context.ops);
  Joiner joiner(patch, context);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    const NodeView node = patch.node(n);
    if (node.is("attention") || node.is("attend")) joiner.visit(node);
  }
  PYC_ASSIGN(const bool joined, patch.apply());
  ir::Patch rounding(graph, context.ops);
  Rounder rounder(rounding, context);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    if (rounding.node(n).is("cast")) rounder.visit(n);
  }
  PYC_ASSIGN(const bool rounded, rounding.apply());
  return joined || rounded;
}

}  // namespace pyc::passes
