#include <algorithm>

#include "ops/draw.h"
#include "ops/support/compose.h"
#include "ops/support/elementwise.h"

namespace pyc::ops {
namespace {

// x is [B,H,S,D], or [B,S,H*D] with num_heads; cos and sin are [B,S,R/2], or tables [P,R/2] with
// position ids [B,S].
struct Layout {
  int64_t batch = 0;
  int64_t sequence = 0;
  int64_t head_size = 0;
  int64_t rotary = 0;
};

Layout layout_of(const TensorType& x, int64_t num_heads, int64_t rotary_dim) {
  Layout l;
  l.batch = x.shape[0];
  l.sequence = x.rank() == 4 ? x.shape[2] : x.shape[1];
  l.head_size = x.rank() == 4 ? x.shape[3] : x.shape[2] / num_heads;
  l.rotary = rotary_dim == 0 ? l.head_size : rotary_dim;
  return l;
}

Status check_x(const InferArgs& args) {
  const TensorType& x = args.inputs[0];
  const int64_t heads = args.attr_int("num_heads");
  PYC_TRY(require_dtype("x", x, kFloats));
  if (x.rank() != 3 && x.rank() != 4) {
    return refuse(Code::kRankMismatch, "x must have rank 3 or 4, found ", x);
  }
  if (x.rank() == 3 && (heads < 1 || x.shape[2] % heads != 0)) {
    return refuse(Code::kInvalidArgument, "num_heads ", heads, " must divide the last dim of ", x);
  }
  const Layout l = layout_of(x, heads, args.attr_int("rotary_dim"));
  if (l.rotary < 0 || l.rotary > l.head_size || l.rotary % 2 != 0) {
    return refuse(Code::kInvalidArgument, "", l.rotary,
                  " elements to turn must be even and at most the head's ", l.head_size);
  }
  return {};
}

Types infer_rotary_embedding(const InferArgs& args) {
  PYC_TRY(check_x(args));
  const TensorType& x = args.inputs[0];
  const Layout l = layout_of(x, args.attr_int("num_heads"), args.attr_int("rotary_dim"));
  const bool ids = args.inputs.size() > 3;
  for (size_t i = 1; i < 3; ++i) {
    const TensorType& table = args.inputs[i];
    PYC_TRY(require_same_dtype(x, table));
    PYC_TRY(require_rank(i == 1 ? "cos" : "sin", table, ids ? 2 : 3));
    const Shape expected = ids ? Shape{args.inputs[1].shape[0], l.rotary / 2}
                               : Shape{l.batch, l.sequence, l.rotary / 2};
    if (table.shape != expected) {
      return refuse(Code::kShapeMismatch, i == 1 ? "cos" : "sin", " must have shape ", expected,
                    ", found ", table);
    }
  }
  if (ids) {
    PYC_TRY(require_dtype("position_ids", args.inputs[3], kIndices));
    if (args.inputs[3].shape != Shape{l.batch, l.sequence}) {
      return refuse(Code::kShapeMismatch, "position_ids must have shape ",
                    Shape{l.batch, l.sequence}, ", found ", args.inputs[3]);
    }
    if (args.inputs[1].shape[0] == 0 && x.elements() > 0) {
      return refuse(Code::kShapeMismatch, "cos ", args.inputs[1], " is empty");
    }
  }
  return one(x.dtype, x.shape);
}

// The row of cos and sin for the token at (batch, place).
Index angle_row(LowerContext& context, Expr batch, Expr place) {
  if (context.inputs() < 4) return {batch, place};
  const int64_t rows = context.input_type(1).shape[0];
  const Index token{batch, place};
  const Expr id = convert(context.input(3, token), DType::kI64);
  context.check_input(3, between(context, id, 0, rows), {.last = rows - 1}, "position id");
  const Expr last = context.index(std::max<int64_t>(rows - 1, 0));
  return {min(max(id, context.index(0)), last)};
}

Expr lower_rotary_embedding(LowerContext& context, int, std::span<const Expr> index) {
  const TensorType& x = context.input_type(0);
  const Layout l = layout_of(x, context.attr_int("num_heads"), context.attr_int("rotary_dim"));
  if (l.rotary == 0) return context.input(0, index);
  const Expr size = context.index(l.head_size);
  const Expr d = x.rank() == 4 ? index[3] : floor_mod(index[2], size);
  const Expr head_start = x.rank() == 4 ? context.index(0) : floor_div(index[2], size) * size;
  const Expr place = x.rank() == 4 ? index[2] : index[1];
  const auto element = [&](Expr at) {
    Index i = to_index(index);
    i.back() = head_start + at;
    return context.input_compute(0, i);
  };

  const int64_t half = l.rotary / 2;
  // Beyond the turned part any pair does: its result is not taken.
  const Expr inside = lt(d, context.index(l.rotary));
  const Expr turned = l.rotary == l.head_size ? d : min(d, context.index(l.rotary - 1));
  const bool interleaved = context.attr_bool("interleaved");
  const Expr pair =
      interleaved ? floor_div(turned, context.index(2)) : floor_mod(turned, context.index(half));
  const Expr is_first = interleaved ? eq(floor_mod(turned, context.index(2)), context.index(0))
                                    : lt(turned, context.index(half));
  const Expr a = element(interleaved ? pair * context.index(2) : pair);
  const Expr b = element(interleaved ? pair * context.index(2) + context.index(1)
                                     : pair + context.index(half));
  Index angle = angle_row(context, index[0], place);
  angle.push_back(pair);
  const Expr cos = context.input_compute(1, angle);
  const Expr sin = context.input_compute(2, angle);
  const Expr y = select(is_first, cos * a - sin * b, sin * a + cos * b);
  return rounded(context, l.rotary == l.head_size ? y : select(inside, y, element(d)));
}

Result<std::vector<ValueId>> gradient_form_rotary_embedding(ir::GraphBuilder& builder,
                                                            const ir::Node& node) {
  Compose c(builder, node);
  const TensorType x = c.input_type(0);
  const Layout l = layout_of(x, c.attrs().attr_int("num_heads"), c.attrs().attr_int("rotary_dim"));
  if (l.rotary == 0) return c.outputs({c.op("identity", {c.input(0)})});
  // [B,S,H,D], so that the angles [B,S,1,pairs] broadcast.
  const bool flat = x.rank() == 3;
  const int64_t heads = flat ? x.shape[2] / l.head_size : x.shape[1];
  const ValueId all = flat ? c.reshape(c.wide_input(0), {l.batch, l.sequence, heads, l.head_size})
                           : c.transpose(c.wide_input(0), {0, 2, 1, 3});
  const int64_t half = l.rotary / 2;
  const auto angle = [&](size_t i) {
    const ValueId table = c.wide_input(i);
    const ValueId row = c.inputs() > 3 ? c.op("gather", {table, c.input(3)}) : table;
    return c.reshape(row, {l.batch, l.sequence, 1, half});
  };
  const ValueId cos = angle(1);
  const ValueId sin = angle(2);
  // The first and second of each pair, as [B,S,H,pairs].
  const bool interleaved = c.attrs().attr_bool("interleaved");
  const Shape pairs{l.batch, l.sequence, heads, half};
  const ValueId turned = c.slice(all, 3, 0, l.rotary);
  const ValueId apart = c.reshape(turned, interleaved ? Shape{l.batch, l.sequence, heads, half, 2}
                                                      : Shape{l.batch, l.sequence, heads, 2, half});
  const int64_t axis = interleaved ? 4 : 3;
  const ValueId a = c.reshape(c.slice(apart, axis, 0, 1), pairs);
  const ValueId b = c.reshape(c.slice(apart, axis, 1, 2), pairs);
  Shape member = c.type(apart).shape;
  member[static_cast<size_t>(axis)] = 1;
  const ValueId first = c.reshape(c.sub(c.mul(cos, a), c.mul(sin, b)), member);
  const ValueId second = c.reshape(c.add(c.mul(sin, a), c.mul(cos, b)), member);
  const ValueId joined =
      c.reshape(c.concat({first, second}, axis), {l.batch, l.sequence, heads, l.rotary});
  const ValueId y = c.concat({joined, c.slice(all, 3, l.rotary, l.head_size)}, 3);
  const ValueId placed = flat ? c.reshape(y, x.shape) : c.transpose(y, {0, 2, 1, 3});
  return c.outputs({c.cast(placed, x.dtype)});
}

Result<ValueId> draw_rotary_embedding(Draw& d, DType t) {
  const int64_t b = d.pick(1, 2);
  const int64_t s = d.pick(1, 3);
  const int64_t heads = d.pick(1, 3);
  const int64_t half = d.pick(1, 3);
  const int64_t size = 2 * half + (d.chance(3) ? 2 : 0);
  const bool flat = d.flip();
  const bool ids = d.flip();
  const Shape table = ids ? Shape{d.pick(1, 5), half} : Shape{b, s, half};
  std::vector<ValueId> inputs{
      d.tensor(t, flat ? Shape{b, s, heads * size} : Shape{b, heads, s, size}), d.tensor(t, table),
      d.tensor(t, table)};
  if (ids) inputs.push_back(d.indices({b, s}, 0, table[0] - 1));
  Attrs attrs{{"interleaved", d.flip()}, {"rotary_dim", 2 * half}};
  if (flat) attrs["num_heads"] = heads;
  return d.op(std::move(inputs), std::move(attrs));
}

}  // namespace

const ir::OpDef& op_rotary_embedding() {
  static const ir::OpDef def{
      .name = "rotary_embedding",
      .summary =
          "Pairs of each head's first rotary_dim elements (0: all), turned by the angles of cos "
          "and sin.",
      .min_inputs = 3,
      .max_inputs = 4,
      .attrs = {optional("interleaved", false), optional("rotary_dim", int64_t{0}),
                optional("num_heads", int64_t{0})},
      .infer = infer_rotary_embedding,
      .lower = lower_rotary_embedding,
      .gradient_form = gradient_form_rotary_embedding,
      .onnx = {.name = "RotaryEmbedding",
               .attrs = "interleaved rotary_embedding_dim=rotary_dim num_heads",
               .since = 23,
               .dtypes = "f16 bf16 f32"},
      .draw = {.node = draw_rotary_embedding},
  };
  return def;
}

}  // namespace pyc::ops
