#include "backends/cpu/llvm/matmul_split.h"

#include <algorithm>

#include "loop/renamed.h"
#include "loop/walk.h"

namespace pyc::cpu {
namespace {

using llvm::Value;
using loop::ExprId;
using loop::kNone;
using loop::Op;
using loop::VarId;

// The smallest number by which the expression takes k apart, if that divides k's extent; else 1.
int64_t innermost_digit(const loop::Pool& pool, ExprId value, VarId k) {
  int64_t least = pool.var_info(k).extent;
  loop::Walk{pool}(value, [&](ExprId, const loop::ExprNode& n) {
    if (n.op == Op::kFloorDiv || n.op == Op::kFloorMod) {
      const loop::ExprNode& inner = pool.node(n.a);
      if (inner.op == Op::kVar && static_cast<VarId>(inner.imm) == k) {
        least = std::min(least, static_cast<int64_t>(pool.node(n.b).word));
      }
    }
  });
  return pool.var_info(k).extent % least == 0 ? least : 1;
}

// The condition under which a value is not +0 by definition; kNone if there is none.
ExprId guard_of(const loop::Pool& pool, ExprId value) {
  const loop::ExprNode& n = pool.node(value);
  if (n.op == Op::kConvert) return guard_of(pool, n.a);
  if (n.op == Op::kSelect) return n.a;
  return n.op == Op::kLoad ? n.b : kNone;
}

}  // namespace

SplitOperand::SplitOperand(const lower::Contraction& c, ExprId operand, int64_t step)
    : kernel(*c.kernel) {
  loop::Pool& pool = kernel.pool;
  digit = innermost_digit(pool, operand, c.k_var);
  if (digit % step != 0) digit = c.k;
  runs = c.k / digit;
  high = pool.new_var("kh", DType::kI64, runs);
  low = pool.new_var("kl", DType::kI64, digit);
  const ExprId part = pool.binary(Op::kMul, pool.var(high), pool.integer(digit));
  loop::Renamed renamed(pool);
  renamed.set_var(c.k_var, pool.binary(Op::kAdd, part, pool.var(low)));
  value = renamed(operand);
  guard = guard_of(pool, value);
  const bool hoisted = guard != kNone && pool.node(guard).op != Op::kConst &&
                       !loop::depends_on(pool, guard, low) && loop::depends_on(pool, guard, high);
  if (!hoisted) guard = kNone;
}

llvm::Function* new_packer(const MatmulSource& source, llvm::Module& module,
                           const std::string& name, size_t numbers) {
  llvm::LLVMContext& context = module.getContext();
  std::vector<llvm::Type*> types(2, llvm::PointerType::getUnqual(context));
  types.resize(2 + numbers, llvm::Type::getInt64Ty(context));
  add_dims_type(source.traits.numbers, context, types);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), types, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::BasicBlock::Create(context, "entry", f);
  return f;
}

void begin_packer(const lower::Contraction& c, llvm::Function* f, unsigned first,
                  llvm::IRBuilder<>& b, ExprEmitter& ex) {
  ex.here();
  for (uint32_t i = 0; i < ex.kernel().buffers.size(); ++i) {
    Value* slot = b.CreateConstGEP1_64(b.getPtrTy(), f->getArg(0), i);
    ex.set_buffer(i, b.CreateAlignedLoad(b.getPtrTy(), slot, llvm::Align(8)));
  }
  for (size_t i = 0; i < c.batch_vars.size(); ++i) {
    ex.bind(c.batch_vars[i], f->getArg(first + static_cast<unsigned>(i)));
  }
  ex.here();
  // Leaves the entry block to the emitter.
  llvm::BasicBlock* body = ex.new_block("body");
  b.CreateBr(body);
  b.SetInsertPoint(body);
}

}  // namespace pyc::cpu
