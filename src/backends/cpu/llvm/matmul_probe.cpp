#include "backends/cpu/llvm/matmul_emit.h"

namespace pyc::cpu {

using llvm::Value;

// Every vector accumulator is its own chain, so that only the units' number and latency count. The
// factors come from memory: nothing can be computed ahead.
void emit_fma_probe(llvm::Module& module, int lanes, int chains, const std::string& symbol) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  llvm::Type* i64 = b.getInt64Ty();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), i64, i64}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, module);
  f->setDSOLocal(true);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  FlowBuilder flow(b);
  auto* vector = llvm::FixedVectorType::get(b.getFloatTy(), static_cast<unsigned>(lanes));
  Value* table = b.CreateAlignedLoad(b.getPtrTy(), f->getArg(0), llvm::Align(8));
  Value* data = b.CreateAlignedLoad(b.getPtrTy(), table, llvm::Align(8));
  Value* x = b.CreateAlignedLoad(vector, data, llvm::Align(4));
  Value* y = b.CreateAlignedLoad(vector, flow.at(data, lanes), llvm::Align(4));
  const FlowBuilder::State zeros(static_cast<size_t>(chains),
                                 llvm::ConstantAggregateZero::get(vector));
  const FlowBuilder::State sums = flow.loop(
      f->getArg(1), f->getArg(2), 1, false, zeros, [&](Value*, const FlowBuilder::State& state) {
        FlowBuilder::State next = state;
        for (int k = 0; k < kFmaProbeDepth; ++k) {
          for (Value*& v : next) {
            v = b.CreateIntrinsic(llvm::Intrinsic::fma, {vector}, {x, y, v});
          }
        }
        return next;
      });
  Value* sum = sums[0];
  for (size_t i = 1; i < sums.size(); ++i) sum = b.CreateFAdd(sum, sums[i]);
  b.CreateAlignedStore(sum, data, llvm::Align(4));
  b.CreateRetVoid();
}

}  // namespace pyc::cpu
