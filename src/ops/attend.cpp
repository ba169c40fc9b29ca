#include <array>
#include <limits>

#include "loop/functions.h"
#include "ops/kernel.h"
#include "ops/support/backward.h"
#include "ops/support/draws.h"
#include "ops/support/infer.h"
#include "ops/support/operands.h"

namespace pyc::ops {
namespace {

// q is [B,H,S,D], k [B,G,T,D], v [B,G,T,E]; H is a multiple of G.
constexpr size_t kTensors = 3;

Types infer_attend(const InferArgs& args) {
  PYC_TRY(require_operands(args, kTensors, {"mask", "lengths"}));
  const TensorType& q = args.inputs[0];
  const TensorType& k = args.inputs[1];
  const TensorType& v = args.inputs[2];
  for (size_t i = 0; i < kTensors; ++i) {
    PYC_TRY(require_rank(i == 0 ? "q" : i == 1 ? "k" : "v", args.inputs[i], 4));
    PYC_TRY(require_same_dtype(q, args.inputs[i]));
  }
  PYC_TRY(require_dtype("q", q, kFloats));
  const Shape keys{q.shape[0], k.shape[1], k.shape[2], q.shape[3]};
  const Shape values{q.shape[0], k.shape[1], k.shape[2], v.shape[3]};
  if (k.shape != keys || v.shape != values || k.shape[1] < 1 || q.shape[1] % k.shape[1] != 0) {
    return refuse(Code::kShapeMismatch, "q ", q, ", k ", k, " and v ", v, " do not fit");
  }
  const Shape scores{q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
  const DType wide = compute_dtype(q.dtype);
  if (const int at = operand_at(args.attrs, kTensors, "mask"); at >= 0) {
    const TensorType& mask = args.inputs[static_cast<size_t>(at)];
    if (mask.dtype != DType::kBool && mask.dtype != q.dtype && mask.dtype != wide) {
      return refuse(Code::kDtypeMismatch, "mask must have dtype bool",
                    q.dtype == wide ? "" : ", f32", " or ", q.dtype, ", found ", mask);
    }
    const auto joined = ir::broadcast_shapes(scores, mask.shape);
    if (!joined.ok() || *joined != scores) {
      return refuse(Code::kShapeMismatch, "mask ", mask, " does not broadcast to ", scores);
    }
  }
  if (const int at = operand_at(args.attrs, kTensors, "lengths"); at >= 0) {
    const TensorType& lengths = args.inputs[static_cast<size_t>(at)];
    PYC_TRY(require_dtype("lengths", lengths, kIndices));
    if (lengths.shape != Shape{q.shape[0]}) {
      return refuse(Code::kShapeMismatch, "lengths must have shape [", q.shape[0], "], found ",
                    lengths);
    }
  }
  const DType stored = args.has("stored_as") ? args.attr_dtype("stored_as") : wide;
  if (stored != wide && stored != q.dtype) {
    return refuse(Code::kDtypeMismatch, "stored_as must be ", wide, " or ", q.dtype, ", found ",
                  stored);
  }
  const Shape rows{q.shape[0], q.shape[1], q.shape[2]};
  const Shape y{q.shape[0], q.shape[1], q.shape[2], v.shape[3]};
  return std::vector<TensorType>{{stored, y}, {wide, rows}, {wide, rows}};
}

// Reads the operands of one attend node and forms its scores.
class Attend {
 public:
  explicit Attend(KernelContext& context)
      : c_(context),
        mask_(operand_at(context.node().attrs, kTensors, "mask")),
        lengths_(operand_at(context.node().attrs, kTensors, "lengths")),
        wide_(context.output_type(1).dtype) {}

  void write() {
    const Shape& q = c_.input_type(0).shape;
    const Shape& k = c_.input_type(1).shape;
    shared_ = q[1] / k[1];
    AttentionForm form;
    form.batch = {q[0], k[1], shared_};
    form.queries = q[2];
    form.keys = k[2];
    form.depth = q[3];
    form.columns = c_.input_type(2).shape[3];
    form.q = [this](std::span<const Expr> at, Expr query, Expr d) {
      return c_.input_compute(0, std::array{at[0], head(at), query, d});
    };
    form.k = [this](std::span<const Expr> at, Expr key, Expr d, Expr in_range) {
      return read(1, std::array{at[0], at[1], key, d}, in_range);
    };
    form.v = [this](std::span<const Expr> at, Expr key, Expr e, Expr in_range) {
      return read(2, std::array{at[0], at[1], key, e}, in_range);
    };
    form.score = [this](std::span<const Expr> at, Expr query, Expr key, Expr product,
                        Expr in_range) { return score(at, query, key, product, in_range); };
    c_.attention(form);
  }

 private:
  Expr head(std::span<const Expr> at) { return at[1] * c_.index(shared_) + at[2]; }

  // The element in the type of the scores; 0 where the key is not in range.
  Expr read(int i, std::span<const Expr> index, Expr in_range) {
    if (!in_range.valid()) return convert(c_.input(i, index), wide_);
    const Expr none = constant(c_.pool(), c_.input_type(i).dtype, 0.0);
    return convert(c_.input_if(i, index, in_range, none), wide_);
  }

  Expr score(std::span<const Expr> at, Expr query, Expr key, Expr product, Expr in_range) {
    Expr s = product * like(product, c_.attr_float("scale"));
    if (const double cap = c_.attr_float("softcap"); cap > 0.0) {
      s = loop::tanh(s / like(s, cap)) * like(s, cap);
    }
    Expr live;
    const auto only_where = [&](Expr condition) {
      live = live.valid() ? live & condition : condition;
    };
    if (mask_ >= 0) {
      const Shape& shape = c_.input_type(mask_).shape;
      const Expr full[] = {at[0], head(at), query, key};
      std::vector<Expr> index;
      for (size_t d = 0; d < shape.size(); ++d) {
        index.push_back(shape[d] == 1 ? c_.index(0) : full[d + 4 - shape.size()]);
      }
      if (c_.input_type(mask_).dtype == DType::kBool) {
        only_where(read_mask(index, in_range));
      } else {
        s = s + read(mask_, index, in_range);
      }
    }
    limit(at, query, key, only_where);
    if (!live.valid()) return s;
    return select(live, s, like(s, -std::numeric_limits<double>::infinity()));
  }

  Expr read_mask(std::span<const Expr> index, Expr in_range) {
    if (!in_range.valid()) return c_.input(mask_, index);
    return c_.input_if(mask_, index, in_range, constant(c_.pool(), DType::kBool, 0.0));
  }

  // Keys beyond a length, after the query, or outside its window are not attended to.
  template <class OnlyWhere>
  void limit(std::span<const Expr> at, Expr query, Expr key, const OnlyWhere& only_where) {
    Expr place = query + c_.index(c_.attr_int("past"));
    if (lengths_ >= 0) {
      const Expr length = convert(c_.input(lengths_, std::array{at[0]}), DType::kI64);
      only_where(lt(key, length));
      place = query + (length - c_.index(c_.input_type(0).shape[2]));
    }
    if (c_.attr_bool("causal")) only_where(le(key, place));
    const int64_t left = c_.attr_int("left_window");
    const int64_t right = c_.attr_int("right_window");
    if (left >= 0) only_where(le(place - c_.index(left), key));
    if (right >= 0) only_where(le(key, place + c_.index(right)));
  }

  KernelContext& c_;
  const int mask_;
  const int lengths_;
  const DType wide_;
  int64_t shared_ = 1;
};

void kernel_attend(KernelContext& context) { Attend(context).write(); }

// The gradients from the rows' maxima and sums: the scores are computed again, in one piece, and
// with them the weights exp(s - m) / l.
class AttendGradient {
 public:
  explicit AttendGradient(Backward& b)
      : b_(b),
        mask_(operand_at(b.node_attrs(), kTensors, "mask")),
        lengths_(operand_at(b.node_attrs(), kTensors, "lengths")),
        q_(b.input_type(0).shape),
        k_(b.input_type(1).shape) {}

  Grads build() {
    const ValueId raw = b_.scale(b_.op("matmul", {rows(b_.x(0)), turned(b_.x(1))}), scale());
    const ValueId capped = cap() > 0.0 ? b_.fn("tanh", b_.scale(raw, 1.0 / cap())) : raw;
    const ValueId scores = limited(heads(cap() > 0.0 ? b_.scale(capped, cap()) : raw));
    const ValueId of_scores = through_softmax(scores);
    ValueId of_raw = b_.scale(rows(of_scores), scale());
    if (cap() > 0.0) of_raw = b_.mul(of_raw, b_.shift(b_.neg(b_.mul(capped, capped)), 1.0));
    const ValueId of_q = b_.reshape(b_.op("matmul", {of_raw, b_.x(1)}), q_);
    const ValueId of_k = b_.op("matmul", {turned(of_raw), rows(b_.x(0))});
    const ValueId of_v = b_.op("matmul", {turned(rows(weights_)), rows(b_.g(0))});
    std::vector<ValueId> result{b_.stored(of_q, 0), b_.stored(of_k, 1), b_.stored(of_v, 2)};
    for (size_t i = kTensors; i < b_.inputs(); ++i) {
      const bool added = static_cast<int>(i) == mask_ && is_float(b_.input_type(i).dtype);
      result.push_back(added ? b_.to_input(of_scores, i) : ir::kNoId);
    }
    return b_.outputs(result);
  }

 private:
  double scale() const { return b_.attrs().attr_float("scale"); }
  double cap() const { return b_.attrs().attr_float("softcap"); }
  // [B,H,S,n] with the heads that share keys as one run of rows, and scores back as [B,H,S,T].
  ValueId rows(ValueId v) {
    return b_.reshape(v, {q_[0], k_[1], q_[1] / k_[1] * q_[2], b_.type(v).shape.back()});
  }
  ValueId heads(ValueId v) { return b_.reshape(v, {q_[0], q_[1], q_[2], k_[2]}); }
  ValueId turned(ValueId v) { return b_.transpose(v, {0, 1, 3, 2}); }
  ValueId per_row(ValueId v) { return b_.reshape(v, {q_[0], q_[1], q_[2], 1}); }
  ValueId lowest(ValueId v) { return b_.scalar_like(v, -std::numeric_limits<double>::infinity()); }

  // What the softmax sends to the scores; and its weights.
  ValueId through_softmax(ValueId scores) {
    const ValueId m = per_row(b_.y(1));
    const ValueId none = b_.equal(m, lowest(m));
    const ValueId e = b_.except(none, b_.fn("exp", b_.sub(scores, b_.except(none, m))));
    const ValueId l = per_row(b_.y(2));
    weights_ = b_.div(e, b_.where(none, b_.scalar_like(l, 1.0), l));
    const ValueId of_weights = heads(b_.op("matmul", {rows(b_.g(0)), turned(b_.x(2))}));
    const ValueId mean = b_.sum(b_.mul(b_.g(0), b_.y(0)), {3}, true);
    const ValueId result = b_.mul(weights_, b_.sub(of_weights, mean));
    if (!b_.arrives(1) && !b_.arrives(2)) return result;
    // The sums by their terms, and less as the maximum grows; the maximum by its scores, evenly.
    const ValueId of_l = per_row(b_.g(2));
    const ValueId of_m = b_.sub(per_row(b_.g(1)), b_.mul(of_l, l));
    const ValueId top = b_.equal(scores, m);
    const ValueId count = b_.sum(b_.cast(top, b_.type(m).dtype), {3}, true);
    const ValueId to_top = b_.except(none, b_.only(top, b_.div(of_m, count)));
    return b_.add(b_.add(result, b_.mul(e, of_l)), to_top);
  }

  ValueId limited(ValueId s) {
    if (mask_ >= 0) {
      const ValueId mask = b_.input(static_cast<size_t>(mask_));
      const bool chooses = b_.type(mask).dtype == DType::kBool;
      s = chooses ? b_.where(mask, s, lowest(s)) : b_.add(s, b_.wide(mask));
    }
    const ir::InferArgs attrs = b_.attrs();
    const ValueId key = b_.positions(4, 3, k_[2]);
    ValueId query =
        b_.shift(b_.positions(4, 2, q_[2]), static_cast<double>(attrs.attr_int("past")));
    const auto only_where = [&](std::string_view order, ValueId a, ValueId c) {
      s = b_.where(b_.op(order, {a, c}), s, lowest(s));
    };
    if (lengths_ >= 0) {
      const ValueId given = b_.cast(b_.input(static_cast<size_t>(lengths_)), DType::kI64);
      const ValueId length = b_.reshape(given, {q_[0], 1, 1, 1});
      only_where("less", key, length);
      query = b_.add(b_.positions(4, 2, q_[2]), b_.shift(length, -static_cast<double>(q_[2])));
    }
    const int64_t left = attrs.attr_int("left_window");
    const int64_t right = attrs.attr_int("right_window");
    if (attrs.attr_bool("causal")) only_where("less_equal", key, query);
    if (left >= 0) only_where("less_equal", b_.shift(query, -static_cast<double>(left)), key);
    if (right >= 0) only_where("less_equal", key, b_.shift(query, static_cast<double>(right)));
    return s;
  }

  Backward& b_;
  const int mask_;
  const int lengths_;
  const Shape q_;
  const Shape k_;
  ValueId weights_ = ir::kNoId;
};

Grads gradient_attend(ir::GraphBuilder& builder, const ir::Node& node,
                      std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  return AttendGradient(b).build();
}

// Long enough now and then for several blocks of keys and tasks of several rows.
Result<ValueId> draw_attend(Draw& d, DType t) {
  const int64_t b = d.pick(1, 2);
  const int64_t groups = d.pick(1, 2);
  const int64_t heads = groups * d.pick(1, 2);
  const int64_t s = d.chance(3) ? d.pick(8, 20) : d.pick(1, 4);
  const int64_t keys = d.chance(3) ? d.pick(120, 270) : d.pick(1, 9);
  const int64_t size = d.pick(1, 9);
  const int64_t out = d.pick(1, 9);
  DrawnOperands o{{d.tensor(t, {b, heads, s, size}), d.tensor(t, {b, groups, keys, size}),
                   d.tensor(t, {b, groups, keys, out})},
                  ""};
  if (d.flip()) {
    o.add("mask", d.tensor(d.flip() ? DType::kBool : t, d.broadcastable({b, heads, s, keys})));
  }
  if (d.chance(4)) {
    o.add("lengths", d.fresh(DType::kI64, {b}, 1.0, static_cast<double>(keys) + 0.5));
  }
  Attrs attrs{{"with", o.with}, {"causal", d.chance(3)}, {"scale", 0.5}};
  if (d.chance(3)) attrs["softcap"] = 2.0;
  if (d.chance(4)) attrs["left_window"] = d.pick(0, 3);
  if (d.chance(4)) attrs["past"] = d.pick(0, 3);
  return d.op(std::move(o.inputs), std::move(attrs));
}

}  // namespace

const ir::OpDef& op_attend() {
  static const ir::OpDef def{
      .name = "attend",
      .summary =
          "Attention over keys in blocks of 128 with a running maximum: the rows, their maxima and "
          "their sums, in f32 (f64 for f64); the rows rounded to `stored_as` if that is given.",
      .min_inputs = 3,
      .max_inputs = 5,
      .outputs = 3,
      .attrs = {with_attr(), required("scale", ir::AttrKind::kFloat), optional("softcap", 0.0),
                optional("causal", false), optional("left_window", int64_t{-1}),
                optional("right_window", int64_t{-1}), optional("past", int64_t{0}),
                ir::AttrDef::or_absent("stored_as", ir::AttrKind::kDType)},
      .infer = infer_attend,
      .kernel = kernel_attend,
      .traits = {.reads_strided = true},
      .on_unit = [](const InferArgs&) { return true; },
      .gradient = gradient_attend,
      .draw = {.node = draw_attend},
  };
  return def;
}

}  // namespace pyc::ops
