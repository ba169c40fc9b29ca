// Loads and stores: addresses, vectors of consecutive elements, guards.

#include <llvm/IR/Module.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "backends/cpu/llvm/emitter.h"
#include "base/status.h"

namespace pyc::cpu {

using loop::ExprNode;
using loop::kNone;
using loop::Op;

namespace {

// Enough for a guarded load of the widest vector: 64 elements of 8 bytes.
constexpr uint64_t kSafeBytes = 512;

// The lanes of a vector, then none up to `all`.
std::vector<int> widened(int width, int all) {
  std::vector<int> mask(static_cast<size_t>(all), -1);
  std::iota(mask.begin(), mask.begin() + width, 0);
  return mask;
}

std::vector<int> reversed_mask(int width) {
  std::vector<int> mask;
  for (int i = width - 1; i >= 0; --i) mask.push_back(i);
  return mask;
}

}  // namespace

void ExprEmitter::tag(llvm::Instruction* access, uint32_t buffer) {
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, alias_scopes_[buffer]);
  if (no_alias_[buffer]->getNumOperands() > 0) {
    access->setMetadata(llvm::LLVMContext::MD_noalias, no_alias_[buffer]);
  }
}

// The terms of the offset are added scope by scope, outermost first, so that each part is
// computed where it is known; the constant comes last, where it folds into the instruction.
llvm::Value* ExprEmitter::address(uint32_t buffer, ExprId offset, int lane) {
  struct Term {
    size_t depth;
    Value* value;
    int64_t coefficient;
    uint32_t part;  // which term it is
  };
  const loop::Affine sum = loop::affine_of(k_.pool, offset);
  int64_t constant = sum.constant;
  int64_t lanes = 0;  // where the constant is an argument: what is none
  std::vector<Term> terms;
  for (uint32_t part = 0; part < sum.terms.size(); ++part) {
    const auto& [atom, coefficient] = sum.terms[part];
    const ExprNode& n = k_.pool.node(atom);
    const Info info = analyse(atom);
    const size_t depth = info.is_volatile ? scopes_.size() - 1 : static_cast<size_t>(info.depth);
    if (n.op == Op::kVar && width() > 1 && static_cast<VarId>(n.imm) == lane_var_) {
      const int64_t place = lane_binding().offset + lane;
      Value* value = lane_binding().value;
      if (any_size() && coefficient != 1) {
        at(scopes_[depth]);
        value = b_.CreateAdd(value, b_.getInt64(static_cast<uint64_t>(place)));
      } else {
        (any_size() ? lanes : constant) += coefficient * place;
      }
      terms.push_back({depth, value, coefficient, part});
    } else {
      terms.push_back({depth, eval_lane(atom, lane), coefficient, part});
    }
  }
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Term& x, const Term& y) { return x.depth < y.depth; });
  llvm::Type* element = ops_.memory_type(k_.buffers[buffer].dtype, 1);
  Value* pointer = buffers_[buffer];
  size_t deepest = 0;
  for (size_t i = 0; i < terms.size();) {
    deepest = terms[i].depth;
    at(scopes_[deepest]);
    Value* part = nullptr;
    for (; i < terms.size() && terms[i].depth == deepest; ++i) {
      Value* term = terms[i].value;
      if (terms[i].coefficient != 1) {
        term = b_.CreateMul(term, written(offset, terms[i].part, terms[i].coefficient));
      }
      part = part == nullptr ? term : b_.CreateAdd(part, term);
    }
    pointer = b_.CreateGEP(element, pointer, part);
  }
  at(scopes_[deepest]);
  if (constant != 0) {
    pointer = b_.CreateGEP(element, pointer, written(offset, kConstantPart, constant));
  }
  if (lanes == 0) return pointer;
  return b_.CreateGEP(element, pointer, b_.getInt64(static_cast<uint64_t>(lanes)));
}

llvm::Value* ExprEmitter::place_of(ExprId load) {
  const ExprNode& n = k_.pool.node(whole(load));
  return address(static_cast<uint32_t>(n.imm), n.a, 0);
}

llvm::Value* ExprEmitter::safe() {
  if (safe_ == nullptr) {
    auto* type = llvm::ArrayType::get(b_.getInt8Ty(), kSafeBytes);
    safe_ = new llvm::GlobalVariable(*function_->getParent(), type, true,
                                     llvm::GlobalValue::InternalLinkage,
                                     llvm::ConstantAggregateZero::get(type), "safe");
    safe_->setAlignment(llvm::Align(64));
  }
  return safe_;
}

llvm::Value* ExprEmitter::guarded(Value* guard, Value* pointer) {
  return guard == nullptr ? pointer : b_.CreateSelect(guard, pointer, safe());
}

llvm::Value* ExprEmitter::raw_load(uint32_t buffer, Value* pointer, int width) {
  const DType t = k_.buffers[buffer].dtype;
  const llvm::Align align(static_cast<uint64_t>(dtype_size(t)));
  llvm::LoadInst* v = b_.CreateAlignedLoad(ops_.memory_type(t, width), pointer, align);
  tag(v, buffer);
  return ops_.from_memory(v, t);
}

bool ExprEmitter::is_chosen_row(ExprId id, Rows& rows) {
  id = whole(id);
  if (--rows.budget < 0) return false;
  const ExprNode& n = k_.pool.node(id);
  if (n.op == Op::kConst) return n.word == 0;  // what `safe_` has
  if (!is_varying(id) || analyse(id).is_volatile) return false;
  if (n.op == Op::kSelect) {
    return !is_varying(n.a) && is_chosen_row(n.b, rows) && is_chosen_row(n.c, rows);
  }
  const auto buffer = static_cast<uint32_t>(n.imm);
  if (n.op != Op::kLoad || k_.buffers[buffer].dtype != rows.dtype) return false;
  if (lane_stride(n.a) != 1) return false;
  rows.buffers.insert(buffer);
  return n.b == kNone || (!is_varying(n.b) && is_chosen_row(n.c, rows));
}

llvm::Value* ExprEmitter::chosen_row(ExprId id) {
  id = whole(id);
  const ExprNode n = k_.pool.node(id);
  if (n.op == Op::kConst) return safe();
  if (n.op == Op::kLoad) {
    Value* pointer = address(static_cast<uint32_t>(n.imm), n.a, 0);
    if (n.b == kNone) return pointer;
    Value* guard = eval(n.b);
    Value* other = chosen_row(n.c);
    at(scope_of(id));
    return b_.CreateSelect(guard, pointer, other);
  }
  Value* condition = eval(n.a);
  Value* x = chosen_row(n.b);
  Value* y = chosen_row(n.c);
  at(scope_of(id));
  return b_.CreateSelect(condition, x, y);
}

llvm::Value* ExprEmitter::load_chosen_row(ExprId id) {
  Rows rows{.dtype = k_.pool.dtype(id)};
  if (!is_chosen_row(id, rows)) return nullptr;
  Value* pointer = chosen_row(id);
  at(scope_of(id));
  const llvm::Align align(static_cast<uint64_t>(dtype_size(rows.dtype)));
  llvm::LoadInst* v = b_.CreateAlignedLoad(ops_.memory_type(rows.dtype, width()), pointer, align);
  llvm::MDNode* scopes = nullptr;  // it may read any of them
  for (const uint32_t buffer : rows.buffers) {
    scopes = llvm::MDNode::concatenate(scopes, alias_scopes_[buffer]);
  }
  v->setMetadata(llvm::LLVMContext::MD_alias_scope, scopes);
  return ops_.from_memory(v, rows.dtype);
}

llvm::Value* ExprEmitter::emit_load(ExprId id) {
  const ExprNode n = k_.pool.node(id);
  const std::optional<bool> open = known_guard(n);
  if (open == false) return is_varying(id) ? eval_wide(n.c) : eval(n.c);
  if (!is_varying(id)) return load_one(id);
  if (!open) {
    if (Value* row = load_chosen_row(id); row != nullptr) return row;
  }
  const bool guard_varies = n.b != kNone && is_varying(n.b);
  const auto stride = lane_stride(n.a);
  if (stride == 1 && guard_varies) return load_row_masked(id);
  if (guard_varies || !stride) return load_each_lane(id);
  if (*stride == 1 || *stride == -1) return load_row(id, *stride == -1);
  if (*stride == 0) return load_one(id);
  if (*stride == 2 && width() % 2 == 0 && !any_size()) return load_every_second(id);
  return load_each_lane(id);
}

std::optional<int64_t> ExprEmitter::stride_of_load(ExprId id) {
  const ExprNode& n = k_.pool.node(whole(id));
  if (n.op == Op::kConvert) return stride_of_load(n.a);
  if (n.op == Op::kSelect) return stride_of_load(n.b);
  if (n.op != Op::kLoad) return std::nullopt;
  return lane_stride(n.a);
}

std::optional<bool> ExprEmitter::known_guard(const ExprNode& load) {
  if (load.b == kNone) return true;
  if (is_varying(load.b)) return {};
  const auto* guard = llvm::dyn_cast<llvm::ConstantInt>(eval(load.b));
  return guard == nullptr ? std::nullopt : std::optional<bool>(guard->isOne());
}

llvm::Value* ExprEmitter::load_one(ExprId id) {
  const ExprNode n = k_.pool.node(id);
  const auto buffer = static_cast<uint32_t>(n.imm);
  const bool varies = is_varying(id);  // then by its fallback alone
  Value* pointer = address(buffer, n.a, 0);
  Value* guard = known_guard(n) ? nullptr : eval(n.b);
  Value* fallback = guard == nullptr ? nullptr : (varies ? eval_wide(n.c) : eval(n.c));
  at(scope_of(id));
  Value* v = raw_load(buffer, guarded(guard, pointer), 1);
  if (varies) v = ops_.splat(v, width());
  return guard == nullptr ? v : b_.CreateSelect(guard, v, fallback);
}

llvm::Value* ExprEmitter::load_row(ExprId id, bool reversed) {
  const ExprNode n = k_.pool.node(id);
  const auto buffer = static_cast<uint32_t>(n.imm);
  Value* pointer = address(buffer, n.a, reversed ? width() - 1 : 0);
  Value* guard = known_guard(n) ? nullptr : eval(n.b);
  Value* fallback = guard == nullptr ? nullptr : eval_wide(n.c);
  at(scope_of(id));
  Value* v = raw_load(buffer, guarded(guard, pointer), width());
  if (reversed) v = b_.CreateShuffleVector(v, reversed_mask(width()));
  return guard == nullptr ? v : b_.CreateSelect(guard, v, fallback);
}

// Two vectors, the second of which ends with the last lane's element, so that nothing beyond it is
// read.
llvm::Value* ExprEmitter::load_every_second(ExprId id) {
  const ExprNode n = k_.pool.node(id);
  const auto buffer = static_cast<uint32_t>(n.imm);
  const int last = width() - 1;
  Value* pointer = address(buffer, n.a, 0);
  Value* guard = n.b == kNone ? nullptr : eval(n.b);
  Value* fallback = n.c == kNone ? nullptr : eval_wide(n.c);
  at(scope_of(id));
  Value* second =
      b_.CreateGEP(ops_.memory_type(n.dtype, 1), pointer, b_.getInt64(static_cast<uint64_t>(last)));
  std::vector<int> mask;
  for (int i = 0; i < width(); ++i) {
    mask.push_back(2 * i < width() ? 2 * i : width() + 2 * i - last);
  }
  Value* v = b_.CreateShuffleVector(raw_load(buffer, guarded(guard, pointer), width()),
                                    raw_load(buffer, guarded(guard, second), width()), mask);
  return guard == nullptr ? v : b_.CreateSelect(guard, v, fallback);
}

// One vector load if all lanes may read, else each lane by itself.
llvm::Value* ExprEmitter::load_row_masked(ExprId id) {
  const ExprNode n = k_.pool.node(id);
  const auto buffer = static_cast<uint32_t>(n.imm);
  llvm::Type* element = ops_.memory_type(n.dtype, 1);
  Value* pointer = address(buffer, n.a, 0);
  Value* guard = eval_wide(n.b);
  Value* fallback = eval_wide(n.c);
  Scope& scope = scope_of(id);
  at(scope);
  Value* all = ops_.all_of(guard);

  llvm::BasicBlock* head = scope.block;
  llvm::BasicBlock* join = nullptr;
  if (llvm::Instruction* end = head->getTerminator()) {
    join = head->splitBasicBlock(end, "join");
    head->getTerminator()->eraseFromParent();
  } else {
    join = new_block("join");
  }
  llvm::BasicBlock* whole = new_block("whole");
  llvm::BasicBlock* some = new_block("some");
  b_.SetInsertPoint(head);
  b_.CreateCondBr(all, whole, some);
  b_.SetInsertPoint(whole);
  Value* row = raw_load(buffer, pointer, width());
  b_.CreateBr(join);
  b_.SetInsertPoint(some);
  Value* lanes = llvm::PoisonValue::get(ops_.type(n.dtype, width()));
  for (int i = 0; i < width(); ++i) {
    const auto lane = static_cast<uint64_t>(i);
    Value* g = b_.CreateExtractElement(guard, lane);
    Value* p = guarded(g, b_.CreateGEP(element, pointer, b_.getInt64(lane)));
    lanes = b_.CreateInsertElement(lanes, raw_load(buffer, p, 1), lane);
  }
  lanes = b_.CreateSelect(guard, lanes, fallback);
  b_.CreateBr(join);
  scope.block = join;
  if (join->empty()) {
    b_.SetInsertPoint(join);
  } else {
    b_.SetInsertPoint(join, join->begin());
  }
  llvm::PHINode* result = b_.CreatePHI(row->getType(), 2);
  result->addIncoming(row, whole);
  result->addIncoming(lanes, some);
  return result;
}

llvm::Value* ExprEmitter::lane_load(ExprId id, int lane) {
  const ExprNode n = k_.pool.node(id);
  const auto buffer = static_cast<uint32_t>(n.imm);
  const std::optional<bool> open = known_guard(n);
  if (open == false) return eval_lane(n.c, lane);
  Value* pointer = address(buffer, n.a, lane);
  Value* guard = open ? nullptr : eval_lane(n.b, lane);
  Value* fallback = guard == nullptr ? nullptr : eval_lane(n.c, lane);
  at(scope_of(id));
  Value* v = raw_load(buffer, guarded(guard, pointer), 1);
  return guard == nullptr ? v : b_.CreateSelect(guard, v, fallback);
}

llvm::Value* ExprEmitter::load_each_lane(ExprId id) {
  const DType t = k_.pool.dtype(id);
  Value* v = llvm::PoisonValue::get(ops_.type(t, width()));
  for (int i = 0; i < width(); ++i) {
    Value* element = lane_load(id, i);
    at(scope_of(id));
    v = b_.CreateInsertElement(v, element, static_cast<uint64_t>(i));
  }
  return v;
}

llvm::GlobalVariable* ExprEmitter::table_data(uint32_t table) {
  if (tables_[table] != nullptr) return tables_[table];
  const loop::Table& t = k_.pool.tables()[table];
  llvm::Type* element = ops_.memory_type(t.dtype, 1);
  std::vector<llvm::Constant*> values;
  for (const Word w : t.words) {
    values.push_back(t.dtype == DType::kBool ? b_.getInt8(w != 0 ? 1 : 0)
                                             : ops_.constant(t.dtype, w, 1));
  }
  auto* type = llvm::ArrayType::get(element, values.size());
  auto* data = new llvm::GlobalVariable(*function_->getParent(), type, true,
                                        llvm::GlobalValue::InternalLinkage,
                                        llvm::ConstantArray::get(type, values), "table");
  data->setAlignment(llvm::Align(64));
  data->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  tables_[table] = data;
  return data;
}

llvm::Value* ExprEmitter::emit_table(ExprId id) {
  const ExprNode n = k_.pool.node(id);
  llvm::GlobalVariable* data = table_data(static_cast<uint32_t>(n.imm));
  llvm::Type* element = ops_.memory_type(n.dtype, 1);
  const auto one = [&](Value* index) {
    Value* pointer = b_.CreateGEP(element, data, index);
    llvm::LoadInst* v = b_.CreateAlignedLoad(
        element, pointer, llvm::Align(static_cast<uint64_t>(dtype_size(n.dtype))));
    v->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
    return ops_.from_memory(v, n.dtype);
  };
  if (!is_varying(id)) {
    Value* index = eval(n.a);
    at(scope_of(id));
    return one(index);
  }
  std::vector<Value*> indices;
  for (int i = 0; i < width(); ++i) indices.push_back(eval_lane(n.a, i));
  at(scope_of(id));
  Value* v = llvm::PoisonValue::get(ops_.type(n.dtype, width()));
  for (size_t i = 0; i < indices.size(); ++i) v = b_.CreateInsertElement(v, one(indices[i]), i);
  return v;
}

void ExprEmitter::store(uint32_t buffer, ExprId offset, Value* value) {
  const DType t = k_.buffers[buffer].dtype;
  const llvm::Align align(static_cast<uint64_t>(dtype_size(t)));
  const auto put = [&](Value* v, Value* pointer) {
    tag(b_.CreateAlignedStore(v, pointer, align), buffer);
  };
  const auto stride = lane_stride(offset);
  if (width() == 1 || stride == 1 || stride == -1) {
    Value* pointer = address(buffer, offset, stride == -1 ? width() - 1 : 0);
    here();
    Value* v = ops_.to_memory(value, t);
    if (stride == -1) v = b_.CreateShuffleVector(v, reversed_mask(width()));
    put(v, pointer);
    forget_loads();
    return;
  }
  here();
  Value* v = ops_.to_memory(value, t);
  for (int i = stride == 0 ? width() - 1 : 0; i < width(); ++i) {
    Value* pointer = address(buffer, offset, i);
    here();
    put(b_.CreateExtractElement(v, static_cast<uint64_t>(i)), pointer);
  }
  forget_loads();
}

void ExprEmitter::store_interleaved(uint32_t buffer, ExprId offset,
                                    const std::vector<Value*>& values) {
  const DType t = k_.buffers[buffer].dtype;
  Value* pointer = address(buffer, offset, 0);
  here();
  // All values one behind the other, then in turn.
  const auto count = static_cast<int>(values.size());
  const int all = count * width();
  Value* joined = ops_.to_memory(values[0], t);
  for (int i = 1; i < count; ++i) {
    Value* next = ops_.to_memory(values[static_cast<size_t>(i)], t);
    std::vector<int> mask;
    for (int j = 0; j < (i + 1) * width(); ++j) mask.push_back(j);
    if (i > 1) next = b_.CreateShuffleVector(next, widened(width(), i * width()));
    joined = b_.CreateShuffleVector(joined, next, mask);
  }
  std::vector<int> turns;
  for (int i = 0; i < all; ++i) turns.push_back(i % count * width() + i / count);
  joined = b_.CreateShuffleVector(joined, turns);
  tag(b_.CreateAlignedStore(joined, pointer, llvm::Align(static_cast<uint64_t>(dtype_size(t)))),
      buffer);
  forget_loads();
}

}  // namespace pyc::cpu
