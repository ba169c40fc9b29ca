#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "passes/look.h"
#include "passes/passes.h"

namespace pyc::passes {
namespace {

using ir::kNoId;
using ir::NodeView;
using ir::ValueId;

constexpr std::string_view kRaiseAttention = "raise_attention";
constexpr int64_t kRank = 4;  // of the op's operands: batch, heads, rows, columns
// Added to a score, such a number leaves nothing of it.
constexpr double kAbsorbs = -1e30;

// The parts of softmax(q·kᵀ·scale + mask)·v.
struct Parts {
  ValueId q = kNoId;
  ValueId k_transposed = kNoId;
  ValueId v = kNoId;
  ValueId mask = kNoId;       // what is added to the scores
  ValueId condition = kNoId;  // or where they are kept, or dropped
  bool drops = false;
  double fill = 0.0;  // stands where they are not kept
  double scale = 1.0;
  ir::Shape scores;  // what the mask is said for
};

// Whether two shapes are stacks of equal matrices.
bool same_matrix(const ir::Shape& a, const ir::Shape& b) {
  return a.size() >= 2 && b.size() >= 2 && std::equal(a.end() - 2, a.end(), b.end() - 2);
}

// How many matrices a stack has.
int64_t matrices(const ir::Shape& shape) {
  return std::accumulate(shape.begin(), shape.end() - 2, int64_t{1}, std::multiplies<>());
}

// The shape of an operand with the scores' batch and heads, which torch makes one dim before a
// product; keys that all heads share keep their 1. Nothing when it has other matrices.
std::optional<ir::Shape> with_batch_of(const ir::Shape& scores, const ir::Shape& operand) {
  const size_t batch = scores.size() - 2;
  const bool shared = batch > 0 && operand.size() == scores.size() && operand[batch - 1] == 1 &&
                      std::equal(operand.begin(), operand.end() - 3, scores.begin());
  if (shared) return operand;
  ir::Shape shape(scores.begin(), scores.end() - 2);
  shape.insert(shape.end(), operand.end() - 2, operand.end());
  if (matrices(shape) != matrices(operand)) return std::nullopt;
  return shape;
}

// Looks at one product and says what it is.
class Match {
 public:
  Match(const ir::Patch& patch, const std::vector<int>& readers)
      : patch_(patch), readers_(readers) {}

  // True when `product` is the second product of an attention; then why_not() is "" or why it
  // cannot be raised. False when it is something else altogether.
  bool found(const NodeView& product) {
    if (!product.is("matmul")) return false;
    const NodeView softmax = softmax_of(product.input(0));
    if (!softmax || !find_scores(softmax.input(0))) return false;
    parts_.v = product.input(1);
    dtype_ = product.type().dtype;
    absorb_factors();
    check_axis(softmax);
    if (!same_matrix(product.input_type(0).shape, parts_.scores)) refuse("scores_reshaped");
    check_shapes();
    return true;
  }
  const Parts& parts() const { return parts_; }
  const std::string& why_not() const { return why_not_; }

 private:
  void refuse(std::string_view reason) {
    if (why_not_.empty()) why_not_ = reason;
  }

  using Kept = bool (*)(const ir::Shape&, const ir::Shape&);

  // What `v` is made by, through copies, casts between floats, and reshapes that keep what matters.
  // What lies on the way is inside the pattern: nothing else may read it.
  NodeView inner(ValueId v, Kept kept) {
    for (;;) {
      only_reader(v);
      const NodeView node = patch_.producer(v);
      if (node.is("reshape") && kept(node.input_type(0).shape, node.type().shape)) {
        v = node.input(0);
        continue;
      }
      const bool cast =
          node.is("cast") && is_float(node.type().dtype) && is_float(node.input_type(0).dtype);
      if (!cast && !node.is("identity")) return node;
      v = node.input(0);
    }
  }

  static bool same_rows(const ir::Shape& a, const ir::Shape& b) {
    return !a.empty() && !b.empty() && a.back() == b.back();
  }

  void only_reader(ValueId v) {
    if (v < readers_.size() && readers_[v] > 1) refuse("read_elsewhere");
  }

  // Exporters guard against rows without a key: where(is_nan(p), 0, p). The op gives 0 there.
  NodeView softmax_of(ValueId v) {
    const NodeView node = inner(v, same_rows);
    if (node.is("softmax")) return node;
    if (!node.is("where") || patch_.current(node.input(2)) >= readers_.size()) return {};
    const NodeView guard = patch_.producer(node.input(0));
    const NodeView guarded = patch_.producer(node.input(2));
    if (!guard.is("is_nan") || !guarded.is("softmax") || guard.input(0) != node.input(2)) return {};
    if (constant_number(patch_, node.input(1)) != 0.0) return {};
    if (readers_[node.input(2)] > 2) refuse("read_elsewhere");
    return guarded;
  }

  // The scores below an optional mask.
  bool find_scores(ValueId v) {
    const NodeView node = inner(v, same_rows);
    if (!node) return false;
    parts_.scores = node.type().shape;
    if (node.is("add")) {
      for (size_t i : {0, 1}) {
        if (!find_product(node.input(i))) continue;
        parts_.mask = node.input(1 - i);
        check_mask(parts_.mask, node.input_type(i));
        return true;
      }
      return false;
    }
    if (node.is("where")) {
      for (size_t i : {1, 2}) {
        if (!find_product(node.input(i))) continue;
        parts_.condition = node.input(0);
        parts_.drops = i == 2;
        check_fill(node.input(3 - i));
        check_mask(parts_.condition, node.input_type(i));
        return true;
      }
      return false;
    }
    return find_product(node.outputs()[0]);
  }

  // q·kᵀ below factors that are constants.
  bool find_product(ValueId v) {
    const std::string before = why_not_;
    double scale = 1.0;
    for (NodeView node = inner(v, same_matrix);; node = inner(v, same_matrix)) {
      if (node.is("matmul")) {
        parts_.q = node.input(0);
        parts_.k_transposed = node.input(1);
        parts_.scale = scale;
        return true;
      }
      if (!node.is("mul") && !node.is("div")) break;
      size_t scores = 0;
      auto factor = constant_number(patch_, node.input(1));
      if (!factor && node.is("mul")) {
        factor = constant_number(patch_, node.input(0));
        scores = factor ? 1 : 0;
      }
      if (!factor) refuse("scale_not_constant");
      if (node.input_type(scores) != node.type()) refuse("scale_broadcasts");
      scale *= node.is("mul") ? factor.value_or(1.0) : 1.0 / factor.value_or(1.0);
      v = node.input(scores);
    }
    why_not_ = before;
    return false;
  }

  void check_fill(ValueId v) {
    const auto fill = constant_number(patch_, v);
    if (!fill) return refuse("mask_fill_not_constant");
    parts_.fill = *fill;
    if (std::isinf(*fill) && *fill < 0) return;
    // Rows without a key depend on it.
    if (!(*fill <= kAbsorbs)) refuse("mask_fill_is_a_score");
  }

  void check_mask(ValueId mask, const ir::TensorType& scores) {
    const auto joined = ir::broadcast_shapes(scores.shape, patch_.type(mask).shape);
    if (!joined.ok() || *joined != scores.shape) refuse("mask_broadcasts_scores");
    const DType t = patch_.type(mask).dtype;
    if (t != DType::kBool && t != scores.dtype) refuse("mask_dtype");
  }

  // A factor of q or k right at the product goes into the scale.
  void absorb_factors() {
    for (ValueId* operand : {&parts_.q, &parts_.k_transposed}) {
      const NodeView node = patch_.producer(*operand);
      if (!node.is("mul") && !node.is("div")) continue;
      if (*operand >= readers_.size() || readers_[*operand] > 1) continue;
      size_t other = 0;
      auto factor = constant_number(patch_, node.input(1));
      if (!factor && node.is("mul")) {
        factor = constant_number(patch_, node.input(0));
        other = 1;
      }
      if (!factor || node.input_type(other) != node.type()) continue;
      parts_.scale *= node.is("mul") ? *factor : 1.0 / *factor;
      *operand = node.input(other);
    }
  }

  void check_axis(const NodeView& softmax) {
    const int64_t axis = std::get<int64_t>(softmax.attrs().at("axis"));
    const int64_t rank = softmax.type().rank();
    if (axis != -1 && axis != rank - 1) refuse("softmax_axis");
  }

  void check_shapes() {
    const ir::TensorType& q = patch_.type(parts_.q);
    const ir::TensorType& k = patch_.type(parts_.k_transposed);
    const ir::TensorType& v = patch_.type(parts_.v);
    if (q.dtype != dtype_ || k.dtype != dtype_ || v.dtype != dtype_) return refuse("dtypes_differ");
    if (parts_.mask != kNoId && patch_.type(parts_.mask).dtype != dtype_) refuse("mask_dtype");
    if (!std::isfinite(parts_.scale) || parts_.scale == 0.0) refuse("scale_not_finite");
    const auto rank = static_cast<int64_t>(parts_.scores.size());
    if (rank < 2 || rank > kRank || q.rank() < 2 || k.rank() < 2 || v.rank() < 2) {
      return refuse("rank");
    }
    const auto rows = with_batch_of(parts_.scores, q.shape);
    const auto keys = with_batch_of(parts_.scores, k.shape);
    const auto values = with_batch_of(parts_.scores, v.shape);
    const auto batch = rank - 2;
    if (!rows || !keys || !values ||
        !std::equal(keys->begin(), keys->begin() + batch, values->begin()) ||
        !std::equal(rows->begin(), rows->begin() + batch, parts_.scores.begin())) {
      refuse("batch_differs");
    }
  }

  const ir::Patch& patch_;
  const std::vector<int>& readers_;
  Parts parts_;
  DType dtype_ = DType::kF32;
  std::string why_not_;
};

using HeadOrder = std::vector<int64_t>;

// Builds the op in place of the node it is anchored at.
class Raise {
 public:
  Raise(ir::Patch& patch, const Parts& parts) : patch_(patch), parts_(parts) {}

  ValueId build(const ir::TensorType& type) {
    const ValueId q = rank4(batched(parts_.q));
    ValueId k = rank4(untransposed(batched(parts_.k_transposed)));
    ValueId v = rank4(batched(parts_.v));
    share_heads(k, v);
    std::vector<ValueId> inputs{q, k, v};
    ir::Attrs attrs{{"scale", parts_.scale}};
    if (const ValueId mask = mask_operand(); mask != kNoId) {
      inputs.push_back(mask);
      attrs["with"] = std::string("mask");
    }
    const ValueId y = patch_.op("attention", std::move(inputs), std::move(attrs));
    if (patch_.type(y) == type) return y;
    return patch_.op("reshape", {y}, {{"shape", type.shape}});
  }

 private:
  // With the scores' batch and heads; what was made one dim for the product was such before.
  ValueId batched(ValueId v) {
    const ir::Shape shape = *with_batch_of(parts_.scores, patch_.type(v).shape);
    if (patch_.type(v).shape == shape) return v;
    const NodeView node = patch_.producer(v);
    if (node.is("reshape") && node.input_type(0).shape == shape) return node.input(0);
    return patch_.op("reshape", {v}, {{"shape", shape}});
  }

  ValueId rank4(ValueId v) {
    ir::Shape shape = patch_.type(v).shape;
    if (shape.size() == kRank) return v;
    shape.insert(shape.begin(), kRank - shape.size(), 1);
    return patch_.op("reshape", {v}, {{"shape", shape}});
  }

  // kᵀ with its last two dims changed back; a transpose of a transpose is one or none.
  ValueId untransposed(ValueId v) {
    HeadOrder perm(static_cast<size_t>(patch_.type(v).rank()));
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    const NodeView node = patch_.producer(v);
    if (node.is("transpose") && !std::get<HeadOrder>(node.attrs().at("perm")).empty()) {
      const auto& given = std::get<HeadOrder>(node.attrs().at("perm"));
      for (int64_t& p : perm) p = given[static_cast<size_t>(p)];
      v = node.input(0);
    }
    if (std::is_sorted(perm.begin(), perm.end())) return v;
    return patch_.op("transpose", {v}, {{"perm", perm}});
  }

  // Keys and values repeated for the heads that share them are given once:
  // reshape(expand(reshape(x [b,g,t,d], [b,g,1,t,d]), [b,g,r,t,d]), [b,g*r,t,d]).
  ValueId unrepeated(ValueId v) const {
    const NodeView merged = patch_.producer(v);
    if (!merged.is("reshape")) return v;
    const NodeView repeated = patch_.producer(merged.input(0));
    if (!repeated.is("expand")) return v;
    const NodeView split = patch_.producer(repeated.input(0));
    if (!split.is("reshape")) return v;
    const ir::Shape& x = split.input_type(0).shape;
    const ir::Shape& groups = repeated.type().shape;
    if (x.size() != kRank || groups.size() != kRank + 1) return v;
    const bool fits = split.type().shape == ir::Shape{x[0], x[1], 1, x[2], x[3]} &&
                      groups == ir::Shape{x[0], x[1], groups[2], x[2], x[3]} &&
                      merged.type().shape == ir::Shape{x[0], x[1] * groups[2], x[2], x[3]};
    return fits ? split.input(0) : v;
  }

  void share_heads(ValueId& k, ValueId& v) const {
    const ValueId k_once = unrepeated(k);
    const ValueId v_once = unrepeated(v);
    if (patch_.type(k_once).shape[1] != patch_.type(v_once).shape[1]) return;
    k = k_once;
    v = v_once;
  }

  ValueId mask_operand() {
    if (parts_.condition == kNoId) return parts_.mask;
    const ir::TensorType scalar{patch_.type(parts_.q).dtype, {}};
    if (std::isinf(parts_.fill)) {
      return parts_.drops ? patch_.op("logical_not", {parts_.condition}) : parts_.condition;
    }
    const ValueId fill = patch_.constant(scalar, ir::splat_data(scalar, parts_.fill));
    const ValueId zero = patch_.constant(scalar, ir::splat_data(scalar, 0.0));
    return patch_.op("where",
                     {parts_.condition, parts_.drops ? fill : zero, parts_.drops ? zero : fill});
  }

  ir::Patch& patch_;
  const Parts& parts_;
};

std::string describe(const ir::Patch& patch, const Parts& parts) {
  const bool masked = parts.mask != kNoId || parts.condition != kNoId;
  return fmt::format("q {}, scale {}{}", patch.type(parts.q).to_string(), parts.scale,
                     masked ? ", masked" : "");
}

}  // namespace

Result<bool> raise_attention(ir::Graph& graph, const PassContext& context) {
  ir::Patch patch(graph, context.ops);
  const std::vector<int> readers = count_readers(graph);
  for (ir::NodeId n = 0; n < graph.nodes.size(); ++n) {
    const NodeView product = patch.node(n);
    Match match(patch, readers);
    if (!match.found(product)) continue;
    const std::string& name = graph.value(product.outputs()[0]).name;
    if (!match.why_not().empty()) {
      context.decide(kRaiseAttention, name, "kept", match.why_not());
      continue;
    }
    patch.at(n);
    patch.replace(product.outputs()[0], Raise(patch, match.parts()).build(product.type()));
    context.count("attention");
    context.decide(kRaiseAttention, name, "raised to attention", "value_changing",
                   describe(patch, match.parts()));
  }
  return patch.apply();
}

}  // namespace pyc::passes
