#include <cmath>

#include "ir/facts.h"
#include "ops/draw.h"
#include "ops/support/backward.h"
#include "ops/support/elementwise.h"
#include "ops/support/narrow.h"
#include "ops/support/simplify.h"

namespace pyc::ops {
namespace {

Types infer_cast(const InferArgs& args) {
  const std::string& mode = args.attr_string("round_mode");
  if (mode != "up" && mode != "down" && mode != "nearest") {
    return refuse(Code::kInvalidArgument, "round_mode must be up, down or nearest, found '", mode,
                  "'");
  }
  return one(args.attr_dtype("to"), args.inputs[0].shape);
}

// A positive number with its fraction cut off, or rounded to the next power of two from 1.5 on.
Expr power_of_two(Expr x, bool nearest) {
  loop::Pool& pool = *x.pool;
  const auto bits = [&](Word w) { return loop::constant_bits(pool, DType::kU64, w); };
  Expr word = bitcast(x, DType::kU64);
  if (nearest) word = word + bits(Word{1} << 51);
  return bitcast(word & bits(Word{0x7FF} << 52), DType::kF64);
}

// f8e8m0 by its exponent. In f64 every number of the narrower types and of f8e8m0 is normal.
Expr to_e8m0(LowerContext& context, Expr x) {
  const std::string& mode = context.attr_string("round_mode");
  const bool saturates = context.attr_bool("saturate");
  if (mode == "up" && !saturates) return x;
  Expr wide = convert(x, DType::kF64);
  const Expr least = like(wide, std::ldexp(1.0, -127));
  // NaN and what is negative stay as they are, and are NaN in the end.
  const Expr is_number = ge(wide, like(wide, 0.0));
  Expr y = wide;
  if (saturates) y = max(y, least);
  if (mode != "up") y = select(le(least, y), power_of_two(y, mode == "nearest"), y);
  if (saturates) y = min(y, like(wide, std::ldexp(1.0, 127)));
  return select(is_number, y, wide);
}

Expr lower_cast(LowerContext& context, int, std::span<const Expr> index) {
  const DType to = context.attr_dtype("to");
  Expr x = context.input(0, index);
  const DType from = x.dtype();
  if (to == DType::kF8E8M0 && from != to) return rounded(context, to_e8m0(context, x));
  if (largest_fp8(to) != 0.0 && from != to && context.attr_bool("saturate")) {
    // Exact for every integer that does not saturate.
    x = within_fp8(convert(x, is_float(from) ? compute_dtype(from) : DType::kF64), to);
  }
  return rounded(context, x);
}

// Bits of the significand.
int digits(DType t) {
  switch (t) {
    case DType::kF8E5M2:
      return 3;
    case DType::kF8E4M3FN:
      return 4;
    case DType::kBF16:
      return 8;
    case DType::kF16:
      return 11;
    case DType::kF32:
      return 24;
    case DType::kF64:
      return 53;
    default:
      return 0;
  }
}

// Whether every value of `from` is one of `to`, -0 and infinities included.
bool keeps_values(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::kBool) return is_int(to) || digits(to) > 0;
  const auto bits = static_cast<int>(dtype_bits(from)) - (is_signed_int(from) ? 1 : 0);
  if (is_int(from)) {
    const bool wider = dtype_bits(to) > dtype_bits(from);
    if (is_int(to)) return wider && (is_unsigned_int(from) || is_signed_int(to));
    return bits <= digits(to);
  }
  if (digits(from) == 0 || digits(to) == 0) return false;
  const bool half = from == DType::kF16 || from == DType::kBF16;
  if (is_narrow_float(to)) return !half && dtype_size(from) < dtype_size(to);
  return is_narrow_float(from) || to == DType::kF64;
}

// Whether going from `a` by way of `b` to `c` gives what going from `a` to `c` does.
bool skips_middle(DType a, DType b, DType c) {
  if (is_int(a) && is_int(b) && is_int(c) && dtype_bits(b) >= dtype_bits(c)) return true;
  if (!keeps_values(a, b)) return false;
  // Integers become integers by their low bits, floats by saturating.
  const bool kinds_differ = !is_float(a) && is_float(b) && is_int(c);
  return !kinds_differ || keeps_values(a, c);
}

// The order and NaN are kept. A row of casts may be of any length: only the first is looked at.
bool converts_at_most_zero(const ir::Graph& graph, const ir::Node& node) {
  const ir::Node* inner = graph.producer(node.inputs[0]);
  return inner != nullptr && inner->op != node.op && ir::at_most_zero(graph, node.inputs[0]);
}

ValueId simplify_cast(Patch& patch, const NodeView& node) {
  const DType to = node.type().dtype;
  if (node.input_type(0).dtype == to) return patch.by("cast_same", node.input(0));
  const NodeView inner = patch.producer(node.input(0));
  if (!inner.is("cast")) return kNoId;
  const DType from = inner.input_type(0).dtype;
  if (!skips_middle(from, node.input_type(0).dtype, to)) return kNoId;
  // On the way back an infinity becomes the largest number.
  const bool saturates = largest_fp8(to) != 0.0 && std::get<bool>(node.attrs().at("saturate"));
  if (from == to && saturates) return kNoId;
  if (from == to) return patch.by("cast_back", inner.input(0));
  return patch.by("cast_cast", patch.op("cast", {inner.input(0)}, node.attrs()));
}

Grads gradient_cast(ir::GraphBuilder& builder, const ir::Node& node,
                    std::span<const ValueId> grads) {
  Backward b(builder, node, grads);
  // Rounding and saturation count as the identity.
  if (!is_float(b.input_type(0).dtype)) return b.outputs({ir::kNoId});
  return b.outputs({b.stored(b.g(), 0)});
}

Result<ValueId> draw_cast(Draw& d, DType t) {
  Attrs attrs{{"to", d.any_dtype()}, {"saturate", d.flip()}};
  if (std::get<DType>(attrs["to"]) == DType::kF8E8M0) {
    attrs["round_mode"] = d.word({"up", "down", "nearest"});
  }
  return d.op({d.tensor_in(t, d.shape(), 0.0, 6.0)}, std::move(attrs));
}

}  // namespace

const ir::OpDef& op_cast() {
  static const ir::OpDef def{
      .name = "cast",
      .summary =
          "x as another dtype: one rounding; float to integer truncates and saturates. "
          "saturate: to an 8-bit float too; round_mode (up, down, nearest): to f8e8m0.",
      .attrs = {required("to", ir::AttrKind::kDType), optional("saturate", true),
                optional("round_mode", std::string("up"))},
      .infer = infer_cast,
      .lower = lower_cast,
      .traits = {.elementwise = true},
      .at_most_zero = converts_at_most_zero,
      .simplify = simplify_cast,
      .gradient = gradient_cast,
      .draw = {.node = draw_cast, .sharp = true},
  };
  return def;
}

}  // namespace pyc::ops
