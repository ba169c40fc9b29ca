#include <algorithm>
#include <cmath>
#include <map>

#include "passes/look.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

using ir::kNoId;
using ir::NodeView;
using ir::ValueId;

constexpr std::string_view kNarrowProducts = "narrow_products";
// Rows that matrix units have kernels for in an op that reads its factors where they lie. It is a
// rule of shapes: the canonical graph knows no device.
constexpr int64_t kLongestRow = 128;
constexpr int64_t kRowUnit = 8;  // halves in 16 bytes

class Narrower {
 public:
  Narrower(ir::Patch& patch, const PassContext& context)
      : patch_(patch), context_(context), readers_(count_readers(patch.graph())) {}

  void visit(ir::NodeId n) {
    const NodeView node = patch_.node(n);
    if (!node.op().traits.product) return;
    if (node.type().dtype != DType::kF32 || node.input_type(0).dtype != DType::kF32) return;
    if (const std::string_view why_not = obstacle(node); !why_not.empty()) {
      return decide(node, "kept in f32", why_not);
    }
    patch_.at(n);
    patch_.replace(node.outputs()[0], narrowed(node));
    context_.count(node.op().name);
    decide(node, "operands in " + std::string(dtype_name(context_.precision)), "value_changing");
  }

 private:
  std::string_view obstacle(const NodeView& node) {
    const auto factors = static_cast<size_t>(node.op().traits.factors);
    if (factors == 0) return "not_in_policy";
    if (node.inputs() < 2) return "no_product";
    if (node.op().traits.reads_strided) {
      for (size_t i = 0; i < factors; ++i) {
        const int64_t n = node.input_type(i).shape.back();
        if (n > kLongestRow || n % kRowUnit != 0) return "row_not_for_units";
      }
    }
    for (size_t i = 1; i < node.outputs().size(); ++i) {
      if (readers_[node.outputs()[i]] > 0) return "other_output_read";
    }
    // What is not multiplied, as a mask, may be as low as it likes.
    for (size_t i = 0; i < node.inputs() && i < factors; ++i) {
      if (overflows(moved_constant(node.input(i)))) return "constant_overflows";
    }
    return "";
  }

  ValueId narrowed(const NodeView& node) {
    const ir::Traits& traits = node.op().traits;
    const auto factors = static_cast<size_t>(traits.factors);
    const bool adds = traits.adds_input && node.inputs() > factors;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < (adds ? factors : node.inputs()); ++i) {
      inputs.push_back(traits.reads_strided ? half_moved(node.input(i)) : turned(node.input(i)));
    }
    ir::Attrs attrs = node.attrs();
    attrs["to"] = DType::kF32;
    const ValueId sum = patch_.op(node.op().name, std::move(inputs), std::move(attrs));
    return adds ? patch_.op("add", {sum, added(node, factors)}) : sum;
  }

  // What the product added to its sum as input i, in the form that an addition behind it takes.
  ValueId added(const NodeView& node, size_t i) {
    if (const auto found = node.attrs().find("beta"); found != node.attrs().end()) {
      const double beta = std::get<double>(found->second);
      if (beta == 1.0) return node.input(i);
      const ir::TensorType scalar{DType::kF32, {}};
      return patch_.op("mul",
                       {node.input(i), patch_.constant(scalar, ir::splat_data(scalar, beta))});
    }
    ir::Shape column(static_cast<size_t>(node.type().rank() - 1), 1);
    column[0] = node.type().shape[1];
    return patch_.op("reshape", {node.input(i)}, {{"shape", column}});
  }

  // The constant that moves alone made `v` of, each of one value; `v` itself if there is none.
  ValueId moved_constant(ValueId v) {
    ValueId at = v;
    for (NodeView from = patch_.producer(at); from; from = patch_.producer(at)) {
      if (!from.op().traits.moves_data || from.inputs() != 1) return v;
      at = from.input(0);
    }
    return patch_.constant(at) != nullptr ? at : v;
  }

  // The half type of a value, rounded before its elements are moved: the node reads where they lie,
  // so what made them can store halves.
  ValueId half_moved(ValueId v) {
    const NodeView from = patch_.producer(v);
    if (!from || !from.op().traits.moves_data || patch_.type(v).dtype != DType::kF32) {
      return half(v);
    }
    if (const auto found = halves_.find(v); found != halves_.end()) return found->second;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < from.inputs(); ++i) inputs.push_back(half_moved(from.input(i)));
    const ValueId first = patch_.op(from.op().name, std::move(inputs), from.attrs());
    if (first == kNoId) return kNoId;
    const auto& outputs = from.outputs();
    const auto at = std::find(outputs.begin(), outputs.end(), v) - outputs.begin();
    return halves_[v] = first + static_cast<ValueId>(at);
  }

  // A factor. A matrix that is read turned, as gradients read weights and activations, is rounded
  // as it lies: forward reads the same halves, and a product turns what it reads for nothing.
  ValueId turned(ValueId v) {
    const NodeView from = patch_.producer(v);
    const bool turns = from && from.op().name == "transpose" && from.type().rank() == 2 &&
                       patch_.type(v).dtype == DType::kF32;
    if (!turns || moved_constant(v) != v) return half(v);
    const ValueId source = from.input(0);
    const NodeView before = patch_.producer(source);
    const bool reshaped = before && before.op().name == "reshape";
    ValueId made = half(reshaped ? before.input(0) : source);
    if (reshaped) made = patch_.op("reshape", {made}, before.attrs());
    return patch_.op("transpose", {made}, from.attrs());
  }

  // An f32 value as the half type; others as they are. A constant is rounded here and now, also
  // where it lies another way: a product packs it from there.
  ValueId half(ValueId v) {
    if (patch_.type(v).dtype != DType::kF32) return v;
    if (moved_constant(v) != v) return half_moved(v);
    if (const auto found = halves_.find(v); found != halves_.end()) return found->second;
    const ValueId made = patch_.constant(v) != nullptr
                             ? constant_half(v)
                             : patch_.op("cast", {v}, {{"to", context_.precision}});
    return halves_[v] = made;
  }

  ValueId constant_half(ValueId v) {
    const ir::TensorType type{context_.precision, patch_.type(v).shape};
    return patch_.constant(type, ir::dense_data(SharedBytes(std::move(rounded(v).bytes))));
  }

  // Whether a finite element of a constant becomes an infinity.
  bool overflows(ValueId v) {
    if (patch_.constant(v) == nullptr || patch_.type(v).dtype != DType::kF32) return false;
    return rounded(v).overflows;
  }

  // A constant in the half type. Its bytes are there until constant_half takes them.
  struct Rounded {
    std::vector<std::byte> bytes;
    bool overflows = false;
  };
  Rounded& rounded(ValueId v) {
    const auto [at, fresh] = rounded_.try_emplace(v);
    Rounded& r = at->second;
    if (!fresh) return r;
    const ir::TensorType type{context_.precision, patch_.type(v).shape};
    r.bytes.resize(static_cast<size_t>(type.bytes()));
    r.overflows = narrow_floats(patch_.constant(v)->bytes.data(),
                                static_cast<size_t>(type.elements()), type.dtype, r.bytes.data());
    return r;
  }

  void decide(const NodeView& node, std::string chosen, std::string_view reason) {
    context_.decide(kNarrowProducts, patch_.graph().value(node.outputs()[0]).name,
                    std::move(chosen), std::string(reason), std::string(node.op().name));
  }

  ir::Patch& patch_;
  const PassContext& context_;
  std::vector<int> readers_;
  std::map<ValueId, ValueId> halves_;
  std::map<ValueId, Rounded> rounded_;
};

}  // namespace

Result<bool> narrow_products(ir::Graph& graph, const PassContext& context) {
  if (!is_half(context.precision)) return false;
  ir::Patch patch(graph, context.ops);
  Narrower narrower(patch, context);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) narrower.visit(n);
  return patch.apply();
}

}  // namespace pyc::passes
