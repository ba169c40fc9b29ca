#include "backends/cpu/llvm/module_source.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdint>
#include <string_view>

namespace pyc::cpu {
namespace {

// What is referred to (types, constants, attributes, metadata) has a number, and stands in full
// where it is met first. What is refused leaves `known_` false.
class Writer {
 public:
  std::optional<std::string> write(const llvm::Module& module) {
    constexpr size_t kUsual = size_t{1} << 15;
    out_.reserve(kUsual);
    known_ = module.alias_empty() && module.ifunc_empty() && module.named_metadata_empty() &&
             module.getModuleInlineAsm().empty();
    for (const llvm::GlobalVariable& g : module.globals()) define(g);
    for (const llvm::Function& f : module) define(f);
    number(values_.size());
    for (const llvm::GlobalVariable& g : module.globals()) variable(g);
    for (const llvm::Function& f : module) function(f);
    if (!known_) return std::nullopt;
    return std::move(out_);
  }

 private:
  // In as few bytes as it needs: most numbers are small.
  void number(uint64_t n) {
    constexpr uint64_t kMore = 0x80;
    for (; n >= kMore; n >>= 7) out_.push_back(static_cast<char>(n | kMore));
    out_.push_back(static_cast<char>(n));
  }

  void text(std::string_view s) {
    number(s.size());
    out_.append(s);
  }

  void define(const llvm::Value& v) {
    values_.try_emplace(&v, static_cast<uint32_t>(values_.size()));
  }

  // Writes the number of `key`; true: it is met for the first time.
  template <class Key>
  bool first(llvm::DenseMap<Key, uint32_t>& numbers, Key key) {
    const auto [it, is_new] = numbers.try_emplace(key, static_cast<uint32_t>(numbers.size()));
    number(it->second);
    return is_new;
  }

  void type(llvm::Type* t) {
    if (!first<const llvm::Type*>(types_, t)) return;
    known_ = known_ && (!t->isStructTy() || llvm::cast<llvm::StructType>(t)->isLiteral());
    std::string spelled;
    llvm::raw_string_ostream stream(spelled);
    t->print(stream);
    text(spelled);
  }

  void attributes(llvm::AttributeList list) {
    if (!first<const void*>(attributes_, list.getRawPointer())) return;
    number(list.getNumAttrSets());
    for (const unsigned i : list.indexes()) text(list.getAttributes(i).getAsString());
  }

  void constant(const llvm::Constant& c) {
    type(c.getType());
    number(c.getValueID());
    if (const auto* i = llvm::dyn_cast<llvm::ConstantInt>(&c)) {
      words(i->getValue());
    } else if (const auto* f = llvm::dyn_cast<llvm::ConstantFP>(&c)) {
      words(f->getValueAPF().bitcastToAPInt());
    } else if (const auto* data = llvm::dyn_cast<llvm::ConstantDataSequential>(&c)) {
      text({data->getRawDataValues().data(), data->getRawDataValues().size()});
    } else if (llvm::isa<llvm::ConstantVector>(c)) {
      for (const llvm::Use& element : c.operands()) value(*element);
    } else {
      known_ =
          known_ && (llvm::isa<llvm::ConstantAggregateZero>(c) ||
                     llvm::isa<llvm::ConstantPointerNull>(c) || llvm::isa<llvm::UndefValue>(c));
    }
  }

  void words(const llvm::APInt& bits) {
    for (unsigned w = 0; w < bits.getNumWords(); ++w) number(bits.getRawData()[w]);
  }

  void value(const llvm::Value& v) {
    if (!first<const llvm::Value*>(values_, &v)) return;
    if (const auto* code = llvm::dyn_cast<llvm::InlineAsm>(&v)) return inline_asm(*code);
    // All but constants have their numbers before anything refers to them.
    const auto* c = llvm::dyn_cast<llvm::Constant>(&v);
    if (c == nullptr || llvm::isa<llvm::GlobalValue>(v)) {
      known_ = false;
      return;
    }
    constant(*c);
  }

  void inline_asm(const llvm::InlineAsm& code) {
    type(code.getFunctionType());
    text(code.getAsmString());
    text(code.getConstraintString());
    number(code.hasSideEffects() ? 1 : 0);
    number(code.isAlignStack() ? 1 : 0);
    number(code.getDialect());
    number(code.canThrow() ? 1 : 0);
  }

  void metadata(const llvm::Metadata* m) {
    if (!first<const llvm::Metadata*>(metadata_, m) || m == nullptr) return;
    number(m->getMetadataID());
    if (const auto* s = llvm::dyn_cast<llvm::MDString>(m)) {
      text({s->getString().data(), s->getString().size()});
    } else if (const auto* c = llvm::dyn_cast<llvm::ConstantAsMetadata>(m)) {
      value(*c->getValue());
    } else if (const auto* tuple = llvm::dyn_cast<llvm::MDTuple>(m)) {
      number(tuple->isDistinct() ? 1 : 0);
      number(tuple->getNumOperands());
      for (const llvm::MDOperand& operand : tuple->operands()) metadata(operand.get());
    } else {
      known_ = false;
    }
  }

  void global(const llvm::GlobalObject& g) {
    known_ = known_ && !g.hasComdat() && !g.hasSection() && !g.hasMetadata() && !g.hasPartition() &&
             !g.hasSanitizerMetadata();
    text({g.getName().data(), g.getName().size()});
    type(g.getValueType());
    number(g.getValueID());
    number(g.getLinkage());
    number(g.getVisibility());
    number(static_cast<uint64_t>(g.getUnnamedAddr()));
    number(g.getDLLStorageClass());
    number(g.getThreadLocalMode());
    number(g.isDSOLocal() ? 1 : 0);
    number(g.getAddressSpace());
    number(g.getAlign() ? g.getAlign()->value() : 0);
  }

  void variable(const llvm::GlobalVariable& g) {
    known_ = known_ && g.hasInitializer() && !g.isExternallyInitialized() && !g.hasAttributes();
    global(g);
    number(g.isConstant() ? 1 : 0);
    if (g.hasInitializer()) value(*g.getInitializer());
  }

  void function(const llvm::Function& f) {
    known_ =
        known_ && !f.hasGC() && !f.hasPersonalityFn() && !f.hasPrefixData() && !f.hasPrologueData();
    global(f);
    number(f.getCallingConv());
    attributes(f.getAttributes());
    number(f.size());
    for (const llvm::Argument& a : f.args()) define(a);
    for (const llvm::BasicBlock& block : f) define(block);
    for (const llvm::BasicBlock& block : f) {
      for (const llvm::Instruction& i : block) define(i);
    }
    for (const llvm::BasicBlock& block : f) {
      number(block.size());
      for (const llvm::Instruction& i : block) instruction(i);
    }
  }

  void instruction(const llvm::Instruction& i) {
    number(i.getOpcode());
    number(i.getRawSubclassOptionalData());
    type(i.getType());
    number(i.getNumOperands());
    for (const llvm::Use& operand : i.operands()) value(*operand);
    special(i);
    if (!i.hasMetadata()) return number(0);
    known_ = known_ && !i.getDebugLoc();
    llvm::SmallVector<std::pair<unsigned, llvm::MDNode*>, 4> attached;
    i.getAllMetadata(attached);
    number(attached.size());
    for (const auto& [kind, node] : attached) {
      number(kind);
      metadata(node);
    }
  }

  // What an instruction has beside its operands and flags: as in haveSameSpecialState of LLVM.
  void special(const llvm::Instruction& i) {
    if (llvm::isa<llvm::BinaryOperator>(i) || llvm::isa<llvm::UnaryOperator>(i) ||
        llvm::isa<llvm::CastInst>(i) || llvm::isa<llvm::SelectInst>(i) ||
        llvm::isa<llvm::ExtractElementInst>(i) || llvm::isa<llvm::InsertElementInst>(i) ||
        llvm::isa<llvm::FreezeInst>(i) || llvm::isa<llvm::BranchInst>(i) ||
        llvm::isa<llvm::SwitchInst>(i) || llvm::isa<llvm::ReturnInst>(i) ||
        llvm::isa<llvm::UnreachableInst>(i)) {
      return;
    }
    if (const auto* cmp = llvm::dyn_cast<llvm::CmpInst>(&i)) {
      number(cmp->getPredicate());
    } else if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) {
      known_ = known_ && load->isSimple();
      number(load->getAlign().value());
    } else if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) {
      known_ = known_ && store->isSimple();
      number(store->getAlign().value());
    } else if (const auto* at = llvm::dyn_cast<llvm::GetElementPtrInst>(&i)) {
      type(at->getSourceElementType());
    } else if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(&i)) {
      for (const llvm::BasicBlock* block : phi->blocks()) value(*block);
    } else if (const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&i)) {
      for (const int lane : shuffle->getShuffleMask()) number(static_cast<uint32_t>(lane));
    } else if (const auto* local = llvm::dyn_cast<llvm::AllocaInst>(&i)) {
      known_ = known_ && !local->isUsedWithInAlloca() && !local->isSwiftError();
      type(local->getAllocatedType());
      number(local->getAlign().value());
    } else if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) {
      known_ = known_ && !call->hasOperandBundles();
      type(call->getFunctionType());
      number(call->getCallingConv());
      number(call->getTailCallKind());
      attributes(call->getAttributes());
    } else {
      known_ = false;
    }
  }

  std::string out_;
  bool known_ = true;
  llvm::DenseMap<const llvm::Type*, uint32_t> types_;
  llvm::DenseMap<const void*, uint32_t> attributes_;
  llvm::DenseMap<const llvm::Value*, uint32_t> values_;
  llvm::DenseMap<const llvm::Metadata*, uint32_t> metadata_;
};

}  // namespace

std::optional<std::string> module_source(const llvm::Module& module) {
  return Writer().write(module);
}

}  // namespace pyc::cpu
