#include "backends/cuda/emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/cuda/c_types.h"
#include "base/convert.h"
#include "base/status.h"
#include "loop/builder.h"

namespace pyc::cuda {

using loop::ExprId;
using loop::ExprNode;
using loop::kNone;
using loop::Op;
using loop::VarId;

std::string buffer_name(uint32_t buffer) { return fmt::format("b{}", buffer); }

Emitter::Emitter(const loop::Kernel& kernel, const Dialect& dialect, std::string symbol)
    : kernel_(kernel),
      pool_(kernel_.pool),
      dialect_(dialect),
      symbol_(std::move(symbol)),
      var_name_(pool_.var_count()),
      var_depth_(pool_.var_count(), 0) {
  open_scope();
}

std::string Emitter::close_scope() {
  Scope scope = std::move(scopes_.back());
  for (ExprId e : scope.values) held_[e].clear();
  scopes_.pop_back();
  return std::move(scope.code);
}

std::string Emitter::finished(const std::string& head) {
  return head + " {\n" + close_scope() + "}\n";
}

void Emitter::line(const std::string& text) { scopes_.back().code += text + "\n"; }

void Emitter::declare(VarId v, const std::string& name) {
  if (v >= var_name_.size()) {
    var_name_.resize(pool_.var_count());
    var_depth_.resize(pool_.var_count(), 0);
  }
  var_name_[v] = name;
  var_depth_[v] = static_cast<int>(depth());
}

std::string Emitter::var_type(VarId v) { return node_type(pool_.node(pool_.var(v))); }

const Emitter::Info& Emitter::info(ExprId e) {
  if (info_.size() < pool_.size()) info_.resize(pool_.size());
  if (info_[e].depth >= 0) return info_[e];
  const ExprNode n = pool_.node(e);
  Info result{0, false};
  if (n.op == Op::kVar) result.depth = var_depth_[static_cast<VarId>(n.imm)];
  if (n.op == Op::kLoad) {
    const loop::Buffer& b = kernel_.buffers[static_cast<size_t>(n.imm)];
    const ExprNode& offset = pool_.node(n.a);
    const bool proven = offset.lo >= 0 && offset.hi < b.elements;
    result.at_use = b.access != loop::Access::kRead || (n.b == kNone && !proven);
  }
  for (ExprId o : {n.a, n.b, n.c}) {
    if (o == kNone) continue;
    const Info operand = info(o);
    result.depth = std::max(result.depth, operand.depth);
    result.at_use = result.at_use || operand.at_use;
  }
  return info_[e] = result;
}

std::string Emitter::define(ExprId e, const std::string& text) {
  const Info i = info(e);
  Scope& scope = i.at_use ? scopes_.back() : scopes_[static_cast<size_t>(i.depth)];
  std::string name = fmt::format("v{}", fresh_++);
  scope.code += fmt::format("const {} {} = {};\n", node_type(pool_.node(e)), name, text);
  if (held_.size() < pool_.size()) held_.resize(pool_.size());
  held_[e] = name;
  (i.at_use ? statement_values_ : scope.values).push_back(e);
  return name;
}

void Emitter::end_statement() {
  for (ExprId e : statement_values_) held_[e].clear();
  statement_values_.clear();
}

std::string Emitter::value(ExprId e) {
  if (e < held_.size() && !held_[e].empty()) return held_[e];
  if (const auto it = loaded_.find(e); it != loaded_.end()) return it->second;
  const ExprNode n = pool_.node(e);
  if (n.op == Op::kConst) return literal(n.dtype, n.word, is_short_index(n));
  if (n.op == Op::kVar) return var_name_[static_cast<VarId>(n.imm)];
  return define(e, node_text(e, n));
}

std::string Emitter::wide(ExprId e) {
  return is_short_index(pool_.node(e)) ? fmt::format("(i64){}", value(e)) : value(e);
}

std::string Emitter::node_text(ExprId e, const ExprNode& n) {
  switch (n.op) {
    case Op::kLoad:
      return load(n);
    case Op::kTable:
      return table_load(n);
    case Op::kSelect: {
      if (std::string text = saturated_fma(n); !text.empty()) return text;
      const bool keep_wide = n.dtype == DType::kI64 && !is_short_index(n);
      const std::string cond = value(n.a);
      const std::string x = keep_wide ? wide(n.b) : value(n.b);
      const std::string y = keep_wide ? wide(n.c) : value(n.c);
      return fmt::format("{} ? {} : {}", cond, x, y);
    }
    case Op::kConvert: {
      const ExprNode& from = pool_.node(n.a);
      // A short index converts as the i32 it is, as long as nothing of it can be lost.
      if (is_short_index(n)) return fmt::format("(i32){}", value(n.a));
      if (is_short_index(from)) return conversion(value(n.a), DType::kI32, n.dtype);
      if (any_nan_ && is_half(from.dtype) && n.dtype == DType::kF32) {
        return fmt::format("pyc_{}_to_f32_raw({})", dtype_name(from.dtype), value(n.a));
      }
      const auto pair = paired_.find(n.a);
      if (pair != paired_.end() && from.dtype == DType::kBF16 && n.dtype == DType::kF32) {
        return fmt::format("pyc_bf16_of_pair({})", pair->second);
      }
      return conversion(value(n.a), from.dtype, n.dtype);
    }
    case Op::kBitcast:
      return bitcast_text(wide(n.a), pool_.dtype(n.a), n.dtype);
    case Op::kFma:
      return fmt::format("pyc_fma_{}({}, {}, {})", dtype_name(n.dtype), operand(n.a), operand(n.b),
                         operand(n.c));
    default:
      break;
  }
  if (n.b != kNone) return pool_.dtype(n.a) == DType::kI64 ? index_operation(n) : binary(n);
  const std::string x = wide(n.a);
  const std::string_view t = dtype_name(n.dtype);
  switch (n.op) {
    case Op::kNeg:
      return fmt::format("pyc_neg_{}({})", t, x);
    case Op::kAbs:
      return fmt::format("{}pyc_abs_{}({})", is_short_index(n) ? "(i32)" : "", t, x);
    case Op::kNot:
      return n.dtype == DType::kBool ? fmt::format("!{}", x)
                                     : fmt::format("({})~{}", value_type(n.dtype), x);
    case Op::kSqrt:
      return fmt::format("pyc_sqrt_{}({})", t, x);
    case Op::kFloor:
      return fmt::format("pyc_floor_{}({})", t, x);
    case Op::kCeil:
      return fmt::format("pyc_ceil_{}({})", t, x);
    case Op::kTrunc:
      return fmt::format("pyc_trunc_{}({})", t, x);
    case Op::kRoundEven:
      return fmt::format("pyc_rint_{}({})", t, x);
    default:
      PYC_CHECK(false, fmt::format("an operation without text: node {}", e));
  }
}

// x > 0 ? min(x, 1) : 0 of x = fma(a, b, c), which is one instruction.
std::string Emitter::saturated_fma(const ExprNode& n) {
  const auto is = [&](ExprId e, double v) {
    const ExprNode& c = pool_.node(e);
    return c.op == Op::kConst && c.dtype == DType::kF32 && c.word == word_from_double(v, c.dtype);
  };
  const ExprNode above = pool_.node(n.a);
  const ExprNode least = pool_.node(n.b);
  if (!is(n.c, 0.0) || above.op != Op::kLt || !is(above.a, 0.0) || least.op != Op::kMin) return "";
  const ExprId x = above.b;
  const bool below_one = (least.a == x && is(least.b, 1.0)) || (least.b == x && is(least.a, 1.0));
  const ExprNode product = pool_.node(x);
  if (!below_one || product.op != Op::kFma) return "";
  return fmt::format("pyc_fma_saturated_f32({}, {}, {})", value(product.a), value(product.b),
                     value(product.c));
}

namespace {

const char* comparison_sign(Op op) {
  switch (op) {
    case Op::kEq:
      return "==";
    case Op::kNe:
      return "!=";
    case Op::kLt:
      return "<";
    case Op::kLe:
      return "<=";
    case Op::kAnd:
      return "&";
    case Op::kOr:
      return "|";
    case Op::kXor:
      return "^";
    default:
      return nullptr;
  }
}

const char* function_word(Op op) {
  switch (op) {
    case Op::kAdd:
      return "add";
    case Op::kSub:
      return "sub";
    case Op::kMul:
      return "mul";
    case Op::kDiv:
      return "div";
    case Op::kRem:
      return "rem";
    case Op::kMin:
      return "min";
    case Op::kMax:
      return "max";
    case Op::kShl:
      return "shl";
    case Op::kShr:
      return "shr";
    case Op::kFloorDiv:
      return "floor_div";
    default:
      return "floor_mod";
  }
}

}  // namespace

std::string Emitter::operand(ExprId e) {
  const ExprNode n = pool_.node(e);
  const bool has_sign = n.dtype == DType::kF32 && (n.op == Op::kNeg || n.op == Op::kAbs);
  if (!has_sign) return value(e);
  return fmt::format("pyc_{}_any_f32({})", n.op == Op::kNeg ? "neg" : "abs", value(n.a));
}

// Bits of one value beside those of another, one instruction where the compiler makes two of it.
std::string Emitter::masked_or(const ExprNode& n) {
  if (n.op != Op::kOr || n.dtype != DType::kI32) return "";
  for (const auto& [masked, other] : {std::pair{n.a, n.b}, std::pair{n.b, n.a}}) {
    const ExprNode m = pool_.node(masked);
    if (m.op != Op::kAnd) continue;
    const std::string x = value(m.a);
    const std::string y = value(m.b);
    return fmt::format("pyc_and_or_i32({}, {}, {})", x, y, value(other));
  }
  return "";
}

std::string Emitter::binary(const ExprNode& n) {
  if (std::string text = masked_or(n); !text.empty()) return text;
  const std::string x = operand(n.a);
  const std::string y = operand(n.b);
  if (const char* sign = comparison_sign(n.op)) {
    return fmt::format("({})({} {} {})", value_type(n.dtype), x, sign, y);
  }
  return fmt::format("pyc_{}_{}({}, {})", function_word(n.op), dtype_name(n.dtype), x, y);
}

// i64, in 32 bits where the operands and the result have no more.
std::string Emitter::index_operation(const ExprNode& n) {
  const bool narrow_result = is_comparison(n.op) || is_short_index(n);
  const bool narrow =
      narrow_result && is_short_index(pool_.node(n.a)) && is_short_index(pool_.node(n.b));
  const std::string x = narrow ? value(n.a) : wide(n.a);
  const std::string y = narrow ? value(n.b) : wide(n.b);
  const std::string cast = is_short_index(n) && !narrow ? "(i32)" : "";
  if (const char* sign = comparison_sign(n.op)) {
    return fmt::format("{}({} {} {})", cast, x, sign, y);
  }
  if (narrow) {
    const bool natural = pool_.node(n.a).lo >= 0;
    // Neither operands nor result leave 31 bits.
    if (n.op == Op::kAdd) return fmt::format("{} + {}", x, y);
    if (n.op == Op::kSub) return fmt::format("{} - {}", x, y);
    if (n.op == Op::kMul) return fmt::format("{} * {}", x, y);
    if (n.op == Op::kFloorDiv && natural) return fmt::format("(i32)((u32){} / {}u)", x, y);
    if (n.op == Op::kFloorMod && natural) return fmt::format("(i32)((u32){} % {}u)", x, y);
  }
  return fmt::format("{}pyc_{}_{}({}, {})", cast, function_word(n.op), narrow ? "i32" : "i64", x,
                     y);
}

std::string Emitter::load(const ExprNode& n) {
  const auto buffer = static_cast<uint32_t>(n.imm);
  const std::string guard = n.b != kNone ? value(n.b) : "";
  const std::string fallback = n.c == kNone ? "" : n.dtype == DType::kI64 ? wide(n.c) : value(n.c);
  const std::string element = fmt::format("{}[{}]", buffer_name(buffer), value(n.a));
  std::string read = element;
  if (n.dtype == DType::kBool) read = fmt::format("({} != 0)", element);
  if (is_narrow_int(n.dtype)) {
    read = fmt::format("pyc_wrap_{}({})", dtype_name(n.dtype), element);
  }
  if (n.dtype == DType::kF4E2M1) read = fmt::format("pyc_wrap_u4({})", element);
  return n.b == kNone ? read : fmt::format("{} ? {} : {}", guard, read, fallback);
}

std::string Emitter::table_load(const ExprNode& n) {
  return fmt::format("{}_t{}[{}]", symbol_, n.imm, value(n.a));
}

std::string Emitter::tables() const {
  std::string text;
  const auto& all = pool_.tables();
  for (size_t i = 0; i < all.size(); ++i) {
    text += fmt::format("PYC_TABLE {} {}_t{}[] = {{", value_type(all[i].dtype), symbol_, i);
    for (size_t k = 0; k < all[i].words.size(); ++k) {
      text += (k == 0 ? "" : k % 8 == 0 ? ",\n" : ", ") + literal(all[i].dtype, all[i].words[k]);
    }
    text += "};\n";
  }
  return text;
}

void Emitter::store(const loop::Store& s, const std::string& condition) {
  const loop::Buffer& b = kernel_.buffers[s.buffer];
  const std::string at = value(s.offset);
  const std::string x = b.dtype == DType::kI64 ? wide(s.value) : value(s.value);
  line(fmt::format("{}{}[{}] = ({}){};", condition, buffer_name(s.buffer), at, memory_type(b.dtype),
                   x));
}

std::optional<Emitter::Rounded> Emitter::rounded(ExprId e) {
  const ExprNode n = pool_.node(e);
  const ExprId half = n.op == Op::kSelect ? n.c : e;
  const ExprNode made = pool_.node(half);
  const bool fits = made.op == Op::kConvert && is_half(made.dtype) &&
                    pool_.dtype(made.a) == DType::kF32 &&
                    (half == e || e == loop::canonical_nan({&pool_, half}).id);
  if (!fits) return std::nullopt;
  return Rounded{
      made.a, fmt::format("pyc_pair_to_{}{}", dtype_name(made.dtype), half == e ? "" : "_one_nan")};
}

void Emitter::check(const loop::Check& c, const std::string& condition) {
  const std::string ok = value(c.ok);
  line(
      fmt::format("{}if (!{}) pyc_fault(fault, (u32)step * 65536u + {}u);", condition, ok, c.code));
}

}  // namespace pyc::cuda
