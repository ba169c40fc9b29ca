// From a planned product to an object, through LLVM.

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <mutex>

#include "backends/cpu/matmul_emit.h"

namespace pyc::cpu {
namespace {

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

// Enough to hide the latency, few enough for the registers.
int probe_chains(const CodegenTarget& target) {
  return target.is_aarch64() ? 96 / target.lanes : 12;
}

class Compilation {
 public:
  explicit Compilation(const CodegenTarget& target) : target_(target) {}

  Status emit(const lower::Group& group, const MatmulPlan& plan, const std::string& symbol);
  Status emit_probe(const std::string& symbol);
  Result<std::string> write(llvm::CodeGenFileType type);
  std::string text() const;

 private:
  Status make_machine();
  Status make_module();
  Status finish(const std::string& name);
  TargetTraits traits() const;
  void set_attributes();
  void optimise();

  const CodegenTarget& target_;
  llvm::LLVMContext context_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<llvm::Module> module_;
};

Status Compilation::make_machine() {
  initialise_llvm();
  std::string error;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(target_.triple, error);
  if (llvm_target == nullptr) return {Code::kUnsupported, error};
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  machine_.reset(llvm_target->createTargetMachine(
      target_.triple, target_.cpu, target_.features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOpt::Default));
  if (machine_ == nullptr) return {Code::kUnsupported, "LLVM has no code for " + target_.triple};
  const llvm::MCSubtargetInfo* info = machine_->getMCSubtargetInfo();
  if (!target_.is_aarch64() && !info->checkFeatures("+fma")) {
    return {Code::kUnsupported, "the CPU '" + target_.cpu + "' lacks FMA"};
  }
  return {};
}

TargetTraits Compilation::traits() const {
  const llvm::MCSubtargetInfo* info = machine_->getMCSubtargetInfo();
  TargetTraits t;
  t.aarch64 = target_.is_aarch64();
  t.f16c = !t.aarch64 && info->checkFeatures("+f16c");
  t.lanes = target_.lanes;
  t.vector_registers = t.aarch64 || info->checkFeatures("+avx512f,+avx512vl") ? 32 : 16;
  return t;
}

void Compilation::set_attributes() {
  const std::string bits = target_.lanes == 16 ? "512" : "256";
  for (llvm::Function& f : *module_) {
    if (f.isDeclaration()) continue;
    f.addFnAttr(llvm::Attribute::NoUnwind);
    f.addFnAttr(llvm::Attribute::NoBuiltin);
    f.addFnAttr("target-cpu", target_.cpu);
    f.addFnAttr("target-features", target_.features);
    if (target_.is_aarch64()) continue;
    f.addFnAttr("prefer-vector-width", bits);
    f.addFnAttr("min-legal-vector-width", bits);
  }
}

Status Compilation::emit(const lower::Group& group, const MatmulPlan& plan,
                         const std::string& symbol) {
  PYC_TRY(make_module());
  const TargetTraits target_traits = traits();
  const MatmulSource source{group, plan, target_traits};
  const bool two = plan.tall_tiles < plan.row_tiles;
  llvm::Function* const tiles[2] = {
      emit_matmul_tile(source, *module_, plan.tile_rows),
      two ? emit_matmul_tile(source, *module_, plan.tile_rows - 1) : nullptr};
  emit_matmul_driver(source, *module_, symbol, tiles);
  if (plan.weights == MatmulPlan::Weights::kPackedAtRun) {
    emit_matmul_pack(source, *module_, symbol + "_pack");
  }
  return finish(plan.name + " of '" + group.name + "'");
}

Status Compilation::emit_probe(const std::string& symbol) {
  PYC_TRY(make_module());
  emit_fma_probe(*module_, target_.lanes, probe_chains(target_), symbol);
  return finish("probe");
}

Status Compilation::make_module() {
  PYC_TRY(make_machine());
  module_ = std::make_unique<llvm::Module>("pyc", context_);
  module_->setTargetTriple(target_.triple);
  module_->setDataLayout(machine_->createDataLayout());
  return {};
}

Status Compilation::finish(const std::string& name) {
  set_attributes();
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  if (llvm::verifyModule(*module_, &stream)) {
    return {Code::kInternal, name + " gave invalid LLVM IR: " + broken};
  }
  optimise();
  return {};
}

void Compilation::optimise() {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine_.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(*module_, modules);
}

Result<std::string> Compilation::write(llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, stream, nullptr, type)) {
    return Status(Code::kUnsupported, "LLVM cannot write this kind of file for " + target_.triple);
  }
  passes.run(*module_);
  return std::string(bytes.begin(), bytes.end());
}

std::string Compilation::text() const {
  std::string out;
  llvm::raw_string_ostream stream(out);
  module_->print(stream, nullptr);
  return out;
}

}  // namespace

Result<std::string> emit_matmul_object(const lower::Group& group, const MatmulPlan& plan,
                                       const CodegenTarget& target, const std::string& symbol) {
  Compilation c(target);
  PYC_TRY(c.emit(group, plan, symbol));
  PYC_ASSIGN(std::string object, c.write(llvm::CGFT_ObjectFile));
  PYC_ASSIGN(const std::vector<std::string> missing, undefined_symbols(object));
  if (!missing.empty()) {
    return Status(Code::kInternal, plan.name + " of '" + group.name +
                                       "' needs the undefined symbol '" + missing[0] + "'");
  }
  return object;
}

Result<std::string> emit_matmul_llvm_text(const lower::Group& group, const MatmulPlan& plan,
                                          const CodegenTarget& target) {
  Compilation c(target);
  PYC_TRY(c.emit(group, plan, std::string(kDefaultSymbol)));
  return c.text();
}

Result<std::string> emit_matmul_assembly(const lower::Group& group, const MatmulPlan& plan,
                                         const CodegenTarget& target) {
  Compilation c(target);
  PYC_TRY(c.emit(group, plan, std::string(kDefaultSymbol)));
  return c.write(llvm::CGFT_AssemblyFile);
}

Result<std::string> emit_fma_probe_object(const CodegenTarget& target, const std::string& symbol) {
  Compilation c(target);
  PYC_TRY(c.emit_probe(symbol));
  return c.write(llvm::CGFT_ObjectFile);
}

int64_t fma_probe_flops(const CodegenTarget& target) {
  return int64_t{2} * target.lanes * probe_chains(target) * kFmaProbeDepth;
}

}  // namespace pyc::cpu
