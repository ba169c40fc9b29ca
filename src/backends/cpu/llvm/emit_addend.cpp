// NEON's fma adds to the register it overwrites, so a constant addend is copied first, in a pipe
// that the fma itself needs: of gelu's 59 instructions a vector 11 were such copies. Loads have
// pipes of their own, so the addends of wide bodies are read from a table, one place for each fma.

#include <llvm/IR/Constants.h>
#include <llvm/IR/Module.h>

#include "backends/cpu/llvm/emitter.h"

namespace pyc::cpu {

using loop::ExprId;
using loop::ExprNode;
using loop::Op;

namespace {

constexpr int kLeastVectors = 4;  // narrower bodies wait for latencies, not for pipes

}  // namespace

void ExprEmitter::find_addends() {
  for (ExprId id = 0; id < k_.pool.size(); ++id) {
    const ExprNode& n = k_.pool.node(id);
    if (n.op != Op::kFma || n.dtype != DType::kF32) continue;
    if (k_.pool.node(whole(n.c)).op != Op::kConst) continue;
    addend_places_.try_emplace(id, addend_places_.size());
  }
}

llvm::GlobalVariable* ExprEmitter::addend_data(int width) {
  llvm::GlobalVariable*& data = addends_[width];
  if (data != nullptr) return data;
  const auto lanes = static_cast<size_t>(width);
  std::vector<uint32_t> words(addend_places_.size() * lanes);
  for (const auto& [id, place] : addend_places_) {
    const Word word = k_.pool.node(whole(k_.pool.node(id).c)).word;
    for (size_t i = 0; i < lanes; ++i) words[place * lanes + i] = static_cast<uint32_t>(word);
  }
  llvm::Constant* values = llvm::ConstantDataArray::get(b_.getContext(), words);
  data = new llvm::GlobalVariable(*function_->getParent(), values->getType(), true,
                                  llvm::GlobalValue::InternalLinkage, values, "addends");
  data->setAlignment(llvm::Align(64));
  data->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return data;
}

llvm::Value* ExprEmitter::load_addend(ExprId id, int width) {
  const auto place = addend_places_.find(id);
  if (place == addend_places_.end() || lane_var_ == loop::kNone) return nullptr;
  if (width < kLeastVectors * ops_.traits().lanes || !is_varying(id)) return nullptr;
  at(scope_of(id));
  // An index is never that large, so this is 0; that LLVM cannot know it keeps the loads where they
  // are, which it would replace by copies of a register again.
  Value* zero = b_.CreateLShr(lane_binding().value, 62);
  Value* table = b_.CreateGEP(b_.getInt8Ty(), addend_data(width), zero);
  llvm::Type* type = ops_.memory_type(DType::kF32, width);
  Value* at_place = b_.CreateConstGEP1_64(type, table, place->second);
  llvm::LoadInst* v = b_.CreateAlignedLoad(type, at_place, llvm::Align(16));
  v->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  return v;
}

}  // namespace pyc::cpu
