#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/operands.h"
#include "ops/support/products.h"

namespace pyc::ops {
namespace {

// q is [B,H,S,D], k [B,G,T,D], v [B,G,T,E]; H is a multiple of G. Keys of the past come first.
constexpr size_t kRequired = 3;

int at_of(const ir::Attrs& attrs, std::string_view name) {
  return operand_at(attrs, kRequired, name);
}

Status check_heads(const InferArgs& args) {
  const TensorType& q = args.inputs[0];
  const TensorType& k = args.inputs[1];
  const TensorType& v = args.inputs[2];
  constexpr std::string_view kNames[] = {"q", "k", "v"};
  for (size_t i = 0; i < kRequired; ++i) PYC_TRY(require_rank(kNames[i], args.inputs[i], 4));
  PYC_TRY(require_dtype("q", q, kFloats));
  PYC_TRY(require_same_dtype(q, k));
  PYC_TRY(require_same_dtype(q, v));
  const bool batches = k.shape[0] == q.shape[0] && v.shape[0] == q.shape[0];
  const bool keys = v.shape[1] == k.shape[1] && v.shape[2] == k.shape[2];
  if (!batches || !keys || k.shape[3] != q.shape[3]) {
    return refuse(Code::kShapeMismatch, "q ", q, ", k ", k, " and v ", v, " do not fit");
  }
  if (k.shape[1] < 1 || q.shape[1] % k.shape[1] != 0) {
    return refuse(Code::kShapeMismatch, "the ", q.shape[1],
                  " heads of q must be a multiple of the ", k.shape[1], " of k");
  }
  return {};
}

Status check_past(const InferArgs& args) {
  const int key = at_of(args.attrs, "past_key");
  const int value = at_of(args.attrs, "past_value");
  if ((key < 0) != (value < 0)) {
    return refuse(Code::kInvalidArgument, "past_key and past_value come together");
  }
  if (key < 0) return {};
  if (at_of(args.attrs, "nonpad_kv_seqlen") >= 0) {
    return refuse(Code::kInvalidArgument, "nonpad_kv_seqlen and past_key exclude one another");
  }
  const TensorType& past_key = args.inputs[static_cast<size_t>(key)];
  PYC_TRY(require_rank("past_key", past_key, 4));
  for (size_t i = 1; i < kRequired; ++i) {
    const TensorType& now = args.inputs[i];
    const TensorType& past = args.inputs[static_cast<size_t>(i == 1 ? key : value)];
    PYC_TRY(require_same_dtype(now, past));
    const Shape expected{now.shape[0], now.shape[1], past_key.shape[2], now.shape[3]};
    if (past.shape == expected) continue;
    return refuse(Code::kShapeMismatch, i == 1 ? "past_key" : "past_value", " must have shape ",
                  expected, ", found ", past);
  }
  return {};
}

// `scores` is the shape of q·kᵀ.
Status check_mask(const InferArgs& args, const Shape& scores) {
  const int at = at_of(args.attrs, "mask");
  if (at < 0) return {};
  const TensorType& mask = args.inputs[static_cast<size_t>(at)];
  if (mask.dtype != DType::kBool && mask.dtype != args.inputs[0].dtype) {
    return refuse(Code::kDtypeMismatch, "mask must have dtype bool or ", args.inputs[0].dtype,
                  ", found ", mask);
  }
  Shape padded = mask.shape;
  if (!padded.empty() && padded.back() != 1) {
    padded.back() = std::max(padded.back(), scores.back());
  }
  const auto joined = ir::broadcast_shapes(scores, padded);
  if (joined.ok() && *joined == scores) return {};
  return refuse(Code::kShapeMismatch, "mask ", mask, " does not broadcast to ", scores);
}

Status check_attrs(const InferArgs& args) {
  const int64_t mode = args.attr_int("qk_output");
  if (mode < 0 || mode > 3) {
    return refuse(Code::kInvalidArgument, "qk_output must lie in [0,3], found ", mode);
  }
  for (std::string_view side : {"left_window", "right_window"}) {
    if (args.attr_int(side) >= -1) continue;
    return refuse(Code::kInvalidArgument, "", side, " must be -1 or more, found ",
                  args.attr_int(side));
  }
  const int lengths = at_of(args.attrs, "nonpad_kv_seqlen");
  if (lengths < 0) return {};
  const TensorType& type = args.inputs[static_cast<size_t>(lengths)];
  PYC_TRY(require_dtype("nonpad_kv_seqlen", type, kIndices));
  if (type.shape == Shape{args.inputs[0].shape[0]}) return {};
  return refuse(Code::kShapeMismatch, "nonpad_kv_seqlen must have shape [", args.inputs[0].shape[0],
                "], found ", type);
}

Types infer_attention(const InferArgs& args) {
  PYC_TRY(
      require_operands(args, kRequired, {"mask", "past_key", "past_value", "nonpad_kv_seqlen"}));
  PYC_TRY(check_heads(args));
  PYC_TRY(check_past(args));
  PYC_TRY(check_attrs(args));
  const TensorType& q = args.inputs[0];
  TensorType key = args.inputs[1];
  TensorType value = args.inputs[2];
  const int past = at_of(args.attrs, "past_key");
  if (past >= 0) {
    key.shape[2] += args.inputs[static_cast<size_t>(past)].shape[2];
    value.shape[2] = key.shape[2];
  }
  const Shape scores{q.shape[0], q.shape[1], q.shape[2], key.shape[2]};
  PYC_TRY(check_mask(args, scores));
  Shape y = q.shape;
  y[3] = value.shape[3];
  PYC_ASSIGN(const DType to, product_dtype(args));
  return std::vector<TensorType>{{to, y}, key, value, {q.dtype, scores}};
}

// One attention node on its way.
class Attention {
 public:
  // Guarded, rows without a key give their 0 without a NaN on the way: for gradients.
  Attention(Compose& c, const ir::Node& node, bool guarded)
      : c_(c), node_(node), guarded_(guarded) {}

  std::vector<ValueId> build() {
    const DType stored = c_.input_type(0).dtype;
    const ValueId key = present(1, "past_key");
    const ValueId value = present(2, "past_value");
    keys_ = c_.type(key).shape[2];
    mask_ = whole_mask();
    const ValueId q = c_.input(0);
    const Rows rows = attend(q, key, value);
    const ValueId scores = c_.cast(shown(key, rows), stored);
    const DType result = c_.attrs().has("to") ? c_.attrs().attr_dtype("to") : stored;
    return {c_.cast(rows.y, result), key, value, scores};
  }

 private:
  double scale_factor(int64_t head_size) const {
    const double given = c_.attrs().attr_float("scale");
    return given != 0.0 ? given : 1.0 / std::sqrt(static_cast<double>(head_size));
  }

  ValueId present(size_t i, std::string_view past_name) {
    const int past = at_of(node_.attrs, past_name);
    if (past < 0) return c_.input(i);
    return c_.concat({c_.input(static_cast<size_t>(past)), c_.input(i)}, 2);
  }

  // The product of each head of `a` with the head of `b` that its group shares.
  ValueId per_head(ValueId a, ValueId b) {
    const Shape left = c_.type(a).shape;
    const Shape right = c_.type(b).shape;
    if (left.size() != 4 || right.size() != 4) return ir::kNoId;
    if (left[1] == right[1]) return c_.op("matmul", {a, b});
    const ValueId grouped =
        c_.reshape(a, {left[0], right[1], left[1] / right[1], left[2], left[3]});
    const ValueId shared = c_.reshape(b, {right[0], right[1], 1, right[2], right[3]});
    return c_.reshape(c_.op("matmul", {grouped, shared}), {left[0], left[1], left[2], right[3]});
  }

  struct Rows {
    ValueId y;
    ValueId m;
    ValueId l;
  };

  Rows attend(ValueId q, ValueId key, ValueId value) {
    const ir::InferArgs attrs = c_.attrs();
    std::vector<ValueId> inputs{q, key, value};
    std::string with;
    const auto give = [&](std::string_view name, ValueId v) {
      with += with.empty() ? "" : ",";
      with += name;
      inputs.push_back(v);
    };
    if (mask_ != ir::kNoId) give("mask", mask_);
    if (const int at = at_of(node_.attrs, "nonpad_kv_seqlen"); at >= 0) {
      give("lengths", c_.input(static_cast<size_t>(at)));
    }
    const ValueId y = c_.op("attend", std::move(inputs),
                            {{"with", with},
                             {"scale", scale_factor(c_.input_type(0).shape[3])},
                             {"softcap", std::max(attrs.attr_float("softcap"), 0.0)},
                             {"causal", attrs.attr_bool("causal")},
                             {"left_window", attrs.attr_int("left_window")},
                             {"right_window", attrs.attr_int("right_window")},
                             {"past", keys_ - c_.input_type(1).shape[2]}});
    return y == ir::kNoId ? Rows{y, y, y} : Rows{y, y + 1, y + 2};
  }

  // What output 3 shows: products by the scale, then with the cap, with masks, or as weights.
  ValueId shown(ValueId key, const Rows& rows) {
    const int64_t mode = c_.attrs().attr_int("qk_output");
    const ValueId k = c_.cast(key, compute_dtype(c_.input_type(0).dtype));
    const ValueId raw = c_.scale(per_head(c_.wide_input(0), c_.transpose(k, {0, 1, 3, 2})),
                                 scale_factor(c_.input_type(0).shape[3]));
    if (mode == 0) return raw;
    const ValueId capped = soft_capped(raw);
    if (mode == 1) return capped;
    const ValueId masked = with_masks(capped);
    if (mode == 2) return masked;
    const auto per_row = [&](ValueId x) {
      ir::Shape shape = c_.type(x).shape;
      shape.push_back(1);
      return c_.reshape(x, shape);
    };
    const ValueId m = per_row(rows.m);
    const ValueId none = c_.op("equal", {m, lowest_like(m)});
    const auto unless_none = [&](ValueId x, double instead) {
      return guarded_ ? c_.op("where", {none, c_.scalar_like(x, instead), x}) : x;
    };
    const ValueId e = c_.op("exp", {c_.sub(masked, unless_none(m, 0.0))});
    const ValueId p = c_.div(e, unless_none(per_row(rows.l), 1.0));
    return c_.op("where", {none, c_.scalar_like(m, 0.0), p});
  }

  ValueId soft_capped(ValueId s) {
    const double cap = c_.attrs().attr_float("softcap");
    if (cap <= 0.0) return s;
    return c_.scale(c_.op("tanh", {c_.div(s, c_.scalar_like(s, cap))}), cap);
  }

  ValueId lowest_like(ValueId s) {
    return c_.scalar_like(s, -std::numeric_limits<double>::infinity());
  }
  // s where the condition holds, else -inf; and the other way round.
  ValueId keep(ValueId s, ValueId condition) {
    return c_.op("where", {condition, s, lowest_like(s)});
  }
  ValueId drop(ValueId s, ValueId condition) {
    return c_.op("where", {condition, lowest_like(s), s});
  }

  ValueId with_masks(ValueId s) {
    s = with_mask_input(s);
    const int lengths_at = at_of(node_.attrs, "nonpad_kv_seqlen");
    const ir::InferArgs attrs = c_.attrs();
    const int64_t left = attrs.attr_int("left_window");
    const int64_t right = attrs.attr_int("right_window");
    if (lengths_at < 0 && !attrs.attr_bool("causal") && left < 0 && right < 0) return s;

    const int64_t queries = c_.input_type(0).shape[2];
    const ValueId key_at = c_.positions(4, 3, keys_);
    // Where each query stands among the keys: behind the past, or at the end of those that count.
    ValueId query_at = c_.positions(4, 2, queries);
    if (lengths_at >= 0) {
      const auto at = static_cast<size_t>(lengths_at);
      const ValueId lengths =
          c_.reshape(c_.cast(c_.input(at), DType::kI64), {c_.input_type(at).shape[0], 1, 1, 1});
      s = keep(s, c_.op("less", {key_at, lengths}));
      query_at = c_.add(query_at, c_.shift(lengths, -static_cast<double>(queries)));
    } else {
      query_at = c_.shift(query_at, static_cast<double>(keys_ - c_.input_type(1).shape[2]));
    }
    if (attrs.attr_bool("causal")) s = drop(s, c_.op("less", {query_at, key_at}));
    if (left >= 0) {
      s = drop(s, c_.op("less", {key_at, c_.shift(query_at, -static_cast<double>(left))}));
    }
    if (right >= 0) {
      s = drop(s, c_.op("less", {c_.shift(query_at, static_cast<double>(right)), key_at}));
    }
    return s;
  }

  // The mask with all keys: those behind its end are not attended to.
  ValueId whole_mask() {
    const int mask_at = at_of(node_.attrs, "mask");
    if (mask_at < 0) return ir::kNoId;
    const ValueId mask = c_.input(static_cast<size_t>(mask_at));
    const TensorType type = c_.type(mask);
    if (type.rank() == 0 || type.shape.back() == 1 || type.shape.back() >= keys_) return mask;
    Ints pads(2 * type.shape.size(), 0);
    pads.back() = keys_ - type.shape.back();
    const double beyond =
        type.dtype == DType::kBool ? 0.0 : -std::numeric_limits<double>::infinity();
    return c_.op("pad", {mask}, {{"pads", pads}, {"value", beyond}});
  }

  ValueId with_mask_input(ValueId s) {
    if (mask_ == ir::kNoId) return s;
    if (c_.type(mask_).dtype == DType::kBool) return keep(s, mask_);
    return c_.add(s, c_.cast(mask_, c_.type(s).dtype));
  }

  Compose& c_;
  const ir::Node& node_;
  const bool guarded_;
  int64_t keys_ = 0;
  ValueId mask_ = ir::kNoId;
};

Result<std::vector<ValueId>> decompose_attention(ir::GraphBuilder& builder, const ir::Node& node) {
  Compose c(builder, node);
  return c.outputs(Attention(c, node, false).build());
}

Result<std::vector<ValueId>> gradient_form_attention(ir::GraphBuilder& builder,
                                                     const ir::Node& node) {
  Compose c(builder, node);
  return c.outputs(Attention(c, node, true).build());
}

Result<ValueId> draw_attention(Draw& d, DType t) {
  const int64_t b = d.pick(1, 2);
  const int64_t groups = d.pick(1, 2);
  const int64_t heads = groups * d.pick(1, 2);
  const int64_t s = d.pick(1, 4);
  const int64_t keys = d.pick(1, 5);
  const int64_t size = d.pick(1, 8);
  const int64_t out = d.pick(1, 8);
  DrawnOperands o{{d.tensor(t, {b, heads, s, size}), d.tensor(t, {b, groups, keys, size}),
                   d.tensor(t, {b, groups, keys, out})},
                  ""};
  const int64_t past = d.chance(3) ? d.pick(1, 3) : 0;
  if (d.flip()) {
    o.add("mask",
          d.tensor(d.flip() ? DType::kBool : t, d.broadcastable({b, heads, s, past + keys})));
  }
  if (past > 0) {
    o.add("past_key", d.tensor(t, {b, groups, past, size}));
    o.add("past_value", d.tensor(t, {b, groups, past, out}));
  } else if (d.chance(4)) {
    o.add("nonpad_kv_seqlen", d.fresh(DType::kI64, {b}, 1.0, static_cast<double>(keys) + 0.5));
  }
  Attrs attrs{{"with", o.with}, {"causal", d.chance(3)}, {"qk_output", d.pick(0, 3)}};
  if (d.chance(3)) attrs["scale"] = 0.5;
  if (d.chance(3)) attrs["softcap"] = 2.0;
  if (d.chance(4)) attrs["left_window"] = d.pick(0, 3);
  return d.op(std::move(o.inputs), std::move(attrs));
}

}  // namespace

const ir::OpDef& op_attention() {
  static const ir::OpDef def{
      .name = "attention",
      .summary =
          "softmax(scale*q·kᵀ + mask)·v per head, in blocks of keys (attend); a row without a key "
          "to attend to becomes 0.",
      .min_inputs = 3,
      .max_inputs = 7,
      .outputs = 4,
      .attrs = {with_attr(), optional("scale", 0.0), optional("causal", false),
                optional("softcap", 0.0), optional("left_window", int64_t{-1}),
                optional("right_window", int64_t{-1}), optional("qk_output", int64_t{0}),
                wide_result_attr()},
      .infer = infer_attention,
      .decompose = decompose_attention,
      .traits = {.reads_strided = true, .product = true, .factors = 3},
      .gradient_form = gradient_form_attention,
      .draw = {.node = draw_attention},
  };
  return def;
}

}  // namespace pyc::ops
