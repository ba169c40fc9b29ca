#include "backends/cuda/c_types.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

namespace pyc::cuda {
namespace {

constexpr int64_t kShortLimit = int64_t{1} << 30;

std::string name_of_dtype(DType t) { return std::string(dtype_name(t)); }

std::string float_literal(double x, bool wide) {
  if (std::isfinite(x)) return fmt::format("{:a}{}", x, wide ? "" : "f");
  if (wide) return fmt::format("pyc_bits_f64({:#x}ull)", std::bit_cast<uint64_t>(x));
  return fmt::format("pyc_bits_f32({:#x}u)", std::bit_cast<uint32_t>(static_cast<float>(x)));
}

// Integers and bool; also floats below f32, which are held as their bits.
std::string bits_literal(DType t, Word word) {
  if (t == DType::kI64) {
    const auto v = static_cast<int64_t>(word);
    if (v == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807ll - 1)";
    return v < 0 ? fmt::format("({}ll)", v) : fmt::format("{}ll", v);
  }
  if (t == DType::kU64) return fmt::format("{}ull", word);
  if (t == DType::kBool) return word != 0 ? "true" : "false";
  if (is_signed_int(t)) {
    const auto v = static_cast<int64_t>(word);
    if (v == INT32_MIN) return "(-2147483647 - 1)";
    const std::string number = v < 0 ? fmt::format("({})", v) : fmt::format("{}", v);
    return t == DType::kI32 ? number : fmt::format("({}){}", value_type(t), number);
  }
  return t == DType::kU32 ? fmt::format("{}u", word) : fmt::format("({}){}", value_type(t), word);
}

std::string to_f32(const std::string& x, DType from) {
  if (from == DType::kF32) return x;
  if (from == DType::kF64) return fmt::format("pyc_f64_to_f32({})", x);
  return fmt::format("pyc_{}_to_f32({})", name_of_dtype(from), x);
}

std::string to_f64(const std::string& x, DType from) {
  return from == DType::kF64 ? x : fmt::format("(double){}", to_f32(x, from));
}

std::string to_bool(const std::string& x, DType from) {
  if (from == DType::kF32) return fmt::format("({} != 0.0f)", x);
  if (from == DType::kF64) return fmt::format("({} != 0.0)", x);
  if (from == DType::kF8E8M0) return "true";
  const bool one_zero = from == DType::kF8E4M3FNUZ || from == DType::kF8E5M2FNUZ;
  if (!is_float(from) || one_zero) return fmt::format("({} != 0)", x);
  const uint32_t magnitude = (uint32_t{1} << (dtype_bits(from) - 1)) - 1;
  return fmt::format("(({} & {:#x}) != 0)", x, magnitude);
}

std::string int_to_float(const std::string& x, DType from, DType to) {
  const bool wide = from == DType::kU64 || from == DType::kI64 || from == DType::kU32;
  const char* through = from == DType::kU64 ? "u64" : wide ? "i64" : "i32";
  if (!is_narrow_float(to)) {
    return fmt::format("pyc_{}_to_{}(({}){})", through, name_of_dtype(to), through, x);
  }
  if (!is_signed_int(from)) {
    return fmt::format("pyc_int_to_{}(false, (u64){})", name_of_dtype(to), x);
  }
  return fmt::format("pyc_int_to_{0}({1} < 0, {1} < 0 ? 0ull - (u64)(i64){1} : (u64)(i64){1})",
                     name_of_dtype(to), x);
}

}  // namespace

std::string memory_type(DType t) {
  if (t == DType::kBool) return "u8";
  return value_type(t);
}

std::string value_type(DType t) {
  switch (t) {
    case DType::kBool:
      return "bool";
    case DType::kI2:
    case DType::kI4:
      return "i8";
    case DType::kU2:
    case DType::kU4:
      return "u8";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    default:
      break;
  }
  if (is_float(t)) return dtype_size(t) == 1 ? "u8" : "u16";
  return name_of_dtype(t);
}

bool is_short_index(const loop::ExprNode& node) {
  return node.dtype == DType::kI64 && node.lo >= -kShortLimit && node.hi < kShortLimit;
}

std::string node_type(const loop::ExprNode& node) {
  return is_short_index(node) ? "i32" : value_type(node.dtype);
}

std::string literal(DType t, Word word, bool short_index) {
  if (short_index) return literal(DType::kI32, word);
  if (t == DType::kF32) {
    return float_literal(std::bit_cast<float>(static_cast<uint32_t>(word)), false);
  }
  if (t == DType::kF64) return float_literal(std::bit_cast<double>(word), true);
  return bits_literal(t, word);
}

std::string conversion(const std::string& x, DType from, DType to) {
  if (from == to) return x;
  if (to == DType::kBool) return to_bool(x, from);
  if (is_float(from)) {
    if (to == DType::kF32) return to_f32(x, from);
    if (to == DType::kF64) return to_f64(x, from);
    if (!is_float(to)) return fmt::format("pyc_f64_to_{}({})", name_of_dtype(to), to_f64(x, from));
    const bool wide = from == DType::kF64;
    return fmt::format("pyc_{}_to_{}({})", wide ? "f64" : "f32", name_of_dtype(to),
                       wide ? x : to_f32(x, from));
  }
  if (is_float(to)) return int_to_float(x, from, to);
  if (is_narrow_int(to)) return fmt::format("pyc_wrap_{}((u64){})", name_of_dtype(to), x);
  return fmt::format("({}){}", value_type(to), x);
}

std::string bitcast_text(const std::string& x, DType from, DType to) {
  if (from == to) return x;
  const auto bits_of = [&]() -> std::string {
    if (from == DType::kF32) return fmt::format("pyc_f32_bits({})", x);
    if (from == DType::kF64) return fmt::format("pyc_f64_bits({})", x);
    return x;
  };
  if (to == DType::kF32) return fmt::format("pyc_bits_f32((u32){})", bits_of());
  if (to == DType::kF64) return fmt::format("pyc_bits_f64((u64){})", bits_of());
  if (is_narrow_int(to)) return fmt::format("pyc_wrap_{}((u64){})", name_of_dtype(to), bits_of());
  if (to == DType::kF4E2M1) return fmt::format("pyc_wrap_u4((u64){})", bits_of());
  if (to == DType::kBool) return fmt::format("({} != 0)", bits_of());
  return fmt::format("({}){}", value_type(to), bits_of());
}

std::string identity_text(loop::ReduceOp op, DType t) {
  using loop::ReduceOp;
  const int64_t bits = 8 * dtype_size(t);
  const bool sign = is_signed_int(t);
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kOr:
      return literal(t, 0);
    case ReduceOp::kProd:
      return literal(t, word_from_int(1, t));
    case ReduceOp::kMax:
      if (is_float(t)) return literal(t, word_from_double(-INFINITY, t));
      return literal(t, sign ? ~Word{0} << (bits - 1) : 0);
    case ReduceOp::kMin:
      if (is_float(t)) return literal(t, word_from_double(INFINITY, t));
      break;
    case ReduceOp::kAnd:
      if (sign) return literal(t, ~Word{0});
      break;
  }
  if (t == DType::kBool) return literal(t, 1);
  return literal(t, ~Word{0} >> (64 - bits + (sign ? 1 : 0)));
}

std::string join_text(loop::ReduceOp op, DType t, const std::string& x, const std::string& y) {
  using loop::ReduceOp;
  switch (op) {
    case ReduceOp::kAnd:
      return fmt::format("({})({} & {})", value_type(t), x, y);
    case ReduceOp::kOr:
      return fmt::format("({})({} | {})", value_type(t), x, y);
    case ReduceOp::kSum:
      return fmt::format("pyc_add_{}({}, {})", name_of_dtype(t), x, y);
    case ReduceOp::kProd:
      return fmt::format("pyc_mul_{}({}, {})", name_of_dtype(t), x, y);
    case ReduceOp::kMax:
      return fmt::format("pyc_max_{}({}, {})", name_of_dtype(t), x, y);
    case ReduceOp::kMin:
      return fmt::format("pyc_min_{}({}, {})", name_of_dtype(t), x, y);
  }
  return x;
}

}  // namespace pyc::cuda
