#include <algorithm>

#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/index.h"
#include "ops/support/infer.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

// Output dim i is input dim perm[i].
Ints permutation(const Ints& perm, int64_t rank) {
  if (!perm.empty()) return perm;
  Ints reversed;
  for (int64_t i = rank; i-- > 0;) reversed.push_back(i);
  return reversed;
}

Types infer_transpose(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const Ints perm = permutation(args.attr_ints("perm"), x.rank());
  PYC_TRY(require_ints("perm", perm, x.shape.size(), 0, x.rank() - 1));
  std::vector<bool> seen(x.shape.size(), false);
  Shape shape;
  for (int64_t from : perm) {
    const auto at = static_cast<size_t>(from);
    if (seen[at]) {
      return refuse(Code::kInvalidArgument, "perm ", perm, " names dim ", from, " twice");
    }
    seen[at] = true;
    shape.push_back(x.shape[at]);
  }
  return one(x.dtype, std::move(shape));
}

Expr lower_transpose(LowerContext& context, int, std::span<const Expr> index) {
  const Ints perm = permutation(context.attr_ints("perm"), context.input_type(0).rank());
  Index at(index.size());
  for (size_t i = 0; i < index.size(); ++i) at[static_cast<size_t>(perm[i])] = index[i];
  return context.input(0, at);
}

ir::Attrs canonical_perm(const InferArgs& args) {
  ir::Attrs attrs = args.attrs;
  attrs["perm"] = permutation(args.attr_ints("perm"), args.inputs[0].rank());
  return attrs;
}

Ints permutation(const NodeView& node) {
  return permutation(std::get<Ints>(node.attrs().at("perm")), node.type().rank());
}

// Whether dims of more than one element keep their order.
bool moves_nothing(const Ints& perm, const Shape& shape) {
  int64_t last = -1;
  for (const int64_t from : perm) {
    if (shape[static_cast<size_t>(from)] == 1) continue;
    if (from < last) return false;
    last = from;
  }
  return true;
}

ValueId simplify_transpose(Patch& patch, const NodeView& node) {
  const Ints perm = permutation(node);
  if (std::is_sorted(perm.begin(), perm.end())) return patch.by("transpose_nothing", node.input(0));
  if (patch.uniform(node.input(0))) {
    return patch.by("transpose_uniform",
                    patch.constant(node.type(), patch.constant(node.input(0))));
  }
  if (moves_nothing(perm, node.input_type(0).shape)) {
    return patch.by("transpose_of_ones",
                    patch.op("reshape", {node.input(0)}, {{"shape", node.type().shape}}));
  }
  const NodeView inner = patch.producer(node.input(0));
  if (!inner.is("transpose")) return kNoId;
  Ints joined;
  for (const int64_t from : perm) joined.push_back(permutation(inner)[static_cast<size_t>(from)]);
  if (std::is_sorted(joined.begin(), joined.end())) {
    return patch.by("transpose_back", inner.input(0));
  }
  return patch.by("transpose_transpose",
                  patch.op("transpose", {inner.input(0)}, {{"perm", joined}}));
}

// The node that made v, if it is of that op and gives a matrix.
const ir::Node* matrix_by(const ir::Graph& graph, ValueId v, std::string_view op) {
  const ir::NodeId n = graph.value(v).producer;
  if (n == ir::kNoId || graph.nodes[n].op->name != op || graph.type(v).rank() != 2) return nullptr;
  return &graph.nodes[n];
}

// (aᵀ·g)ᵀ, what a weight that is read turned gets, is gᵀ·a: the same products in the same order,
// and elements of the result lie as those of the weight do.
Grads gradient_transpose(ir::GraphBuilder& builder, const ir::Node& node,
                         std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  const Ints perm = permutation(b.attrs().attr_ints("perm"), b.input_type(0).rank());
  Ints back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  const ir::Graph& graph = builder.graph();
  const ValueId arrived = b.g();
  const ir::Node* product = matrix_by(graph, arrived, "matmul");
  const ir::Node* turned =
      product != nullptr ? matrix_by(graph, product->inputs[0], "transpose") : nullptr;
  if (turned != nullptr && perm == Ints{1, 0} && graph.type(product->inputs[1]).rank() == 2) {
    const ValueId rows = turned->inputs[0];
    const ir::Attrs attrs = product->attrs;
    const ValueId columns = b.transpose(product->inputs[1], {1, 0});
    return b.outputs({b.stored(b.op("matmul", {columns, rows}, attrs), 0)});
  }
  return b.outputs({b.stored(b.transpose(arrived, back), 0)});
}

Result<ValueId> draw_transpose(Draw& d, DType t) {
  const Shape shape = d.shape();
  Attrs attrs;
  if (!d.chance(5)) attrs["perm"] = d.permutation(std::ssize(shape));
  return d.op({d.tensor(t, shape)}, std::move(attrs));
}

}  // namespace

const ir::OpDef& op_transpose() {
  static const ir::OpDef def{
      .name = "transpose",
      .summary = "Dims in the order of perm (none given: reversed).",
      .attrs = {optional("perm", Ints{})},
      .infer = infer_transpose,
      .lower = lower_transpose,
      .traits = {.moves_data = true},
      .canonical_attrs = canonical_perm,
      .simplify = simplify_transpose,
      .gradient = gradient_transpose,
      .onnx = {.name = "Transpose", .attrs = "perm", .small = true},
      .draw = {.node = draw_transpose},
  };
  return def;
}

}  // namespace pyc::ops
