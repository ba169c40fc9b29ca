#include "backends/cpu/llvm/emitter.h"

#include <llvm/IR/IntrinsicsAArch64.h>

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "backends/cpu/llvm/bounds.h"
#include "base/status.h"
#include "loop/function.h"

namespace pyc::cpu {

using loop::ExprNode;
using loop::kNone;
using loop::Op;

namespace {

bool fits_32(const ExprNode& n) {
  return n.lo >= std::numeric_limits<int32_t>::min() && n.hi <= std::numeric_limits<int32_t>::max();
}

}  // namespace

ExprEmitter::ExprEmitter(const loop::Kernel& kernel, const TargetTraits& traits,
                         llvm::IRBuilder<>& builder, llvm::Function* function)
    : k_(kernel),
      whole_(loop::inline_calls(k_.pool)),
      b_(builder),
      ops_(builder, traits),
      function_(function),
      buffers_(kernel.buffers.size(), nullptr),
      tables_(k_.pool.tables().size(), nullptr),
      bindings_(1),
      var_binding_(kernel.pool.var_count(), 0),
      info_(k_.pool.size()) {
  if (traits.avx512) find_exp();
  if (traits.aarch64) find_addends();
  if (any_size()) find_counts();
  llvm::MDBuilder md(builder.getContext());
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain("buffers");
  std::vector<llvm::Metadata*> all;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    llvm::MDNode* scope = md.createAnonymousAliasScope(domain, std::to_string(i));
    all.push_back(scope);
    alias_scopes_.push_back(llvm::MDNode::get(builder.getContext(), {scope}));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<llvm::Metadata*> others = all;
    // What may be in place of another buffer may alias it.
    for (size_t j = all.size(); j-- > 0;) {
      const bool same =
          i == j || kernel.buffers[i].in_place_of == j || kernel.buffers[j].in_place_of == i;
      if (same) others.erase(others.begin() + static_cast<std::ptrdiff_t>(j));
    }
    no_alias_.push_back(llvm::MDNode::get(builder.getContext(), others));
  }
  scopes_.push_back({&function->getEntryBlock(), 1, {}, {}, {}});
}

llvm::BasicBlock* ExprEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(b_.getContext(), name, function_);
}

void ExprEmitter::push_scope(llvm::BasicBlock* block) {
  scopes_.push_back({block, scopes_.back().width, {}, {}, {}});
  forget_loads();
  here();
}

void ExprEmitter::scoped(const std::function<void()>& body) {
  llvm::BasicBlock* inner = new_block("scope");
  b_.CreateBr(inner);
  push_scope(inner);
  body();
  llvm::BasicBlock* last = b_.GetInsertBlock();
  pop_scope();
  b_.SetInsertPoint(last);
}

void ExprEmitter::pop_scope() {
  const std::vector<std::pair<VarId, uint32_t>> shadowed = std::move(scopes_.back().shadowed);
  for (auto it = shadowed.rbegin(); it != shadowed.rend(); ++it)
    var_binding_[it->first] = it->second;
  for (const ExprId id : scopes_.back().assumed) assumed_.erase(id);
  scopes_.pop_back();
  if (scopes_.back().width == 1) lane_var_ = kNone;
  std::fill(info_.begin(), info_.end(), Info{});
  forget_loads();
  here();
}

void ExprEmitter::bind(VarId var, const Binding& binding) {
  scopes_.back().shadowed.push_back({var, var_binding_[var]});
  var_binding_[var] = static_cast<uint32_t>(bindings_.size());
  bindings_.push_back(binding);
  std::fill(info_.begin(), info_.end(), Info{});
}

void ExprEmitter::bind(VarId var, Value* value) {
  bind(var, Binding{static_cast<int>(scopes_.size()) - 1, value, false, 0, 1});
}

void ExprEmitter::bind_lanes(VarId var, Value* base, int64_t offset, int width, int64_t alignment) {
  if (width == 1) {
    here();
    Value* value =
        offset == 0 ? base : b_.CreateAdd(base, b_.getInt64(static_cast<uint64_t>(offset)));
    bind(var, value);
    return;
  }
  PYC_CHECK(scopes_.back().width == 1, "a vector body inside a vector body");
  scopes_.back().width = width;
  lane_var_ = var;
  bind(var, Binding{static_cast<int>(scopes_.size()) - 1, base, true, offset, alignment});
}

void ExprEmitter::assume(ExprId id, bool value) {
  assumed_[id] = value;
  scopes_.back().assumed.push_back(id);
  std::fill(info_.begin(), info_.end(), Info{});
}

void ExprEmitter::at(Scope& scope) {
  llvm::Instruction* end = scope.block->getTerminator();
  if (end != nullptr) {
    b_.SetInsertPoint(end);
  } else {
    b_.SetInsertPoint(scope.block);
  }
}

llvm::Value* ExprEmitter::value_of(VarId var) {
  const Binding& binding = bindings_[var_binding_[var]];
  PYC_CHECK(binding.value != nullptr && !binding.lanes, "a variable has no single value here");
  return binding.value;
}

llvm::AllocaInst* ExprEmitter::stack_slot(llvm::Type* type, int count) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> first(&entry, entry.begin());
  llvm::AllocaInst* slot = first.CreateAlloca(type, first.getInt32(static_cast<uint32_t>(count)));
  slot->setAlignment(llvm::Align(64));
  return slot;
}

const ExprEmitter::Info& ExprEmitter::analyse(ExprId id) {
  id = whole(id);
  Info& info = info_[id];
  if (info.depth >= 0) return info;
  const ExprNode& n = k_.pool.node(id);
  Info r{0, false, false};
  if (n.op == Op::kVar) {
    const Binding& binding = bindings_[var_binding_[static_cast<VarId>(n.imm)]];
    PYC_CHECK(binding.value != nullptr, "a variable is used outside its scope");
    r.depth = binding.depth;
    r.varying = binding.lanes || binding.value->getType()->isVectorTy();
  }
  for (const ExprId operand : {n.a, n.b, n.c}) {
    if (operand == kNone) continue;
    const Info& o = analyse(operand);
    r.depth = std::max(r.depth, o.depth);
    r.varying |= o.varying;
    r.is_volatile |= o.is_volatile;
  }
  // Memory that the kernel writes, or that is only known to be there once a check has passed, is
  // read where the value is used.
  if (n.op == Op::kLoad) {
    const loop::Buffer& buffer = k_.buffers[static_cast<size_t>(n.imm)];
    const ExprNode& offset = k_.pool.node(n.a);
    const bool proven = offset.lo >= 0 && offset.hi < buffer.elements;
    r.is_volatile |= buffer.access != loop::Access::kRead || (n.b == kNone && !proven);
  }
  if (n.op == Op::kTable) {
    const ExprNode& index = k_.pool.node(n.a);
    const size_t size = k_.pool.tables()[static_cast<size_t>(n.imm)].words.size();
    r.is_volatile |= index.lo < 0 || index.hi >= static_cast<int64_t>(size);
  }
  // Still tied to its scope: elsewhere it may have another value.
  if (assumed_.contains(id)) r.varying = false;
  info = r;
  return info_[id];
}

ExprEmitter::Scope& ExprEmitter::scope_of(ExprId id) {
  const Info& info = analyse(id);
  return info.is_volatile ? scopes_.back() : scopes_[static_cast<size_t>(info.depth)];
}

llvm::Value* ExprEmitter::number(int64_t value) {
  Numbers* numbers = ops_.traits().numbers;
  if (numbers == nullptr) return b_.getInt64(static_cast<uint64_t>(value));
  return numbers->add(function_, value);
}

llvm::Value* ExprEmitter::written(ExprId id, uint32_t part, int64_t value) {
  if (!any_size()) return number(value);
  Value*& known = written_[(static_cast<uint64_t>(part) << 32) | id];
  if (known == nullptr) known = number(value);
  return known;
}

llvm::Value* ExprEmitter::written(ExprId id, uint32_t part, const ExprNode& constant) {
  Value* bits = written(id, part, static_cast<int64_t>(constant.word));
  if (constant.dtype == DType::kI64) return bits;
  auto* load = llvm::cast<llvm::Instruction>(bits);
  llvm::IRBuilder<> behind(load->getParent(), std::next(load->getIterator()));
  const auto width = static_cast<unsigned>(dtype_size(constant.dtype) * 8);
  return behind.CreateBitCast(behind.CreateTrunc(bits, behind.getIntNTy(width)),
                              ops_.type(constant.dtype, 1));
}

// Zero is no size. A mean is a sum divided by how many there are.
bool ExprEmitter::is_number(ExprId id) const {
  const ExprNode& n = k_.pool.node(id);
  if (!any_size() || n.op != Op::kConst || n.word == 0) return false;
  return n.dtype == DType::kI64 || counts_.contains(id);
}

void ExprEmitter::find_counts() {
  for (ExprId id = 0; id < k_.pool.size(); ++id) {
    const ExprNode& n = k_.pool.node(id);
    if (n.op != Op::kDiv || (n.dtype != DType::kF32 && n.dtype != DType::kF64)) continue;
    if (k_.pool.node(n.b).op == Op::kConst) counts_.insert(n.b);
  }
}

llvm::Value* ExprEmitter::eval(ExprId id) {
  id = whole(id);
  const ExprNode& n = k_.pool.node(id);
  if (is_number(id)) return written(id, kConstantPart, n);
  if (n.op == Op::kConst) return ops_.constant(n.dtype, n.word, 1);
  if (const auto it = assumed_.find(id); it != assumed_.end()) return b_.getInt1(it->second);
  return cached(id, kWhole, [&] { return emit(id); });
}

llvm::Value* ExprEmitter::eval_wide(ExprId id) {
  id = whole(id);
  const ExprNode& n = k_.pool.node(id);
  if (width() == 1) return eval(id);
  if (n.op == Op::kConst && !is_number(id)) return ops_.constant(n.dtype, n.word, width());
  if (is_varying(id)) return eval(id);
  return cached(id, kSplat + static_cast<uint32_t>(width()), [&] {
    Value* scalar = eval(id);
    at(scope_of(id));
    return ops_.splat(scalar, width());
  });
}

llvm::Value* ExprEmitter::emit(ExprId id) {
  const ExprNode& n = k_.pool.node(id);
  switch (n.op) {
    case Op::kVar:
      return emit_var(id);
    case Op::kLoad:
      return emit_load(id);
    case Op::kTable:
      return emit_table(id);
    default:
      break;
  }
  if (Value* byte = emit_quantized(id); byte != nullptr) return byte;
  if (Value* steps = emit_steps(id); steps != nullptr) return steps;
  if (!is_varying(id)) return emit_arithmetic(id, 1);
  // Index arithmetic in lanes: narrower vectors where they suffice.
  if (n.dtype == DType::kI64 && (lane_stride(id).has_value() || fits_i32(id))) {
    if (const auto stride = lane_stride(id)) {
      Value* base = eval_lane(id, 0);
      at(scope_of(id));
      if (any_size() && *stride != 1) return ops_.iota(base, number(*stride), width());
      return ops_.iota(base, *stride, width());
    }
    Value* narrow = eval_i32(id);
    at(scope_of(id));
    return b_.CreateSExt(narrow, ops_.type(DType::kI64, width()));
  }
  return emit_arithmetic(id, width());
}

llvm::Value* ExprEmitter::emit_var(ExprId id) {
  const Binding binding = bindings_[var_binding_[static_cast<VarId>(k_.pool.node(id).imm)]];
  if (!binding.lanes) return binding.value;
  Value* base = eval_lane(id, 0);
  at(scope_of(id));
  return ops_.iota(base, 1, width());
}

bool ExprEmitter::is_word(ExprId id) const {
  const auto is_byte = [&](ExprId x) {
    const ExprNode& n = k_.pool.node(whole(x));
    if (n.op != Op::kConvert || n.dtype != DType::kI32) return false;
    const DType from = k_.pool.dtype(n.a);
    return from == DType::kI8 || from == DType::kU8;
  };
  const ExprNode& n = k_.pool.node(whole(id));
  if (n.op != Op::kSub || n.dtype != DType::kI32) return is_byte(id);
  return is_byte(n.a) && is_byte(n.b);
}

llvm::Value* ExprEmitter::eval_word(ExprId id) {
  id = whole(id);
  const ExprNode n = k_.pool.node(id);
  return cached(id, kWord + static_cast<uint32_t>(width()), [&] {
    if (n.op == Op::kSub) {
      Value* a = eval_word(n.a);
      Value* b = eval_word(n.b);
      at(scope_of(id));
      return b_.CreateSub(a, b);
    }
    Value* byte = eval_wide(n.a);
    at(scope_of(id));
    llvm::Type* type = byte->getType()->getWithNewType(b_.getInt16Ty());
    const bool is_unsigned = k_.pool.dtype(n.a) == DType::kU8;
    return is_unsigned ? b_.CreateZExt(byte, type) : b_.CreateSExt(byte, type);
  });
}

// LLVM widens bytes to i32 before it multiplies them, and knows pmaddwd on x86 by itself.
llvm::Value* ExprEmitter::product_of_words(ExprId a, ExprId b, Scope& scope) {
  constexpr int kPart = 4;
  if (!ops_.traits().aarch64 || width() % kPart != 0) return nullptr;
  if (!is_word(a) || !is_word(b) || !(is_varying(a) || is_varying(b))) return nullptr;
  Value* x = eval_word(a);
  Value* y = eval_word(b);
  at(scope);
  auto* type = llvm::FixedVectorType::get(b_.getInt32Ty(), kPart);
  std::vector<Value*> parts;
  for (int i = 0; i < width(); i += kPart) {
    parts.push_back(b_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_smull, {type},
                                       {ops_.slice(x, i, kPart), ops_.slice(y, i, kPart)}));
  }
  return ops_.join(parts);
}

llvm::Value* ExprEmitter::emit_arithmetic(ExprId id, int width) {
  const ExprNode n = k_.pool.node(id);
  const auto operand = [&](ExprId x) {
    return operand_of(id, x == n.a ? 0 : x == n.b ? 1 : 2, x, width);
  };
  const DType t = k_.pool.dtype(n.a);
  const bool index_compare = width > 1 && t == DType::kI64 && n.op >= Op::kEq && n.op <= Op::kLe &&
                             fits_i32(n.a) && fits_i32(n.b);
  if (index_compare) {
    Value* x = eval_i32(n.a);
    Value* y = eval_i32(n.b);
    at(scope_of(id));
    return ops_.binary(n.op, DType::kI32, x, y);
  }
  if (n.op == Op::kConvert && width > 1 && t == DType::kI64 && fits_i32(n.a)) {
    Value* x = eval_i32(n.a);
    at(scope_of(id));
    return ops_.convert(x, DType::kI32, n.dtype);
  }
  if (n.op == Op::kMul && n.dtype == DType::kI32 && width > 1) {
    if (Value* product = product_of_words(n.a, n.b, scope_of(id)); product != nullptr) {
      return product;
    }
  }
  if (width > 1 && by_reciprocal(id)) return emit_division(id);
  if (width > 1 && (is_canonical_already(id) || is_canonical_by_mode(id))) return operand(n.c);
  if (n.op == Op::kMul && t == DType::kF32 && width % 16 == 0) {
    if (Value* exp = emit_exp(id); exp != nullptr) return exp;
  }
  if (n.op == Op::kSelect && width > 1) {
    if (Value* row = load_chosen_row(id); row != nullptr) return row;
  }
  if (has_no_effect(k_, id)) return operand(n.a);
  const bool divides = n.op == Op::kFloorDiv || n.op == Op::kFloorMod;
  Value* a = divides && width == 1 ? dividend(id) : operand(n.a);
  if (divides) {
    at(scope_of(id));
    return divide_floor(id, a);
  }
  Value* b = n.b == kNone ? nullptr : operand(n.b);
  Value* c = load_addend(id, width);
  if (c == nullptr && n.c != kNone) c = operand(n.c);
  at(scope_of(id));
  switch (n.op) {
    case Op::kFma:
      return ops_.fma(a, b, c);
    case Op::kSelect:
      return b_.CreateSelect(a, b, c);
    case Op::kConvert:
      return ops_.convert(a, t, n.dtype);
    case Op::kBitcast:
      return ops_.bitcast(a, t, n.dtype);
    default:
      break;
  }
  return b == nullptr ? ops_.unary(n.op, t, a) : ops_.binary(n.op, t, a, b);
}

llvm::Value* ExprEmitter::operand_of(ExprId id, uint32_t i, ExprId x, int width) {
  x = whole(x);
  if (!is_number(x) || k_.pool.dtype(x) != DType::kI64) return width == 1 ? eval(x) : eval_wide(x);
  Value* v = written(id, kOperandPart + i, k_.pool.node(x));
  if (width == 1) return v;
  at(scope_of(id));
  return ops_.splat(v, width);
}

// The constant of a sum that is divided is there even if it is 0, which it is at some sizes: a
// dividend is often taken modulo the divisor when the kernel is made.
llvm::Value* ExprEmitter::dividend(ExprId id) {
  const ExprId a = k_.pool.node(id).a;
  const loop::Affine sum = loop::affine_of(k_.pool, a);
  const bool simple = std::all_of(sum.terms.begin(), sum.terms.end(),
                                  [](const auto& term) { return term.second == 1; });
  if (!any_size() || !simple || sum.terms.empty() || sum.terms[0].first == a) return eval(a);
  Value* total = nullptr;
  for (const auto& [atom, one] : sum.terms) {
    Value* v = eval(atom);
    at(scope_of(id));
    total = total == nullptr ? v : b_.CreateAdd(total, v);
  }
  return b_.CreateAdd(total, written(a, kConstantPart, sum.constant));
}

llvm::Value* ExprEmitter::divide_floor(ExprId id, Value* a) {
  const ExprNode& n = k_.pool.node(id);
  const ExprNode& b = k_.pool.node(n.b);
  const bool non_negative = k_.pool.node(n.a).lo >= 0;
  const bool is_div = n.op == Op::kFloorDiv;
  if (!is_number(n.b)) {
    const auto divisor = static_cast<int64_t>(b.word);
    return is_div ? ops_.floor_div(a, divisor, non_negative)
                  : ops_.floor_mod(a, divisor, non_negative);
  }
  Value* divisor = written(id, kOperandPart + 1, static_cast<int64_t>(b.word));
  divisor = b_.CreateTrunc(divisor, a->getType()->getScalarType());
  if (a->getType()->isVectorTy()) divisor = ops_.splat(divisor, ValueOps::width_of(a));
  return is_div ? ops_.floor_div(a, divisor, non_negative)
                : ops_.floor_mod(a, divisor, non_negative);
}

llvm::Value* ExprEmitter::eval_lane(ExprId id, int lane) {
  id = whole(id);
  if (!is_varying(id)) return eval(id);
  return cached(id, kLane + static_cast<uint32_t>(lane), [&] { return emit_lane(id, lane); });
}

// Index arithmetic is done per lane on scalars (there is no vector multiply of i64 on most
// machines); anything else comes out of the vector.
llvm::Value* ExprEmitter::emit_lane(ExprId id, int lane) {
  const ExprNode n = k_.pool.node(id);
  if (n.op == Op::kVar) {
    const Binding binding = bindings_[var_binding_[static_cast<VarId>(n.imm)]];
    at(scope_of(id));
    if (!binding.lanes) return b_.CreateExtractElement(binding.value, static_cast<uint64_t>(lane));
    const int64_t add = binding.offset + lane;
    return add == 0 ? binding.value
                    : b_.CreateAdd(binding.value, b_.getInt64(static_cast<uint64_t>(add)));
  }
  if (n.op == Op::kFloorDiv || n.op == Op::kFloorMod) {
    Value* a = eval_lane(n.a, lane);
    at(scope_of(id));
    return divide_floor(id, a);
  }
  const bool index_op =
      n.dtype == DType::kI64 && (n.op == Op::kAdd || n.op == Op::kSub || n.op == Op::kMul ||
                                 n.op == Op::kMin || n.op == Op::kMax);
  if (index_op) {
    Value* a = is_varying(n.a) ? eval_lane(n.a, lane) : operand_of(id, 0, n.a, 1);
    Value* b = is_varying(n.b) ? eval_lane(n.b, lane) : operand_of(id, 1, n.b, 1);
    at(scope_of(id));
    return ops_.binary(n.op, n.dtype, a, b);
  }
  if (n.op == Op::kConvert && is_int(n.dtype) && is_int(k_.pool.dtype(n.a))) {
    Value* a = eval_lane(n.a, lane);
    at(scope_of(id));
    return ops_.convert(a, k_.pool.dtype(n.a), n.dtype);
  }
  if (n.op == Op::kLoad && lane_stride(n.a) != 1) return lane_load(id, lane);
  Value* whole = eval(id);
  at(scope_of(id));
  return b_.CreateExtractElement(whole, static_cast<uint64_t>(lane));
}

bool ExprEmitter::fits_i32(ExprId id, int depth) {
  id = whole(id);
  const ExprNode& n = k_.pool.node(id);
  if (n.dtype != DType::kI64 || !fits_32(n) || depth > 16) return false;
  if (!is_varying(id)) return true;
  if (lane_stride(id).has_value()) return true;
  switch (n.op) {
    case Op::kConvert: {
      const DType from = k_.pool.dtype(n.a);
      return from != DType::kI64 && from != DType::kU64 && !is_float(from);
    }
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kMin:
    case Op::kMax:
    case Op::kFloorDiv:
    case Op::kFloorMod:
      return fits_i32(n.a, depth + 1) && fits_i32(n.b, depth + 1);
    case Op::kSelect:
      return fits_i32(n.b, depth + 1) && fits_i32(n.c, depth + 1);
    default:
      return false;
  }
}

llvm::Value* ExprEmitter::eval_i32(ExprId id) {
  id = whole(id);
  const ExprNode& n = k_.pool.node(id);
  if (n.op == Op::kConst && !is_number(id)) return ops_.constant(DType::kI32, n.word, width());
  return cached(id, kI32 + static_cast<uint32_t>(width()), [&] { return emit_i32(id); });
}

llvm::Value* ExprEmitter::emit_i32(ExprId id) {
  const ExprNode n = k_.pool.node(id);
  if (const auto stride = lane_stride(id)) {
    Value* base = eval_lane(id, 0);
    at(scope_of(id));
    base = b_.CreateTrunc(base, b_.getInt32Ty());
    if (*stride == 0) return ops_.splat(base, width());
    if (any_size() && *stride != 1) {
      return ops_.iota(base, b_.CreateTrunc(number(*stride), b_.getInt32Ty()), width());
    }
    return ops_.iota(base, *stride, width());
  }
  if (n.op == Op::kConvert) {
    Value* a = eval_wide(n.a);
    at(scope_of(id));
    return ops_.convert(a, k_.pool.dtype(n.a), DType::kI32);
  }
  if (n.op == Op::kSelect) {
    Value* cond = eval_wide(n.a);
    Value* x = eval_i32(n.b);
    Value* y = eval_i32(n.c);
    at(scope_of(id));
    return b_.CreateSelect(cond, x, y);
  }
  Value* a = eval_i32(n.a);
  if (n.op == Op::kFloorDiv || n.op == Op::kFloorMod) {
    at(scope_of(id));
    return divide_floor(id, a);
  }
  Value* b = eval_i32(n.b);
  at(scope_of(id));
  return ops_.binary(n.op, DType::kI32, a, b);
}

std::optional<int64_t> ExprEmitter::lane_stride(ExprId id) {
  id = whole(id);
  if (!is_varying(id)) return 0;
  const ExprNode& n = k_.pool.node(id);
  if (n.dtype != DType::kI64) return std::nullopt;
  if (n.op == Op::kVar) {
    if (static_cast<VarId>(n.imm) == lane_var_) return 1;
    return std::nullopt;
  }
  if (n.op == Op::kFloorDiv || n.op == Op::kFloorMod) {
    const auto inner = lane_stride(n.a);
    if (!inner || *inner <= 0) return std::nullopt;
    // No lane crosses a multiple of the divisor if the lanes' span divides it and starts on one
    // of its own multiples.
    const int64_t span = *inner * width();
    const auto divisor = static_cast<int64_t>(k_.pool.node(n.b).word);
    if (divisor % span != 0 || lane_alignment(n.a) % span != 0) return std::nullopt;
    return n.op == Op::kFloorDiv ? 0 : *inner;
  }
  if (n.op != Op::kAdd && n.op != Op::kSub && n.op != Op::kMul) return std::nullopt;
  const loop::Affine sum = loop::affine_of(k_.pool, id);
  int64_t stride = 0;
  for (const auto& [atom, coefficient] : sum.terms) {
    if (atom == id) return std::nullopt;
    const auto s = lane_stride(atom);
    if (!s) return std::nullopt;
    stride += *s * coefficient;
  }
  return stride;
}

int64_t ExprEmitter::lane_alignment(ExprId id) {
  const loop::Affine sum = loop::affine_of(k_.pool, id);
  int64_t g = sum.constant;
  for (const auto& [atom, coefficient] : sum.terms) {
    const ExprNode& n = k_.pool.node(atom);
    int64_t multiple = coefficient;
    if (n.op == Op::kVar && static_cast<VarId>(n.imm) == lane_var_) {
      const Binding& lane = lane_binding();
      multiple *= std::gcd(lane.alignment, lane.offset);
    }
    g = std::gcd(g, multiple);
  }
  return g;
}

}  // namespace pyc::cpu
