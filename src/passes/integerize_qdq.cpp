#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "passes/look.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

using ir::kNoId;
using ir::NodeView;
using ir::ValueId;

constexpr std::string_view kIntegerizeQdq = "integerize_qdq";

// An f32 that stands for 8-bit integers: (x - zero) * scale.
struct Quantized {
  ValueId x = kNoId;
  ValueId scale = kNoId;
  ValueId zero = kNoId;  // or none
  int64_t axis = -1;     // of one scale per index; -1: one for all

  bool per_tensor() const { return axis < 0; }
};

bool is_byte(DType t) { return t == DType::kI8 || t == DType::kU8; }

std::optional<Quantized> quantized(const ir::Patch& patch, ValueId v) {
  const NodeView node = patch.producer(behind_copies(patch, v));
  if (!node.is("dequantize") || !is_byte(node.input_type(0).dtype)) return std::nullopt;
  if (node.type().dtype != DType::kF32 || node.input_type(1).dtype != DType::kF32) {
    return std::nullopt;
  }
  Quantized q;
  q.x = behind_copies(patch, node.input(0));
  q.scale = node.input(1);
  if (node.inputs() > 2) q.zero = node.input(2);
  if (node.input_type(1).elements() == 1) return q;
  if (node.input_type(1).rank() != 1) return std::nullopt;  // blocks
  const int64_t axis = std::get<int64_t>(node.attrs().at("axis"));
  q.axis = axis < 0 ? axis + node.type().rank() : axis;
  return q;
}

// The products of two quantized operands, summed over `depth`.
struct Product {
  Quantized a;
  Quantized b;
  int64_t columns_axis = 0;  // of b: where its scales may lie
  int64_t depth = 0;
};

// Rewrites the nodes it is shown.
class Integerizer {
 public:
  Integerizer(ir::Patch& patch, const PassContext& context) : patch_(patch), context_(context) {}

  void visit(ir::NodeId n) {
    const NodeView node = patch_.node(n);
    if (node.is("quantize")) return cancel(n, node);
    if (node.is("conv")) return contraction(n, node, 0);
    if (node.is("matmul") || node.is("gemm")) return contraction(n, node, node.type().rank() - 1);
  }

 private:
  // f(x·s) quantized with the same s is f on the integers, exactly, if f only moves elements or
  // keeps their order.
  void cancel(ir::NodeId n, const NodeView& quantize) {
    std::vector<NodeView> between;
    ValueId v = behind_copies(patch_, quantize.input(0));
    NodeView node = patch_.producer(v);
    while (keeps_order(node)) {
      between.push_back(node);
      v = behind_copies(patch_, node.input(0));
      node = patch_.producer(v);
    }
    const auto q = quantized(patch_, v);
    if (!q || !q->per_tensor() || !same_numbers(*q, quantize)) return;
    patch_.at(n);
    ValueId x = q->x;
    std::reverse(between.begin(), between.end());
    for (const NodeView& f : between) {
      x = f.is("relu") ? patch_.op("max", {x, scalar_zero(*q)})
                       : patch_.op(f.op().name, {x}, f.attrs());
    }
    patch_.replace(quantize.outputs()[0], x);
    context_.count("same_scale");
    decide(quantize, "computed on integers", "same_scale");
  }

  static bool keeps_order(const NodeView& node) {
    if (!node || node.inputs() != 1 || node.outputs().size() != 1) return false;
    const bool moves = node.op().traits.moves_data && !node.attrs().contains("value");
    return moves || node.is("flatten") || node.is("max_pool") || node.is("relu");
  }

  // Whether the quantization is that of `q`, by a scale that neither overflows nor underflows.
  bool same_numbers(const Quantized& q, const NodeView& quantize) const {
    constexpr double kSmallest = 1e-30;
    constexpr double kLargest = 1e30;
    const auto scale = constant_number(patch_, q.scale);
    if (!scale || !(*scale > kSmallest && *scale < kLargest)) return false;
    if (quantize.input_type(1).dtype != DType::kF32 || quantize.input_type(1).elements() != 1) {
      return false;
    }
    if (constant_number(patch_, quantize.input(1)) != scale) return false;
    if (quantize.type().dtype != patch_.type(q.x).dtype) return false;
    return zero_number(q.zero) == zero_number(quantize.inputs() > 2 ? quantize.input(2) : kNoId);
  }

  // Not a number when it is not constant: then it equals no other.
  double zero_number(ValueId zero) const {
    if (zero == kNoId) return 0.0;
    return constant_number(patch_, zero).value_or(std::numeric_limits<double>::quiet_NaN());
  }

  void contraction(ir::NodeId n, const NodeView& node, int64_t columns_axis) {
    const auto a = quantized(patch_, node.input(0));
    const auto b = quantized(patch_, node.input(1));
    if (!a || !b) return;
    Product p{*a, *b, columns_axis, depth_of(node)};
    if (flag(node, "trans_b")) p.columns_axis = 0;
    if (const std::string_view why_not = obstacle(node, p); !why_not.empty()) {
      return decide(node, "kept", std::string(why_not));
    }
    patch_.at(n);
    const ValueId real = node.is("conv") ? convolution(node, p) : product(node, p);
    patch_.replace(node.outputs()[0], real);
    context_.count(node.op().name);
    decide(node, "integer products", "value_changing");
  }

  static bool flag(const NodeView& node, std::string_view name) {
    const auto it = node.attrs().find(name);
    return it != node.attrs().end() && std::get<bool>(it->second);
  }

  static int64_t depth_of(const NodeView& node) {
    if (node.is("conv")) {
      const ir::TensorType& w = node.input_type(1);
      return w.shape[0] > 0 ? w.elements() / w.shape[0] : 0;
    }
    const ir::Shape& a = node.input_type(0).shape;
    if (a.empty()) return 0;
    return flag(node, "trans_a") ? a.front() : a.back();
  }

  std::string_view obstacle(const NodeView& node, const Product& p) const {
    if (!p.a.per_tensor()) return "scales_along_the_sum";
    if (!p.b.per_tensor() && p.b.axis != axis_in_b(node, p)) return "scales_along_the_sum";
    if (node.input_type(0).rank() < 2 || node.input_type(1).rank() < 2) return "rank";
    const auto is_one = [&](const char* name) {
      return std::get<double>(node.attrs().at(name)) == 1.0;
    };
    if (node.is("gemm") && !(is_one("alpha") && is_one("beta"))) return "factors";
    const int64_t each = largest(p.a) * largest(p.b);
    if (p.depth > std::numeric_limits<int32_t>::max() / each) return "sum_may_overflow";
    return "";
  }

  static int64_t axis_in_b(const NodeView& node, const Product& p) {
    const bool columns_last = !node.is("conv") && !flag(node, "trans_b");
    return columns_last ? node.input_type(1).rank() - 1 : p.columns_axis;
  }

  // The largest magnitude of x - zero.
  int64_t largest(const Quantized& q) const {
    constexpr int64_t kUnsigned = 255;
    constexpr int64_t kSigned = 128;
    return patch_.type(q.x).dtype == DType::kI8 && zero_number(q.zero) == 0.0 ? kSigned : kUnsigned;
  }

  ValueId reshape(ValueId v, const ir::Shape& shape) {
    return patch_.type(v).shape == shape ? v : patch_.op("reshape", {v}, {{"shape", shape}});
  }

  ValueId scalar_zero(const Quantized& q) {
    if (q.zero != kNoId) return reshape(q.zero, {});
    const ir::TensorType type{patch_.type(q.x).dtype, {}};
    return patch_.constant(type, ir::splat_data(type, 0.0));
  }

  // One number for all as a scalar, others as a column of the given shape.
  ValueId shaped(ValueId v, bool per_tensor, const ir::Shape& column) {
    return reshape(v, per_tensor ? ir::Shape{} : column);
  }

  // The sum as the real number it stands for, with the bias.
  ValueId rescaled(ValueId sum, const Product& p, const ir::Shape& column, ValueId bias) {
    const ValueId scale =
        patch_.op("mul", {reshape(p.a.scale, {}), shaped(p.b.scale, p.b.per_tensor(), column)});
    const ValueId real = patch_.op("mul", {patch_.op("cast", {sum}, {{"to", DType::kF32}}), scale});
    return bias == kNoId ? real : patch_.op("add", {real, bias});
  }

  ValueId convolution(const NodeView& conv, const Product& p) {
    std::vector<ValueId> inputs{p.a.x, p.b.x};
    if (p.a.zero != kNoId || p.b.zero != kNoId) inputs.push_back(scalar_zero(p.a));
    if (p.b.zero != kNoId) {
      const ir::Shape channels{conv.input_type(1).shape[0]};
      inputs.push_back(shaped(p.b.zero, p.b.per_tensor(), channels));
    }
    const ValueId sum = patch_.op("conv_integer", std::move(inputs), conv.attrs());
    ir::Shape column(static_cast<size_t>(conv.type().rank() - 1), 1);
    column[0] = conv.input_type(1).shape[0];
    const ValueId bias = conv.inputs() > 2 ? reshape(conv.input(2), column) : kNoId;
    return rescaled(sum, p, column, bias);
  }

  ValueId product(const NodeView& node, const Product& p) {
    const auto operand = [&](ValueId v, const char* transposed) {
      if (!flag(node, transposed)) return v;
      return patch_.op("transpose", {v}, {{"perm", std::vector<int64_t>{1, 0}}});
    };
    std::vector<ValueId> inputs{operand(p.a.x, "trans_a"), operand(p.b.x, "trans_b")};
    std::string with;
    const ir::Shape column{node.type().shape.back()};
    if (p.a.zero != kNoId) {
      inputs.push_back(reshape(p.a.zero, {}));
      with = "a_zero_point";
    }
    if (p.b.zero != kNoId) {
      inputs.push_back(shaped(p.b.zero, p.b.per_tensor(), column));
      with += with.empty() ? "b_zero_point" : ",b_zero_point";
    }
    const ValueId sum = patch_.op("matmul_integer", std::move(inputs), {{"with", with}});
    return rescaled(sum, p, column, node.inputs() > 2 ? node.input(2) : kNoId);
  }

  void decide(const NodeView& node, std::string chosen, std::string reason) {
    context_.decide(kIntegerizeQdq, patch_.graph().value(node.outputs()[0]).name, std::move(chosen),
                    std::move(reason), std::string(node.op().name));
  }

  ir::Patch& patch_;
  const PassContext& context_;
};

}  // namespace

Result<bool> integerize_qdq(ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, context.ops);
  Integerizer integerizer(patch, context);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) integerizer.visit(n);
  return patch.apply();
}

}  // namespace pyc::passes
