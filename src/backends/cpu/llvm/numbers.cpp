#include "backends/cpu/llvm/numbers.h"

#include <cstddef>

#include "base/kernel_abi.h"

namespace pyc::cpu {

namespace {

llvm::Instruction* load_once(llvm::IRBuilder<>& b, llvm::Type* type, llvm::Value* at) {
  llvm::LoadInst* load = b.CreateAlignedLoad(type, at, llvm::Align(8));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
  return load;
}

}  // namespace

Numbers::Entry& Numbers::entry_of(llvm::Function* f) {
  Entry& e = entries_[f];
  if (e.dims != nullptr) return e;
  if (!f->hasExternalLinkage()) {
    e.dims = f->getArg(static_cast<unsigned>(f->arg_size() - 1));
    return e;
  }
  llvm::BasicBlock& block = f->getEntryBlock();
  llvm::IRBuilder<> b(&block, block.begin());
  llvm::Value* field =
      b.CreateConstGEP1_64(b.getInt8Ty(), f->getArg(0), offsetof(pyc_kernel_args, dims));
  e.last = load_once(b, b.getPtrTy(), field);
  e.dims = e.last;
  return e;
}

llvm::Value* Numbers::add(llvm::Function* f, int64_t value) {
  Entry& e = entry_of(f);
  llvm::BasicBlock& block = f->getEntryBlock();
  llvm::IRBuilder<> b(&block, e.last == nullptr ? block.begin() : std::next(e.last->getIterator()));
  llvm::Value* at = b.CreateConstGEP1_64(b.getInt64Ty(), e.dims, values_.size());
  values_.push_back(value);
  e.last = load_once(b, b.getInt64Ty(), at);
  return e.last;
}

void add_dims_type(const Numbers* numbers, llvm::LLVMContext& context,
                   std::vector<llvm::Type*>& types) {
  if (numbers != nullptr) types.push_back(llvm::PointerType::getUnqual(context));
}

void add_dims_argument(Numbers* numbers, llvm::Function* caller, std::vector<llvm::Value*>& args) {
  if (numbers != nullptr) args.push_back(numbers->dims(caller));
}

}  // namespace pyc::cpu
