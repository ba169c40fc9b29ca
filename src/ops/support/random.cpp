#include "ops/support/random.h"

#include <array>

namespace pyc::ops {
namespace {

constexpr int kRounds = 10;
constexpr uint64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t kWeyl[] = {0x9E3779B9, 0xBB67AE85};

Expr bits(LowerContext& context, DType t, uint64_t value) {
  return loop::constant_bits(context.pool(), t, value);
}

struct Halves {
  Expr hi;
  Expr lo;
};

Halves product(LowerContext& context, uint64_t multiplier, Expr word) {
  const Expr full = convert(word, DType::kU64) * bits(context, DType::kU64, multiplier);
  return {convert(shr(full, bits(context, DType::kU64, 32)), DType::kU32),
          convert(full, DType::kU32)};
}

}  // namespace

std::vector<ir::AttrDef> random_attrs(std::vector<ir::AttrDef> more) {
  more.push_back(optional("seed", int64_t{0}));
  more.push_back(optional("stream", int64_t{0}));
  return more;
}

Expr random_unit(LowerContext& context, Expr at) {
  const auto seed = static_cast<uint64_t>(context.attr_int("seed"));
  const auto stream = static_cast<uint64_t>(context.attr_int("stream"));
  const auto word = [&](uint64_t value) { return bits(context, DType::kU32, value & 0xFFFFFFFF); };
  const Expr block = convert(floor_div(at, context.index(4)), DType::kU64);
  std::array<Expr, 4> counter = {convert(block, DType::kU32),
                                 convert(shr(block, bits(context, DType::kU64, 32)), DType::kU32),
                                 word(stream), word(stream >> 32)};
  std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < kRounds; ++round) {
    const Halves a = product(context, kMultipliers[0], counter[0]);
    const Halves b = product(context, kMultipliers[1], counter[2]);
    counter = {b.hi ^ counter[1] ^ word(key[0]), b.lo, a.hi ^ counter[3] ^ word(key[1]), a.lo};
    for (size_t i = 0; i < key.size(); ++i) key[i] += kWeyl[i];
  }
  const Expr place = floor_mod(at, context.index(4));
  Expr chosen = counter[3];
  for (int64_t i = 3; i-- > 0;) {
    chosen = select(eq(place, context.index(i)), counter[static_cast<size_t>(i)], chosen);
  }
  return convert(chosen, DType::kF64) * 0x1p-32;
}

Expr drawn_position(LowerContext& context, std::span<const Expr> index, size_t last_input) {
  const TensorType& y = context.output_type(0);
  const Expr at = position(context, index, y.shape);
  if (context.inputs() <= static_cast<int>(last_input)) return at;
  return at + context.input(static_cast<int>(last_input), {}) * context.index(y.elements());
}

Status check_drawn_before(const InferArgs& args, size_t last_input) {
  if (args.inputs.size() <= last_input) return {};
  const TensorType& before = args.inputs[last_input];
  if (before == TensorType{DType::kI64, {}}) return {};
  return {Code::kDtypeMismatch,
          "how often it was drawn before must be i64[], found " + before.to_string()};
}

Types infer_random(const InferArgs& args) {
  PYC_TRY(check_drawn_before(args, 0));
  TensorType y{args.attr_dtype("dtype"), args.attr_ints("shape")};
  PYC_TRY(require_dtype("the result", {y.dtype, {}}, kFloats));
  PYC_TRY(ir::check_type(y));
  return std::vector<TensorType>{std::move(y)};
}

}  // namespace pyc::ops
