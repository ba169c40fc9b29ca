#include "autograd/join.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <variant>

namespace pyc::autograd {
namespace {

using ir::kNoId;
using ir::ValueId;
using Ints = std::vector<int64_t>;

const ir::Node* producer(const ir::Graph& graph, ValueId v) {
  const ir::NodeId n = graph.value(v).producer;
  return n == kNoId ? nullptr : &graph.nodes[n];
}

bool is_thin_product(const ir::Graph& graph, ValueId v) {
  const ir::Node* product = producer(graph, v);
  if (product == nullptr || product->op->name != "matmul") return false;
  const ir::Node* turned = producer(graph, product->inputs[0]);
  if (turned == nullptr || turned->op->name != "transpose" || graph.type(v).rank() != 2) {
    return false;
  }
  const ir::Shape& a = graph.type(turned->inputs[0]).shape;
  const ir::Shape& g = graph.type(product->inputs[1]).shape;
  return a.size() == 2 && g.size() == 2 && a[0] * (a[1] + g[1]) <= a[1] * g[1];
}

struct Piece {
  ValueId value;
  size_t dim;
  int64_t begin;
  int64_t end;
};

// A pad with zeros along one dim as the range it fills; of no dim at all if it is none.
Piece piece_of(const ir::Graph& graph, ValueId v) {
  Piece piece{kNoId, 0, 0, 0};
  const ir::Node* pad = producer(graph, v);
  if (pad == nullptr || pad->op->name != "pad") return piece;
  if (std::get<std::string>(pad->attrs.at("mode")) != "constant" ||
      std::get<double>(pad->attrs.at("value")) != 0.0) {
    return piece;
  }
  const Ints& pads = std::get<Ints>(pad->attrs.at("pads"));
  const ir::Shape& shape = graph.type(v).shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t before = pads[d];
    const int64_t behind = pads[d + shape.size()];
    if (before == 0 && behind == 0) continue;
    if (before < 0 || behind < 0 || piece.value != kNoId) return {kNoId, 0, 0, 0};
    piece = {pad->inputs[0], d, before, shape[d] - behind};
  }
  return piece;
}

Result<ValueId> one_product(ir::GraphBuilder& builder, const std::vector<ValueId>& products) {
  const ir::Graph& graph = builder.graph();
  std::vector<ValueId> left;
  std::vector<ValueId> right;
  for (const ValueId v : products) {
    const ir::Node* product = producer(graph, v);
    left.push_back(producer(graph, product->inputs[0])->inputs[0]);
    right.push_back(product->inputs[1]);
  }
  const ir::Attrs rows{{"axis", int64_t{0}}};
  PYC_ASSIGN(const ValueId a, builder.op("concat", left, rows));
  PYC_ASSIGN(const ValueId g, builder.op("concat", right, rows));
  PYC_ASSIGN(const ValueId turned, builder.op("transpose", {a}, {{"perm", Ints{1, 0}}}));
  return builder.op("matmul", {turned, g});
}

// The summands as pieces in the order of their ranges; none if two overlap or dims differ.
std::vector<Piece> side_by_side(const ir::Graph& graph, const std::vector<ValueId>& summands) {
  std::vector<Piece> pieces;
  for (const ValueId v : summands) pieces.push_back(piece_of(graph, v));
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].dim != pieces[0].dim || pieces[i].begin < pieces[i - 1].end) return {};
  }
  return pieces;
}

// Whether +0 was added to every element, so that none is −0.
bool has_no_negative_zero(const ir::Graph& graph, ValueId v) {
  const ir::Node* node = producer(graph, v);
  while (node != nullptr && node->op->name == "reshape") node = producer(graph, node->inputs[0]);
  if (node == nullptr || node->op->name != "add") return false;
  const auto& zero = graph.value(node->inputs[1]).constant;
  return zero != nullptr &&
         std::ranges::all_of(zero->bytes, [](std::byte b) { return b == std::byte{0}; });
}

Result<ValueId> added(ir::GraphBuilder& builder, const std::vector<ValueId>& summands) {
  ValueId sum = summands[0];
  for (size_t i = 1; i < summands.size(); ++i) {
    PYC_ASSIGN(sum, builder.op("add", {sum, summands[i]}));
  }
  return sum;
}

Result<ValueId> one_value(ir::GraphBuilder& builder, const std::vector<ValueId>& summands) {
  const std::vector<Piece> pieces = side_by_side(builder.graph(), summands);
  if (pieces.empty()) return added(builder, summands);
  const ir::TensorType whole = builder.type(summands[0]);
  const size_t dim = pieces[0].dim;
  PYC_ASSIGN(const ValueId zero, builder.scalar(whole.dtype, 0.0));
  std::vector<ValueId> parts;
  int64_t at = 0;
  const auto fill = [&](int64_t end) -> Status {
    if (end == at) return {};
    ir::Shape gap = whole.shape;
    gap[dim] = end - at;
    PYC_ASSIGN(const ValueId zeros, builder.op("expand", {zero}, {{"shape", gap}}));
    parts.push_back(zeros);
    return {};
  };
  for (const Piece& piece : pieces) {
    PYC_TRY(fill(piece.begin));
    parts.push_back(piece.value);
    at = piece.end;
  }
  PYC_TRY(fill(whole.shape[dim]));
  PYC_ASSIGN(const ValueId all, builder.op("concat", parts, {{"axis", static_cast<int64_t>(dim)}}));
  const bool done = std::ranges::all_of(pieces, [&](const Piece& piece) {
    return has_no_negative_zero(builder.graph(), piece.value);
  });
  return done ? all : builder.op("add", {all, zero});
}

}  // namespace

Summand summand(const ir::Graph& graph, ValueId v) {
  if (is_thin_product(graph, v)) return Summand::kProduct;
  return piece_of(graph, v).value != kNoId ? Summand::kPiece : Summand::kPlain;
}

Result<ValueId> joined(ir::GraphBuilder& builder, const std::vector<ValueId>& summands) {
  return summand(builder.graph(), summands[0]) == Summand::kProduct ? one_product(builder, summands)
                                                                    : one_value(builder, summands);
}

}  // namespace pyc::autograd
