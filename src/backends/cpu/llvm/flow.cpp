#include "backends/cpu/llvm/flow.h"

#include <llvm/IR/InlineAsm.h>

namespace pyc::cpu {

llvm::BasicBlock* FlowBuilder::block(const char* name) {
  return llvm::BasicBlock::Create(b_.getContext(), name, b_.GetInsertBlock()->getParent());
}

llvm::Value* FlowBuilder::number(int64_t v) {
  if (numbers_ == nullptr) return index(v);
  return numbers_->add(b_.GetInsertBlock()->getParent(), v);
}

llvm::Value* FlowBuilder::at(Value* pointer, int64_t elements) {
  return elements == 0 ? pointer : at(pointer, index(elements));
}

llvm::Value* FlowBuilder::at(Value* pointer, Value* elements) {
  return b_.CreateInBoundsGEP(b_.getFloatTy(), pointer, elements);
}

llvm::Value* FlowBuilder::unknown(Value* number) {
  auto* type = llvm::FunctionType::get(number->getType(), {number->getType()}, false);
  return b_.CreateCall(type, llvm::InlineAsm::get(type, "", "=r,0", false), {number});
}

FlowBuilder::State FlowBuilder::loop(Value* begin, Value* end, int64_t step, bool nonempty,
                                     const State& init,
                                     const std::function<State(Value*, const State&)>& body) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* inside = block("loop");
  llvm::BasicBlock* after = block("after");
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
  state = body(i, state);
  llvm::BasicBlock* last = b_.GetInsertBlock();
  Value* next = b_.CreateAdd(i, index(step), "", true, true);
  b_.CreateCondBr(b_.CreateICmpSLT(next, end), inside, after);
  i->addIncoming(next, last);
  for (size_t k = 0; k < phis.size(); ++k) phis[k]->addIncoming(state[k], last);
  b_.SetInsertPoint(after);
  if (nonempty) return state;
  for (size_t k = 0; k < state.size(); ++k) {
    llvm::PHINode* phi = b_.CreatePHI(init[k]->getType(), 2);
    phi->addIncoming(init[k], before);
    phi->addIncoming(state[k], last);
    state[k] = phi;
  }
  return state;
}

void FlowBuilder::loop(Value* begin, Value* end, int64_t step, bool nonempty,
                       const std::function<void(Value*)>& body) {
  loop(begin, end, step, nonempty, {}, [&](Value* i, const State&) {
    body(i);
    return State{};
  });
}

void FlowBuilder::when(Value* condition, const std::function<void()>& yes,
                       const std::function<void()>& no) {
  llvm::BasicBlock* then = block("then");
  llvm::BasicBlock* otherwise = no ? block("else") : nullptr;
  llvm::BasicBlock* after = block("after");
  b_.CreateCondBr(condition, then, no ? otherwise : after);
  b_.SetInsertPoint(then);
  yes();
  b_.CreateBr(after);
  if (no) {
    b_.SetInsertPoint(otherwise);
    no();
    b_.CreateBr(after);
  }
  b_.SetInsertPoint(after);
}

}  // namespace pyc::cpu
