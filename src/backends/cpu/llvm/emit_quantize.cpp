// Bytes quantized by a constant scale: convert(i32(min(max(round_even(x / scale), …), …)) + zero).

#include <algorithm>
#include <cmath>

#include "backends/cpu/llvm/emitter.h"
#include "backends/cpu/quantize_by.h"
#include "base/convert.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::ExprNode;
using loop::Op;

// The value of an expression of constants; they are small integers or floats.
std::optional<double> ExprEmitter::constant_value(ExprId id) const {
  const ExprNode& n = k_.pool.node(whole(id));
  if (n.op == Op::kConst) return word_to_double(n.word, n.dtype);
  if (n.op == Op::kConvert) return constant_value(n.a);
  if (n.op != Op::kSub) return std::nullopt;
  const auto a = constant_value(n.a);
  const auto b = constant_value(n.b);
  if (!a || !b) return std::nullopt;
  return *a - *b;
}

const ExprEmitter::Quantized* ExprEmitter::quantized(ExprId id) {
  if (const auto it = quantized_.find(id); it != quantized_.end()) {
    return it->second ? &*it->second : nullptr;
  }
  return (quantized_[id] = find_quantized(id)) ? &*quantized_[id] : nullptr;
}

std::optional<ExprEmitter::Quantized> ExprEmitter::find_quantized(ExprId id) const {
  const auto node = [&](ExprId x) -> const ExprNode& { return k_.pool.node(whole(x)); };
  const ExprNode& to = node(id);
  if (to.op != Op::kConvert || (to.dtype != DType::kU8 && to.dtype != DType::kI8)) return {};
  const ExprNode& moved = node(to.a);
  if (moved.op != Op::kAdd || moved.dtype != DType::kI32) return {};
  const ExprNode& steps = node(moved.a);
  if (steps.op != Op::kConvert || k_.pool.dtype(steps.a) != DType::kF32) return {};
  const ExprNode& below = node(steps.a);
  if (below.op != Op::kMin) return {};
  const ExprNode& above = node(below.a);
  if (above.op != Op::kMax) return {};
  const ExprNode& rounded = node(above.a);
  if (rounded.op != Op::kRoundEven) return {};
  const ExprNode& ratio = node(rounded.a);
  if (ratio.op != Op::kDiv || node(ratio.b).op != Op::kConst) return {};
  const auto scale = constant_value(ratio.b);
  const auto least = constant_value(above.b);
  const auto most = constant_value(below.b);
  const auto zero = constant_value(moved.b);
  if (!scale || !least || !most || !zero) return {};
  // Not NaN either, which is no integer.
  const auto is_bound = [](double v) { return std::abs(v) <= QuantizeBy::kFurthest; };
  if (!is_bound(*least) || !is_bound(*most)) return {};
  const auto by = quantize_by(static_cast<float>(*scale), static_cast<int32_t>(*least),
                              static_cast<int32_t>(*most));
  if (!by) return {};
  // A NaN becomes 0; where that is the least, a maximum that prefers numbers makes it so, and one
  // with 0 before it changes nothing. What is loaded may be a NaN that signals, which no maximum
  // turns into a number.
  const bool is_signed = to.dtype == DType::kI8;
  const double lowest = is_signed ? -128.0 : 0.0;
  const double highest = is_signed ? 127.0 : 255.0;
  // A NaN has 0 steps, which need not be within the bounds.
  Quantized q{.x = ratio.a,
              .by = *by,
              .zero = static_cast<int32_t>(*zero),
              .in_type = std::min(*least, 0.0) + *zero >= lowest &&
                         std::max(*most, 0.0) + *zero <= highest};
  if (*least != 0.0) return q;
  while (node(q.x).op == Op::kMax && constant_value(node(q.x).b) == 0.0) q.x = node(q.x).a;
  const Op op = node(q.x).op;
  q.nan_is_least = op == Op::kAdd || op == Op::kMul || op == Op::kFma;
  if (!q.nan_is_least) q.x = ratio.a;
  return q;
}

// x / scale within its bounds, to be rounded. A NaN stays one unless it is to be the least.
llvm::Value* ExprEmitter::steps_of(const Quantized& q, llvm::Value* given) {
  const auto constant = [&](float v) { return ops_.fp_like(given, v); };
  const auto bounded = [&](Value* x, float bound, Op op) {
    Value* y = constant(bound);
    if (!q.nan_is_least) return ops_.binary(op, DType::kF32, x, y);
    if (ops_.traits().aarch64) {
      const auto number =
          op == Op::kMax ? llvm::Intrinsic::maxnum : llvm::Intrinsic::ID(llvm::Intrinsic::minnum);
      return static_cast<Value*>(b_.CreateBinaryIntrinsic(number, x, y));
    }
    Value* inside = op == Op::kMax ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y);
    return b_.CreateSelect(inside, x, y);
  };
  Value* x = bounded(bounded(given, q.by.least, Op::kMax), q.by.most, Op::kMin);
  return ops_.fma(x, constant(q.by.high), b_.CreateFMul(x, constant(q.by.low)));
}

// Where `steps` were no NaN, else 0.
llvm::Value* ExprEmitter::number_or_zero(const Quantized& q, llvm::Value* steps,
                                         llvm::Value* made) {
  if (q.nan_is_least) return made;
  return b_.CreateSelect(b_.CreateFCmpORD(steps, steps), made,
                         llvm::Constant::getNullValue(made->getType()));
}

llvm::Value* ExprEmitter::emit_quantized(ExprId id) {
  const Quantized* q = quantized(id);
  if (q == nullptr) return nullptr;
  const int lanes = is_varying(id) ? width() : 1;
  Value* given = lanes > 1 ? eval_wide(q->x) : eval(q->x);
  at(scope_of(id));
  Value* ratio = steps_of(*q, given);
  Value* steps = nullptr;
  if (q->nan_is_least || !ops_.traits().aarch64) {
    Value* rounded = b_.CreateFAdd(ratio, ops_.fp_like(ratio, QuantizeBy::kRounder));
    steps = b_.CreateBitCast(rounded, ops_.type(DType::kI32, lanes));
    steps = number_or_zero(*q, ratio, steps);
  } else {
    steps = ops_.convert(ops_.unary(Op::kRoundEven, DType::kF32, ratio), DType::kF32, DType::kI32);
  }
  const auto zero = static_cast<Word>(static_cast<int64_t>(q->zero));
  if (q->zero != 0) steps = b_.CreateAdd(steps, ops_.constant(DType::kI32, zero, lanes));
  return b_.CreateTrunc(steps, ops_.type(k_.pool.dtype(id), lanes));
}

// The byte less its zero point, which are the steps again. Rounding by an addition leaves no
// negative zero.
llvm::Value* ExprEmitter::emit_steps(ExprId id) {
  const ExprNode& to = k_.pool.node(id);
  if (to.op != Op::kConvert || to.dtype != DType::kF32) return nullptr;
  const ExprNode& moved = k_.pool.node(whole(to.a));
  const bool is_moved = moved.op == Op::kSub;
  const ExprNode& wide = is_moved ? k_.pool.node(whole(moved.a)) : moved;
  if (wide.op != Op::kConvert || wide.dtype != DType::kI32) return nullptr;
  const ExprId byte = whole(wide.a);
  const Quantized* q = quantized(byte);
  if (q == nullptr || !q->in_type) return nullptr;
  if (q->zero != (is_moved ? constant_value(moved.b) : 0.0)) return nullptr;
  const bool is_stored =
      std::ranges::any_of(k_.stores, [&](const loop::Store& s) { return whole(s.value) == byte; });
  if (is_stored) return nullptr;
  Value* given = is_varying(id) ? eval_wide(q->x) : eval(q->x);
  at(scope_of(id));
  Value* ratio = steps_of(*q, given);
  Value* rounder = ops_.fp_like(ratio, QuantizeBy::kRounder);
  Value* steps = b_.CreateFSub(b_.CreateFAdd(ratio, rounder), rounder);
  return number_or_zero(*q, ratio, steps);
}

}  // namespace pyc::cpu
