#include <cmath>

#include "ops/support/compose.h"
#include "ops/support/draws.h"
#include "ops/support/operands.h"

namespace pyc::ops {
namespace {

// q is [B,T,H*D], k [B,T,G*D], v [B,T,G*E], decay [B,T,G] or [B,T,G*D], beta [B,T,G] or [B,T,1];
// the state is [B,G,D,E].
constexpr size_t kLinearRequired = 3;
// Each token becomes a few nodes.
constexpr int64_t kMaxSteps = 4096;

int linear_at_of(const ir::Attrs& attrs, std::string_view name) {
  return operand_at(attrs, kLinearRequired, name);
}

struct Sizes {
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t heads = 0;
  int64_t groups = 0;
  int64_t key = 0;
  int64_t value = 0;
};

Sizes sizes_of(const InferArgs& args, const TensorType& q, const TensorType& v) {
  Sizes s{q.shape[0], q.shape[1], args.attr_int("num_heads"), args.attr_int("kv_num_heads")};
  s.key = q.shape[2] / s.heads;
  s.value = v.shape[2] / s.groups;
  return s;
}

Status check_rule(const InferArgs& args) {
  const std::string& rule = args.attr_string("update_rule");
  const bool delta = rule == "delta" || rule == "gated_delta";
  const bool gated = rule == "gated" || rule == "gated_delta";
  if (!delta && !gated && rule != "linear") {
    return refuse(Code::kInvalidArgument,
                  "update_rule must be \"linear\", \"gated\", \"delta\" or "
                  "\"gated_delta\", found \"",
                  rule, "\"");
  }
  if ((linear_at_of(args.attrs, "decay") >= 0) != gated ||
      (linear_at_of(args.attrs, "beta") >= 0) != delta) {
    return refuse(Code::kInvalidArgument, "update_rule \"", rule, "\" takes ",
                  gated ? "decay" : "no decay", " and ", delta ? "beta" : "no beta");
  }
  return {};
}

Status check_sizes(const InferArgs& args) {
  constexpr std::string_view kNames[] = {"q", "k", "v"};
  for (size_t i = 0; i < kLinearRequired; ++i) PYC_TRY(require_rank(kNames[i], args.inputs[i], 3));
  const TensorType& q = args.inputs[0];
  const TensorType& k = args.inputs[1];
  const TensorType& v = args.inputs[2];
  PYC_TRY(require_dtype("q", q, kFloats));
  for (size_t i = 1; i < args.inputs.size(); ++i) {
    if (static_cast<int>(i) != linear_at_of(args.attrs, "past_state")) {
      PYC_TRY(require_same_dtype(q, args.inputs[i]));
    }
  }
  const int64_t heads = args.attr_int("num_heads");
  const int64_t groups = args.attr_int("kv_num_heads");
  if (heads < 1 || groups < 1 || heads % groups != 0) {
    return refuse(Code::kInvalidArgument, "num_heads ", heads,
                  " must be a positive multiple of kv_num_heads ", groups);
  }
  const bool places = k.shape[0] == q.shape[0] && k.shape[1] == q.shape[1] &&
                      v.shape[0] == q.shape[0] && v.shape[1] == q.shape[1];
  if (!places || q.shape[2] % heads != 0 || v.shape[2] % groups != 0 ||
      k.shape[2] != q.shape[2] / heads * groups) {
    return refuse(Code::kShapeMismatch, "q ", q, ", k ", k, " and v ", v, " do not fit ", heads,
                  " and ", groups, " heads");
  }
  if (q.shape[1] > kMaxSteps) {
    return refuse(Code::kUnsupported, "sequences longer than ", kMaxSteps,
                  " are not unrolled, found ", q);
  }
  return {};
}

Status check_optional(const InferArgs& args, std::string_view name, const Shape& expected,
                      const Shape& other) {
  const int at = linear_at_of(args.attrs, name);
  if (at < 0) return {};
  const TensorType& found = args.inputs[static_cast<size_t>(at)];
  if (found.shape == expected || found.shape == other) return {};
  return refuse(Code::kShapeMismatch, "", name, " must have shape ", expected,
                expected == other ? "" : " or ", expected == other ? "" : to_text(other),
                ", found ", found);
}

Types infer_linear_attention(const InferArgs& args) {
  PYC_TRY(require_operands(args, kLinearRequired, {"past_state", "decay", "beta"}));
  PYC_TRY(check_rule(args));
  PYC_TRY(check_sizes(args));
  const TensorType& q = args.inputs[0];
  const Sizes s = sizes_of(args, q, args.inputs[2]);
  const Shape state{s.batch, s.groups, s.key, s.value};
  PYC_TRY(check_optional(args, "past_state", state, state));
  PYC_TRY(check_optional(args, "decay", {s.batch, s.steps, s.groups},
                         {s.batch, s.steps, s.groups * s.key}));
  PYC_TRY(check_optional(args, "beta", {s.batch, s.steps, s.groups}, {s.batch, s.steps, 1}));
  const int past = linear_at_of(args.attrs, "past_state");
  const DType state_dtype = past < 0 ? q.dtype : args.inputs[static_cast<size_t>(past)].dtype;
  return std::vector<TensorType>{{q.dtype, {s.batch, s.steps, s.heads * s.value}},
                                 {state_dtype, state}};
}

// The token's part of x [B,T,heads,…], without the axis of time.
ValueId token(Compose& c, ValueId x, int64_t t, Shape shape) {
  return c.reshape(c.slice(x, 1, t, t + 1), std::move(shape));
}

Result<std::vector<ValueId>> decompose_linear_attention(ir::GraphBuilder& builder,
                                                        const ir::Node& node) {
  Compose c(builder, node);
  const InferArgs attrs = c.attrs();
  const TensorType q_type = c.input_type(0);
  const Sizes s = sizes_of(attrs, q_type, c.input_type(2));
  const auto optional_input = [&](std::string_view name) {
    const int at = linear_at_of(node.attrs, name);
    return at < 0 ? ir::kNoId : c.wide_input(static_cast<size_t>(at));
  };
  const ValueId q = c.wide_input(0);
  const ValueId k = c.wide_input(1);
  const ValueId v = c.wide_input(2);
  const DType wide = compute_dtype(q_type.dtype);
  const ValueId past = optional_input("past_state");
  const Shape state_shape{s.batch, s.groups, s.key, s.value};
  ValueId state =
      past != ir::kNoId ? c.cast(past, wide) : c.expand(c.constant(wide, {}, {0.0}), state_shape);
  const ValueId decay = optional_input("decay");
  const ValueId factor = decay == ir::kNoId ? decay : c.op("exp", {decay});
  const int64_t factors = decay == ir::kNoId ? 0 : c.type(decay).shape[2] / s.groups;
  const ValueId beta = optional_input("beta");
  const int64_t betas = beta == ir::kNoId ? 0 : c.type(beta).shape[2];

  std::vector<ValueId> rows;
  for (int64_t t = 0; t < s.steps; ++t) {
    if (factor != ir::kNoId) {
      state = c.mul(state, token(c, factor, t, {s.batch, s.groups, factors, 1}));
    }
    ValueId written = token(c, v, t, {s.batch, s.groups, 1, s.value});
    if (beta != ir::kNoId) {
      const ValueId known = c.op("matmul", {token(c, k, t, {s.batch, s.groups, 1, s.key}), state});
      written = c.mul(token(c, beta, t, {s.batch, betas, 1, 1}), c.sub(written, known));
    }
    state = c.add(state, c.mul(token(c, k, t, {s.batch, s.groups, s.key, 1}), written));
    const ValueId asked = token(c, q, t, {s.batch, s.groups, s.heads / s.groups, s.key});
    rows.push_back(c.reshape(c.op("matmul", {asked, state}), {s.batch, 1, s.heads * s.value}));
  }
  const double given = attrs.attr_float("scale");
  const double scale = given != 0.0 ? given : 1.0 / std::sqrt(static_cast<double>(s.key));
  const ValueId y = rows.empty()
                        ? c.expand(c.constant(wide, {}, {0.0}), {s.batch, 0, s.heads * s.value})
                        : c.scale(c.concat(rows, 1), scale);
  const DType state_dtype =
      past == ir::kNoId
          ? q_type.dtype
          : c.input_type(static_cast<size_t>(linear_at_of(node.attrs, "past_state"))).dtype;
  return c.outputs({c.cast(y, q_type.dtype), c.cast(state, state_dtype)});
}

Result<ValueId> draw_linear_attention(Draw& d, DType t) {
  const int64_t b = d.pick(1, 2);
  const int64_t steps = d.pick(1, 3);
  const int64_t groups = d.pick(1, 2);
  const int64_t heads = groups * d.pick(1, 2);
  const int64_t key = d.pick(1, 4);
  const int64_t value = d.pick(1, 4);
  const std::string rule = d.word({"linear", "gated", "delta", "gated_delta"});
  DrawnOperands o{{d.tensor(t, {b, steps, heads * key}), d.tensor(t, {b, steps, groups * key}),
                   d.tensor(t, {b, steps, groups * value})},
                  ""};
  if (d.flip()) o.add("past_state", d.tensor(t, {b, groups, key, value}));
  if (rule.starts_with("gated")) {
    o.add("decay", d.tensor_in(t, {b, steps, d.flip() ? groups : groups * key}, -1.0, 0.0));
  }
  if (rule.ends_with("delta")) o.add("beta", d.tensor(t, {b, steps, d.flip() ? groups : 1}));
  return d.op(
      std::move(o.inputs),
      {{"with", o.with}, {"num_heads", heads}, {"kv_num_heads", groups}, {"update_rule", rule}});
}

}  // namespace

const ir::OpDef& op_linear_attention() {
  static const ir::OpDef def{
      .name = "linear_attention",
      .summary =
          "Attention by a state per head, updated per token: S = exp(decay)*S + k⊗(beta*(v - kS)); "
          "y = scale*qS.",
      .min_inputs = 3,
      .max_inputs = 6,
      .outputs = 2,
      .attrs = {with_attr(), required("num_heads", ir::AttrKind::kInt),
                required("kv_num_heads", ir::AttrKind::kInt), optional("scale", 0.0),
                optional("update_rule", std::string("gated_delta"))},
      .infer = infer_linear_attention,
      .decompose = decompose_linear_attention,
      .onnx = {.name = "LinearAttention",
               .attrs = "q_num_heads=num_heads kv_num_heads update_rule scale",
               .since = 27,
               .dtypes = "f16 bf16 f32",
               .optional = "past_state decay beta"},
      .draw = {.node = draw_linear_attention},
  };
  return def;
}

}  // namespace pyc::ops
