#include <algorithm>
#include <climits>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "eval/tape.h"
#include "loop/function.h"

namespace pyc::eval {

using loop::ExprId;
using loop::ExprNode;
using loop::kNone;
using loop::Op;
using loop::ReduceKind;
using loop::ReduceOp;
using loop::VarId;

DType storage_type(DType t) {
  switch (t) {
    case DType::kBool:
    case DType::kI2:
    case DType::kI4:
    case DType::kU2:
    case DType::kU4:
    case DType::kU8:
    case DType::kF4E2M1:
    case DType::kF8E8M0:
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
      return DType::kU8;
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return DType::kU16;
    case DType::kU32:
    case DType::kF32:
      return DType::kU32;
    case DType::kI64:
    case DType::kU64:
    case DType::kF64:
      return DType::kI64;
    default:
      return t;
  }
}

std::optional<uint16_t> typed_code(Op op, DType t) {
  const bool real = t == DType::kF32 || t == DType::kF64;
  const bool truth = t == DType::kBool;
  if (is_narrow_int(t) && op != Op::kSelect) return std::nullopt;
  // Words of narrower integers compare and combine like i64.
  const DType wide = real || t == DType::kU64 ? t : DType::kI64;
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
      if (real || is_int(t)) return code_of(op, t);
      break;
    case Op::kNeg:
      if (real || is_int(t)) return code_of(op, t);
      break;
    case Op::kAbs:
      if (is_unsigned_int(t)) return kMove;
      if (real || is_int(t)) return code_of(op, t);
      break;
    case Op::kRem:
    case Op::kShl:
    case Op::kShr:
      if (is_int(t)) return code_of(op, t);
      break;
    case Op::kFloorDiv:
    case Op::kFloorMod:
      if (t == DType::kI64) return code_of(op, t);
      break;
    case Op::kMin:
    case Op::kMax:
    case Op::kLt:
    case Op::kLe:
      if (real || is_int(t) || truth) return code_of(op, wide);
      break;
    case Op::kEq:
    case Op::kNe:
      if (real) return code_of(op, t);
      if (is_int(t) || truth) return code_of(op, DType::kI64);
      break;
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      if (is_int(t) || truth) return code_of(op, DType::kI64);
      break;
    case Op::kNot:
      if (is_signed_int(t)) return code_of(op, DType::kI64);
      if (is_int(t) || truth) return code_of(op, t);
      break;
    case Op::kSqrt:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
    case Op::kRoundEven:
    case Op::kFma:
      if (real) return code_of(op, t);
      break;
    case Op::kSelect:
      return code_of(op, DType::kI64);
    default:
      break;
  }
  return std::nullopt;
}

namespace {

Op op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return Op::kAdd;
    case ReduceOp::kProd:
      return Op::kMul;
    case ReduceOp::kMax:
      return Op::kMax;
    case ReduceOp::kMin:
      return Op::kMin;
    case ReduceOp::kAnd:
      return Op::kAnd;
    case ReduceOp::kOr:
      return Op::kOr;
  }
  return Op::kAdd;
}

Word lowest(DType t) {
  if (is_float(t)) return word_from_double(-INFINITY, t);
  if (!is_signed_int(t)) return 0;
  return ~Word{0} << (8 * dtype_size(t) - 1);
}

Word highest(DType t) {
  if (is_float(t)) return word_from_double(INFINITY, t);
  if (t == DType::kBool) return 1;
  const auto bits = 8 * dtype_size(t) - (is_signed_int(t) ? 1 : 0);
  return ~Word{0} >> (64 - bits);
}

Word identity_of(ReduceOp op, DType t) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kOr:
      return 0;
    case ReduceOp::kProd:
      return word_from_int(1, t);
    case ReduceOp::kMax:
      return lowest(t);
    case ReduceOp::kMin:
      return highest(t);
    case ReduceOp::kAnd:
      return is_signed_int(t) ? ~Word{0} : highest(t);
  }
  return 0;
}

// Where an element is: buffer[base + index * scale].
struct Address {
  uint32_t base;
  uint32_t index;
  int64_t scale;
};

class Flattener {
 public:
  explicit Flattener(const loop::Kernel& kernel)
      : kernel_(kernel),
        pool_(kernel.pool),
        var_register_(pool_.var_count(), kNone),
        var_depth_(pool_.var_count(), 0),
        var_strip_(pool_.var_count(), 0) {}

  Result<Tape> run() {
    if (kernel_.buffers.size() > UINT16_MAX) fail("too many buffers");
    const std::vector<int64_t> scratch = kernel_.scratch_offsets();
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      tape_.buffers.push_back({static_cast<uint64_t>(kernel_.buffers[i].elements), scratch[i]});
    }
    if (loop::inlined_operations(pool_) > loop::kMaxInlined) {
      fail("calls of too many operations");
    } else {
      whole_ = loop::inline_calls(pool_);
    }
    tape_.tables = pool_.tables();
    scopes_.emplace_back();
    for (VarId v : kernel_.parallel) {
      scopes_.emplace_back();
      declare(v, new_register(), scopes_.size() - 1);
      tape_.parallel.push_back({var_register_[v], pool_.var_info(v).extent, 0});
    }
    flatten_body(kernel_.body);
    for (size_t i = 0; i < scopes_.size(); ++i) {
      if (i > 0) tape_.parallel[i - 1].entry = static_cast<uint32_t>(tape_.code.size());
      tape_.code.insert(tape_.code.end(), scopes_[i].code.begin(), scopes_[i].code.end());
    }
    tape_.code.push_back({.code = kPointEnd});
    if (!error_.empty()) {
      return Status(Code::kVerifyFailed, "loop kernel '" + kernel_.name + "': " + error_);
    }
    return std::move(tape_);
  }

 private:
  struct Scope {
    std::vector<Instr> code;
    std::vector<ExprId> values;  // in registers as long as the scope is open
  };
  struct Info {
    int depth = -1;
    // Computed anew in each statement that uses it: it reads memory that stores may change, or
    // memory that it may not reach, which must not be touched before its time.
    bool at_use = false;
  };

  void fail(const std::string& message) {
    if (error_.empty()) error_ = message;
  }

  uint32_t new_register(Word initial = 0) {
    tape_.registers.push_back(initial);
    return static_cast<uint32_t>(tape_.registers.size() - 1);
  }

  uint32_t constant(Word word) {
    const auto [it, fresh] = constants_.try_emplace(word, 0);
    if (fresh) it->second = new_register(word);
    return it->second;
  }

  void declare(VarId v, uint32_t reg, size_t depth) {
    var_register_[v] = reg;
    var_depth_[v] = static_cast<int>(depth);
  }

  std::vector<Instr>& code() { return scopes_.back().code; }

  // The value without a call around it.
  ExprId whole(ExprId e) const { return e < whole_.size() ? whole_[e] : e; }

  const Info& info(ExprId e) {
    e = whole(e);
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
    if (n.op == Op::kTable) {
      const ExprNode& index = pool_.node(n.a);
      const auto size = static_cast<int64_t>(tape_.tables[static_cast<size_t>(n.imm)].words.size());
      result.at_use = index.lo < 0 || index.hi >= size;
    }
    if (n.op == Op::kFloorDiv && is_fixed_in_strip(n)) {
      result.depth = var_depth_[static_cast<VarId>(pool_.node(n.a).imm)] - 1;
      return info_[e] = result;
    }
    for (ExprId o : {n.a, n.b, n.c}) {
      if (o == kNone) continue;
      const Info operand = info(o);
      result.depth = std::max(result.depth, operand.depth);
      result.at_use = result.at_use || operand.at_use;
    }
    return info_[e] = result;
  }

  uint32_t held(ExprId e) const { return e < held_.size() ? held_[e] : kNone; }

  // Notes that register `reg` holds the value, and appends the instruction that puts it there to
  // the outermost scope that has all the value depends on.
  uint32_t define(ExprId e, Instr instr) {
    instr.dst = new_register();
    place(e, instr);
    return keep(e, instr.dst);
  }

  void place(ExprId e, const Instr& instr) {
    const Info& i = info(e);
    scopes_[i.at_use ? scopes_.size() - 1 : static_cast<size_t>(i.depth)].code.push_back(instr);
  }

  uint32_t keep(ExprId e, uint32_t reg) {
    const Info& i = info(e);
    if (held_.size() <= e) held_.resize(pool_.size(), kNone);
    held_[e] = reg;
    (i.at_use ? statement_values_ : scopes_[static_cast<size_t>(i.depth)].values).push_back(e);
    return reg;
  }

  void end_statement() {
    for (ExprId e : statement_values_) held_[e] = kNone;
    statement_values_.clear();
  }

  // The register of the value.
  uint32_t value(ExprId e) {
    e = whole(e);
    if (held(e) != kNone) return held(e);
    const ExprNode n = pool_.node(e);
    switch (n.op) {
      case Op::kConst:
        return constant(n.word);
      case Op::kVar: {
        const uint32_t reg = var_register_[static_cast<VarId>(n.imm)];
        if (reg == kNone) fail("a variable is used outside its scope");
        return reg == kNone ? 0 : reg;
      }
      case Op::kLoad:
        return load(e, n);
      case Op::kTable:
        return define(e, {.code = kTableLoad, .a = value(n.a), .imm = n.imm});
      case Op::kConvert:
      case Op::kBitcast:
        return convert(e, n);
      case Op::kAdd:
      case Op::kSub:
      case Op::kMul:
        if (n.dtype == DType::kI64 && (n.op != Op::kMul || pool_.node(n.b).op == Op::kConst)) {
          return sum(e);
        }
        break;
      default:
        break;
    }
    const std::optional<uint16_t> typed =
        typed_code(n.op, pool_.dtype(n.op == Op::kSelect ? n.b : n.a));
    if (!typed) fail("an operation that its operands' type does not have");
    Instr instr{.code = typed.value_or(0)};
    instr.a = value(n.a);
    if (n.b != kNone) instr.b = value(n.b);
    if (n.c != kNone) instr.c = value(n.c);
    return define(e, instr);
  }

  // Whether a node divides the variable of a loop by a multiple of its strips: within a strip the
  // quotient does not change.
  bool is_fixed_in_strip(const ExprNode& n) const {
    const ExprNode& x = pool_.node(n.a);
    const ExprNode& divisor = pool_.node(n.b);
    if (x.op != Op::kVar || divisor.op != Op::kConst) return false;
    const int64_t strip = var_strip_[static_cast<VarId>(x.imm)];
    return strip > 0 && static_cast<int64_t>(divisor.word) % strip == 0;
  }

  // Iterations of a loop over which quotients of its variable stay the same; 0 if there are none or
  // too few.
  int64_t digit(const loop::Loop& l, int64_t strip) const {
    constexpr int64_t kWorthIt = 8;
    for (ExprId e = 0; e < pool_.size(); ++e) {
      const ExprNode& n = pool_.node(e);
      if (n.op != Op::kFloorDiv && n.op != Op::kFloorMod) continue;
      const ExprNode& x = pool_.node(n.a);
      const ExprNode& divisor = pool_.node(n.b);
      if (x.op != Op::kVar || static_cast<VarId>(x.imm) != l.var) continue;
      if (divisor.op == Op::kConst) strip = std::gcd(strip, static_cast<int64_t>(divisor.word));
    }
    return strip >= kWorthIt ? strip : 0;
  }

  // x mod d as x - d · (x div d), where the quotient is computed once per strip.
  void replace_remainders(loop::Affine& sum) {
    std::map<ExprId, int64_t> terms;
    bool any = false;
    for (const auto& [atom, c] : sum.terms) {
      const ExprNode n = pool_.node(atom);
      int64_t back = 0;
      if (n.op != Op::kFloorMod || !is_fixed_in_strip(n) ||
          __builtin_mul_overflow(c, static_cast<int64_t>(pool_.node(n.b).word), &back)) {
        terms[atom] += c;
        continue;
      }
      any = true;
      terms[n.a] += c;
      terms[pool_.binary(Op::kFloorDiv, n.a, n.b)] -= back;
    }
    if (!any) return;
    sum.terms.clear();
    for (const auto& [atom, c] : terms) {
      if (c != 0) sum.terms.emplace_back(atom, c);
    }
  }

  // Terms in the order of the scopes they belong to.
  loop::Affine by_depth(ExprId e) {
    loop::Affine sum = affine_of(pool_, e);
    replace_remainders(sum);
    std::stable_sort(sum.terms.begin(), sum.terms.end(),
                     [&](const auto& x, const auto& y) { return level(x.first) < level(y.first); });
    return sum;
  }

  int level(ExprId e) {
    const Info& i = info(e);
    return i.at_use ? INT_MAX : i.depth;
  }

  // What is constant in the innermost scope is added up outside it.
  uint32_t sum(ExprId e) {
    loop::Affine all = by_depth(e);
    if (all.terms.empty()) return keep(e, constant(static_cast<Word>(all.constant)));
    const int innermost = level(all.terms.back().first);
    loop::Affine outer;
    outer.constant = all.constant;
    size_t at = 0;
    while (level(all.terms[at].first) != innermost) ++at;
    outer.terms.assign(all.terms.begin(), all.terms.begin() + static_cast<ptrdiff_t>(at));
    uint32_t total = outer_part(std::move(outer));
    if (total == constant(0) && all.terms[at].second == 1) {
      total = value(all.terms[at++].first);
    }
    for (; at < all.terms.size(); ++at) {
      const auto& [atom, c] = all.terms[at];
      const uint32_t factor = value(atom);
      const uint32_t dst = new_register();
      place(e, {.code = kMulAdd, .dst = dst, .a = total, .b = factor, .imm = c});
      total = dst;
    }
    return keep(e, total);
  }

  uint32_t outer_part(loop::Affine part) {
    std::sort(part.terms.begin(), part.terms.end());
    return value(from_affine(pool_, part));
  }

  Address address(ExprId offset) {
    if (held(offset) != kNone) return {held(offset), constant(0), 0};
    loop::Affine all = by_depth(offset);
    if (all.terms.empty()) return {constant(static_cast<Word>(all.constant)), constant(0), 0};
    const auto [atom, scale] = all.terms.back();
    all.terms.pop_back();
    const uint32_t index = value(atom);
    return {outer_part(std::move(all)), index, scale};
  }

  uint32_t load(ExprId e, const ExprNode& n) {
    const auto buffer = static_cast<size_t>(n.imm);
    if (kernel_.buffers[buffer].dtype != n.dtype) fail("a load of another type than its buffer's");
    const DType storage = storage_type(n.dtype);
    const Address at = address(n.a);
    Instr instr{.code = code_of(Op::kLoad, storage),
                .buffer = static_cast<uint16_t>(buffer),
                .a = at.base,
                .b = at.index,
                .imm = at.scale};
    if (n.b != kNone) {
      instr.code = static_cast<uint16_t>(kLoadIf + static_cast<int>(storage));
      instr.c = value(n.b);
      instr.d = value(n.c);
    }
    if (dtype_bits(n.dtype) < 8) {
      instr.dst = new_register();
      place(e, instr);
      instr = low_bits(instr.dst, n.dtype);
    }
    return define(e, instr);
  }

  // The element of a type below a byte whose bits are the low ones of register `a`.
  static Instr low_bits(uint32_t a, DType to) {
    const DType integer = to == DType::kF4E2M1 ? DType::kU4 : to;
    return {.code = kConvertAny, .a = a, .imm = conversion(DType::kI64, integer)};
  }
  static int64_t conversion(DType from, DType to) {
    return static_cast<int64_t>(from) * kTypes + static_cast<int64_t>(to);
  }

  uint32_t convert(ExprId e, const ExprNode& n) {
    const DType from = pool_.dtype(n.a);
    const DType to = n.dtype;
    Instr instr{.a = value(n.a)};
    const bool keeps_bits = n.op == Op::kBitcast || (!is_float(from) && is_int(to));
    if (keeps_bits && dtype_bits(to) < 8) return define(e, low_bits(instr.a, to));
    if (keeps_bits) {
      const DType storage = storage_type(to);
      instr.code = storage == DType::kI64 ? uint16_t{kMove} : code_of(Op::kConvert, storage);
    } else if (!is_float(from) && from != DType::kU64 && to == DType::kF32) {
      instr.code = kIntToF32;
    } else if (!is_float(from) && from != DType::kU64 && to == DType::kF64) {
      instr.code = kIntToF64;
    } else if (from == DType::kF32 && to == DType::kF64) {
      instr.code = kF32ToF64;
    } else if (from == DType::kF64 && to == DType::kF32) {
      instr.code = kF64ToF32;
    } else {
      instr.code = kConvertAny;
      instr.imm = conversion(from, to);
    }
    return define(e, instr);
  }

  void flatten_body(const std::vector<loop::Stmt>& body) {
    for (const loop::Stmt& s : body) {
      switch (s.kind) {
        case loop::StmtKind::kStore:
          flatten_store(kernel_.stores[s.index]);
          break;
        case loop::StmtKind::kCheck: {
          const loop::Check& check = kernel_.checks[s.index];
          const uint32_t ok = value(check.ok);
          code().push_back({.code = kCheck, .a = ok, .imm = check.code});
          break;
        }
        case loop::StmtKind::kLoop:
          flatten_loop(kernel_.loops[s.index]);
          break;
      }
      end_statement();
    }
  }

  void flatten_store(const loop::Store& s) {
    const loop::Buffer& b = kernel_.buffers[s.buffer];
    if (b.dtype != pool_.dtype(s.value)) fail("a store of another type than its buffer's");
    if (b.access == loop::Access::kRead) fail("a store to a buffer that is only read");
    const Address at = address(s.offset);
    const uint32_t stored = value(s.value);
    code().push_back(
        {.code = static_cast<uint16_t>(kStore + static_cast<int>(storage_type(b.dtype))),
         .buffer = static_cast<uint16_t>(s.buffer),
         .a = at.base,
         .b = at.index,
         .c = stored,
         .imm = at.scale});
  }

  struct Accumulator {
    uint32_t result = 0;
    uint32_t lanes = 0;  // tree only: 64 registers, the super-block's, then the result
    uint32_t acc = 0;    // chain only
    uint16_t combine = 0;
  };

  void flatten_loop(const loop::Loop& l) {
    if (l.extent <= 0) {
      for (const loop::Reduction& r : l.reductions) {
        const DType t = pool_.var_info(r.result).dtype;
        declare(r.result, constant(identity_of(r.op, t)), scopes_.size() - 1);
      }
      for (const loop::Carry& c : l.carries) declare(c.result, started(c), scopes_.size() - 1);
      return;
    }
    if (l.chunk_var != kNone && (l.chunk <= 0 || var_register_[l.chunk_var] == kNone)) {
      fail("a chunked loop without its chunk");
      return;
    }
    std::vector<uint32_t> carried;
    for (const loop::Carry& c : l.carries) carried.push_back(started(c));
    TapeLoop shape{.extent = l.extent, .chunk = l.chunk_var != kNone ? l.chunk : 0};
    std::vector<Accumulator> accumulators;
    for (const loop::Reduction& r : l.reductions) {
      accumulators.push_back(start(r));
      if (r.kind == ReduceKind::kTree) shape.strip = std::gcd(shape.strip, kTreeBlock);
      if (r.kind == ReduceKind::kChain) shape.strip = std::gcd(shape.strip, r.segment);
    }
    const int64_t digit_strip = digit(l, shape.strip);
    if (digit_strip > 0) shape.strip = digit_strip;
    Instr head{.code = kLoop, .dst = new_register(), .a = new_register()};
    head.b = shape.strip > 0 ? new_register() : head.a;
    head.c = shape.chunk > 0 ? var_register_[l.chunk_var] : 0;
    head.imm = static_cast<int64_t>(tape_.loops.size());
    tape_.loops.push_back(shape);

    scopes_.emplace_back();  // what a strip begins with
    scopes_.emplace_back();
    declare(l.var, head.dst, scopes_.size() - 1);
    var_strip_[l.var] = digit_strip;
    for (size_t i = 0; i < carried.size(); ++i) {
      declare(l.carries[i].var, carried[i], scopes_.size() - 1);
    }
    flatten_body(l.body);
    for (size_t i = 0; i < l.reductions.size(); ++i) {
      step(l.reductions[i], accumulators[i], head.dst);
    }
    step_carried(l, carried);
    end_statement();
    const std::vector<Instr> body = close_scope();
    std::vector<Instr> inner = close_scope();
    var_register_[l.var] = kNone;
    for (const loop::Carry& c : l.carries) var_register_[c.var] = kNone;

    inner.insert(inner.end(), body.begin(), body.end());
    const auto back = -static_cast<int64_t>(body.size()) - 1;
    inner.push_back({.code = kNext, .dst = head.dst, .a = head.b, .imm = back});
    if (shape.strip > 0) close_strip(l, accumulators, head, inner);
    head.d = static_cast<uint32_t>(inner.size());
    code().push_back(head);
    code().insert(code().end(), inner.begin(), inner.end());
    for (size_t i = 0; i < l.reductions.size(); ++i) finish(l.reductions[i], accumulators[i]);
    for (size_t i = 0; i < carried.size(); ++i) {
      declare(l.carries[i].result, carried[i], scopes_.size() - 1);
    }
  }

  std::vector<Instr> close_scope() {
    std::vector<Instr> code = std::move(scopes_.back().code);
    for (ExprId e : scopes_.back().values) held_[e] = kNone;
    scopes_.pop_back();
    return code;
  }

  // A register of its own with the value a carried variable starts with.
  uint32_t started(const loop::Carry& c) {
    const uint32_t init = value(c.init);
    const uint32_t reg = new_register();
    code().push_back({.code = kMove, .dst = reg, .a = init});
    return reg;
  }

  // All next values are there before the first variable changes.
  void step_carried(const loop::Loop& l, const std::vector<uint32_t>& carried) {
    std::vector<uint32_t> next;
    for (const loop::Carry& c : l.carries) {
      next.push_back(value(c.next));
      if (l.carries.size() == 1) break;
      const uint32_t copy = new_register();
      code().push_back({.code = kMove, .dst = copy, .a = next.back()});
      next.back() = copy;
    }
    for (size_t i = 0; i < carried.size(); ++i) {
      code().push_back({.code = kMove, .dst = carried[i], .a = next[i]});
    }
  }

  Accumulator start(const loop::Reduction& r) {
    const DType t = pool_.var_info(r.result).dtype;
    const std::optional<uint16_t> combine = typed_code(op_of(r.op), t);
    if (!combine || pool_.dtype(r.value) != t) fail("a reduction its type does not have");
    if (r.kind == ReduceKind::kChain && r.op != ReduceOp::kSum) fail("a chain that is no sum");
    if (r.segment < 0) fail("a negative segment");
    Accumulator a{.combine = combine.value_or(0)};
    const uint32_t identity = constant(identity_of(r.op, t));
    Instr init{.code = kMove, .a = identity};
    if (r.kind == ReduceKind::kTree) {
      a.lanes = new_register();
      for (uint32_t i = 0; i <= kTreeLanes; ++i) a.result = new_register();
      init.dst = a.lanes;
      init.code = kFill;
      init.imm = kTreeLanes + 2;
    } else {
      a.result = new_register();
      init.dst = a.result;
    }
    code().push_back(init);
    if (r.kind == ReduceKind::kChain) {
      a.acc = new_register();
      code().push_back({.code = kMove, .dst = a.acc, .a = identity});
    }
    return a;
  }

  void step(const loop::Reduction& r, const Accumulator& acc, uint32_t var) {
    const DType t = pool_.var_info(r.result).dtype;
    const uint32_t guard = r.guard != kNone ? value(r.guard) : 0;
    const uint32_t x = value(r.value);
    const uint32_t y = r.value2 != kNone ? value(r.value2) : 0;
    std::vector<Instr> steps;
    if (r.kind == ReduceKind::kTree) {
      const bool sum_f32 = acc.combine == code_of(Op::kAdd, DType::kF32);
      steps.push_back({.code = sum_f32 ? uint16_t{kTreeSumF32} : uint16_t{kTreeStep},
                       .dst = acc.lanes,
                       .a = var,
                       .b = x,
                       .c = acc.combine});
    } else {
      const uint32_t to = r.kind == ReduceKind::kChain ? acc.acc : acc.result;
      if (r.value2 == kNone) {
        steps.push_back({.code = acc.combine, .dst = to, .a = to, .b = x});
      } else if (is_float(t)) {
        steps.push_back({.code = code_of(Op::kFma, t), .dst = to, .a = x, .b = y, .c = to});
      } else {
        const uint32_t product = new_register();
        steps.push_back({.code = code_of(Op::kMul, t), .dst = product, .a = x, .b = y});
        steps.push_back({.code = acc.combine, .dst = to, .a = to, .b = product});
      }
    }
    if (r.guard != kNone) {
      code().push_back({.code = kJumpUnless, .a = guard, .d = static_cast<uint32_t>(steps.size())});
    }
    code().insert(code().end(), steps.begin(), steps.end());
  }

  // What happens at the end of each strip of iterations, and the jump to the next one.
  void close_strip(const loop::Loop& l, const std::vector<Accumulator>& accumulators,
                   const Instr& head, std::vector<Instr>& inner) {
    const auto body = static_cast<int64_t>(inner.size()) - 1;
    int64_t tail = 0;
    for (size_t i = 0; i < l.reductions.size(); ++i) {
      const loop::Reduction& r = l.reductions[i];
      const Accumulator& acc = accumulators[i];
      if (r.kind == ReduceKind::kTree) {
        const DType t = pool_.var_info(r.result).dtype;
        inner.push_back({.code = kTreeFlush,
                         .dst = acc.lanes,
                         .a = head.dst,
                         .b = head.a,
                         .c = acc.combine,
                         .imm = static_cast<int64_t>(identity_of(r.op, t))});
        ++tail;
      } else if (r.kind == ReduceKind::kChain && r.segment > 0) {
        inner.push_back({.code = kChainFlush,
                         .dst = acc.result,
                         .a = acc.acc,
                         .b = head.dst,
                         .c = head.a,
                         .d = acc.combine,
                         .imm = r.segment});
        ++tail;
      }
    }
    inner.push_back({.code = kStrip,
                     .dst = head.dst,
                     .a = head.b,
                     .b = head.a,
                     .c = static_cast<uint32_t>(head.imm),
                     .imm = -(body + 1 + tail) - 1});
  }

  void finish(const loop::Reduction& r, const Accumulator& acc) {
    if (r.kind == ReduceKind::kChain && r.segment == 0) {
      code().push_back({.code = acc.combine, .dst = acc.result, .a = acc.result, .b = acc.acc});
    }
    declare(r.result, acc.result, scopes_.size() - 1);
  }

  const loop::Kernel& kernel_;
  loop::Pool pool_;  // a copy: calls and parts of sums become values of their own
  Tape tape_;
  std::vector<Scope> scopes_;
  std::vector<ExprId> whole_;  // calls are written out
  std::vector<Info> info_;
  std::vector<uint32_t> held_;  // the register that holds a value now
  std::vector<ExprId> statement_values_;
  std::vector<uint32_t> var_register_;
  std::vector<int> var_depth_;
  std::vector<int64_t> var_strip_;  // of a loop whose strips begin with code of their own
  std::unordered_map<Word, uint32_t> constants_;
  std::string error_;
};

}  // namespace

Result<Tape> flatten(const loop::Kernel& kernel) { return Flattener(kernel).run(); }

}  // namespace pyc::eval
