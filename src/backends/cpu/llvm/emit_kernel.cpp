// The function around a kernel, its statements, and the two kinds of control flow they need.

#include <llvm/IR/Module.h>

#include <cstddef>
#include <limits>
#include <numeric>

#include "backends/cpu/llvm/kernel_emitter.h"
#include "backends/cpu/reads.h"
#include "base/kernel_abi.h"
#include "base/status.h"

namespace pyc::cpu {

using loop::kNone;
using loop::kTreeBlock;

KernelEmitter::State KernelEmitter::counted(Value* begin, Value* end, int64_t step, bool nonempty,
                                            const State& init, const Body& body) {
  ex_.forget_loads();
  ex_.here();
  llvm::BasicBlock* inside = ex_.new_block("loop");
  llvm::BasicBlock* after = ex_.new_block("after");
  llvm::BasicBlock* before = ex_.block();
  if (nonempty) {
    b_.CreateBr(inside);
  } else {
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), inside, after);
  }
  b_.SetInsertPoint(inside);
  llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
  i->addIncoming(begin, before);
  std::vector<llvm::PHINode*> phis;
  State state;
  for (Value* v : init) {
    phis.push_back(b_.CreatePHI(v->getType(), 2));
    phis.back()->addIncoming(v, before);
    state.push_back(phis.back());
  }
  ex_.push_scope(inside);
  state = body(i, state);
  ex_.here();
  llvm::BasicBlock* last = ex_.block();
  Value* next = b_.CreateAdd(i, index(step), "", true, true);
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), inside, after);
  i->addIncoming(next, last);
  for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(state[k], last);
  ex_.pop_scope();

  before = ex_.block();  // hoisted code may have split it
  ex_.set_block(after);
  ex_.here();
  if (nonempty) return state;
  for (size_t k = 0; k < state.size(); ++k) {
    llvm::PHINode* phi = b_.CreatePHI(init[k]->getType(), 2);
    phi->addIncoming(init[k], before);
    phi->addIncoming(state[k], last);
    state[k] = phi;
  }
  return state;
}

KernelEmitter::State KernelEmitter::when(Value* condition, const State& init,
                                         const std::function<State(const State&)>& body) {
  ex_.forget_loads();
  ex_.here();
  llvm::BasicBlock* inside = ex_.new_block("then");
  llvm::BasicBlock* after = ex_.new_block("after");
  b_.CreateCondBr(condition, inside, after);
  ex_.push_scope(inside);
  State state = body(init);
  ex_.here();
  llvm::BasicBlock* last = ex_.block();
  b_.CreateBr(after);
  ex_.pop_scope();
  llvm::BasicBlock* before = ex_.block();
  ex_.set_block(after);
  ex_.here();
  for (size_t k = 0; k < state.size(); ++k) {
    llvm::PHINode* phi = b_.CreatePHI(init[k]->getType(), 2);
    phi->addIncoming(init[k], before);
    phi->addIncoming(state[k], last);
    state[k] = phi;
  }
  return state;
}

void KernelEmitter::run() {
  llvm::Function* f = ex_.function();
  Value* args = f->getArg(0);
  ex_.may_set_mode();
  ex_.here();
  const auto field = [&](size_t offset, llvm::Type* type) {
    Value* p = b_.CreateConstGEP1_64(b_.getInt8Ty(), args, offset);
    return b_.CreateAlignedLoad(type, p, llvm::Align(8));
  };
  Value* table = field(offsetof(pyc_kernel_args, buffers), b_.getPtrTy());
  const std::vector<int64_t> scratch_offsets = k_.scratch_offsets();
  Value* scratch = nullptr;
  for (size_t i = 0; i < k_.buffers.size(); ++i) {
    Value* pointer = nullptr;
    if (scratch_offsets[i] >= 0) {
      if (scratch == nullptr) scratch = field(offsetof(pyc_kernel_args, scratch), b_.getPtrTy());
      pointer = b_.CreateGEP(b_.getInt8Ty(), scratch, number(scratch_offsets[i]));
    } else {
      Value* slot = b_.CreateConstGEP1_64(b_.getPtrTy(), table, i);
      pointer = b_.CreateAlignedLoad(b_.getPtrTy(), slot, llvm::Align(8));
    }
    ex_.set_buffer(static_cast<uint32_t>(i), pointer);
  }
  if (!k_.checks.empty()) fault_ = field(offsetof(pyc_kernel_args, fault), b_.getPtrTy());

  plan_fetches();
  plan_byte_products();
  if (bytes_) write_weights();
  counted(f->getArg(1), f->getArg(2), 1, false, {}, [&](Value* point, const State&) {
    Value* rest = point;
    for (size_t i = k_.parallel.size(); i-- > 0;) {
      const int64_t extent = k_.pool.var_info(k_.parallel[i]).extent;
      Value* count = i == 0 ? nullptr : number(extent);
      Value* v = i == 0 ? rest : b_.CreateURem(rest, count);
      if (i > 0) rest = b_.CreateUDiv(rest, count);
      ex_.bind(k_.parallel[i], v);
    }
    run_point();
    return State{};
  });
  b_.CreateRetVoid();
  ex_.write_mode();
}

void KernelEmitter::run_point() {
  if (interior_ == nullptr) return statements(k_.body);
  const std::vector<loop::Stmt> inside = {{loop::StmtKind::kLoop, interior_->loop}};
  if (interior_->condition == kNone) return statements(inside);
  Value* condition = ex_.eval(interior_->condition);
  const auto body = [&](const std::vector<loop::Stmt>& stmts) {
    return [&](const State&) {
      statements(stmts);
      return State{};
    };
  };
  when(condition, {}, body(inside));
  ex_.here();
  when(b_.CreateNot(condition), {}, body(k_.body));
}

void KernelEmitter::statements(const std::vector<loop::Stmt>& body) {
  for (size_t i = 0; i < body.size(); ++i) {
    const loop::Stmt& s = body[i];
    switch (s.kind) {
      case loop::StmtKind::kStore:
        if (const size_t count = interleaved_at(body, i); count > 1) {
          store_interleaved(std::span(body).subspan(i, count));
          i += count - 1;
        } else {
          store(k_.stores[s.index]);
        }
        break;
      case loop::StmtKind::kCheck:
        check(k_.checks[s.index]);
        break;
      case loop::StmtKind::kLoop:
        loop(k_.loops[s.index]);
        break;
    }
  }
}

void KernelEmitter::store(const loop::Store& s) {
  Value* value = ex_.eval_wide(s.value);
  ex_.store(s.buffer, s.offset, value);
}

size_t KernelEmitter::interleaved_at(const std::vector<loop::Stmt>& body, size_t first) {
  if (ex_.width() == 1 || any_size()) return 1;
  const loop::Store& store = k_.stores[body[first].index];
  const auto count =
      static_cast<size_t>(std::max<int64_t>(1, ex_.stride_of(store.offset).value_or(1)));
  if (first + count > body.size()) return 1;
  const loop::Affine place = loop::affine_of(k_.pool, store.offset);
  Reads reads(k_.pool, store.buffer);
  for (size_t i = 1; i < count; ++i) {
    if (body[first + i].kind != loop::StmtKind::kStore) return 1;
    const loop::Store& next = k_.stores[body[first + i].index];
    if (next.buffer != store.buffer || reads.in(next.value)) return 1;
    const loop::Affine other = loop::affine_of(k_.pool, next.offset);
    if (!std::ranges::equal(place.terms, other.terms)) return 1;
    if (other.constant != place.constant + static_cast<int64_t>(i)) return 1;
  }
  return count;
}

void KernelEmitter::store_interleaved(std::span<const loop::Stmt> stores) {
  std::vector<Value*> values;
  for (const loop::Stmt& s : stores) values.push_back(ex_.eval_wide(k_.stores[s.index].value));
  const loop::Store& first = k_.stores[stores[0].index];
  ex_.store_interleaved(first.buffer, first.offset, values);
}

// A failed check ends the call.
void KernelEmitter::check(const loop::Check& c) {
  Value* ok = ex_.eval(c.ok);
  ex_.here();
  if (ok->getType()->isVectorTy()) ok = b_.CreateAndReduce(ok);
  llvm::BasicBlock* failed = ex_.new_block("failed");
  llvm::BasicBlock* passed = ex_.new_block("passed");
  b_.CreateCondBr(ok, passed, failed);
  b_.SetInsertPoint(failed);
  llvm::StoreInst* report =
      b_.CreateAlignedStore(b_.getInt32(static_cast<uint32_t>(c.code)), fault_, llvm::Align(4));
  report->setAtomic(llvm::AtomicOrdering::Monotonic);
  b_.CreateRetVoid();
  ex_.set_block(passed);
  ex_.here();
}

void KernelEmitter::loop(const loop::Loop& l) {
  if (l.extent <= 0) return bind_identities(l);
  if (!l.vector || ex_.width() > 1) return serial_loop(l);
  for (const loop::Reduction& r : l.reductions) {
    if (r.kind == loop::ReduceKind::kTree) return tree_loop(l);
    PYC_CHECK(r.kind != loop::ReduceKind::kChain, "a chain reduction in a vector loop");
  }
  vector_loop(l);
}

void KernelEmitter::bind_identities(const loop::Loop& l) {
  for (const loop::Reduction& r : l.reductions) {
    ex_.bind(r.result, identity(r.op, type_of(r), 1));
  }
  for (const loop::Carry& c : l.carries) ex_.bind(c.result, ex_.eval(c.init));
}

KernelEmitter::Bounds KernelEmitter::bounds_of(const loop::Loop& l) {
  Bounds r;
  if (l.chunk_var == kNone) {
    r.begin = index(0);
    r.end = number(l.extent);
    if (!any_size()) r.count = l.extent;
    r.nonempty = true;
    return r;
  }
  const int64_t parts = k_.pool.var_info(l.chunk_var).extent;
  Value* part = ex_.value_of(l.chunk_var);
  ex_.here();
  Value* chunk = number(l.chunk);
  r.begin = b_.CreateMul(part, chunk);
  r.end = b_.CreateAdd(r.begin, chunk);
  // Of chunks of any size few facts are used, so that few texts come of it.
  r.alignment = any_size() ? std::gcd(l.chunk, kTreeBlock) : l.chunk;
  r.nonempty = parts > 0 && (parts - 1) <= (l.extent - 1) / l.chunk;
  if (parts <= l.extent / l.chunk && !any_size()) {
    r.count = l.chunk;
  } else {
    r.end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, r.end, number(l.extent));
  }
  return r;
}

llvm::Constant* KernelEmitter::identity(loop::ReduceOp op, DType t, int width) {
  using loop::ReduceOp;
  const auto bits = static_cast<unsigned>(t == DType::kBool ? 1 : dtype_size(t) * 8);
  Word word = 0;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kOr:
      break;
    case ReduceOp::kProd:
      word = word_from_int(1, t);
      break;
    case ReduceOp::kAnd:
      word = ~Word{0};
      break;
    case ReduceOp::kMax:
    case ReduceOp::kMin: {
      const bool high = op == ReduceOp::kMin;
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      if (is_float(t)) {
        word = word_from_double(high ? kInfinity : -kInfinity, t);
      } else if (is_signed_int(t)) {
        const llvm::APInt v =
            high ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getSignedMinValue(bits);
        word = static_cast<Word>(v.getSExtValue());
      } else {
        word = high ? ~Word{0} : 0;
      }
    }
  }
  return ops_.constant(t, word, width);
}

llvm::Value* KernelEmitter::combine(loop::ReduceOp op, DType t, Value* a, Value* b) {
  using loop::Op;
  using loop::ReduceOp;
  switch (op) {
    case ReduceOp::kSum:
      return ops_.binary(Op::kAdd, t, a, b);
    case ReduceOp::kProd:
      return ops_.binary(Op::kMul, t, a, b);
    case ReduceOp::kMax:
      return ops_.binary(Op::kMax, t, a, b);
    case ReduceOp::kMin:
      return ops_.binary(Op::kMin, t, a, b);
    case ReduceOp::kAnd:
      return ops_.binary(Op::kAnd, t, a, b);
    case ReduceOp::kOr:
      return ops_.binary(Op::kOr, t, a, b);
  }
  return nullptr;
}

llvm::Value* KernelEmitter::fold(loop::ReduceOp op, DType t, Value* v, int width) {
  for (int w = ValueOps::width_of(v); w > width; w /= 2) {
    v = combine(op, t, ops_.slice(v, 0, w / 2), ops_.slice(v, w / 2, w / 2));
  }
  return v;
}

llvm::Value* KernelEmitter::take(const loop::Reduction& r, Value* accumulator) {
  const DType t = type_of(r);
  const bool integers = r.value2 != kNone && !is_float(t);
  Value* product = integers ? ex_.product_of_words(r.value, r.value2) : nullptr;
  Value* value = product != nullptr ? nullptr : ex_.eval_wide(r.value);
  Value* second = r.value2 == kNone || product != nullptr ? nullptr : ex_.eval_wide(r.value2);
  Value* guard = r.guard == kNone ? nullptr : ex_.eval(r.guard);
  ex_.here();
  Value* next = nullptr;
  if (product != nullptr) {
    next = b_.CreateAdd(accumulator, product);
  } else if (second == nullptr) {
    next = combine(r.op, t, accumulator, value);
  } else if (is_float(t)) {
    next = ops_.fma(value, second, accumulator);
  } else {
    next = b_.CreateAdd(accumulator, b_.CreateMul(value, second));
  }
  return guard == nullptr ? next : b_.CreateSelect(guard, next, accumulator);
}

llvm::Function* emit_kernel(const loop::Kernel& kernel, const TargetTraits& traits,
                            llvm::Module& module, const std::string& symbol) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* i64 = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer, i64, i64}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  f->setDSOLocal(true);
  llvm::BasicBlock::Create(context, "entry", f);
  llvm::IRBuilder<> builder(context);
  if (const std::optional<Interior> interior = interior_of(kernel)) {
    KernelEmitter(*interior, traits, builder, f).run();
    // The order in which taps are written keeps few values alive; this model's scheduler keeps it.
    if (traits.aarch64) f->addFnAttr("tune-cpu", "neoverse-n1");
    return f;
  }
  KernelEmitter(kernel, traits, builder, f).run();
  return f;
}

}  // namespace pyc::cpu
