#include "backends/cpu/llvm/compilation.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/Host.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <span>

#include "backends/cpu/llvm/module_source.h"
#include "base/hash.h"
#include "runtime/code_module.h"

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

struct HostName {
  std::string cpu;
  std::string features;
};

// LLVM's name of this machine's CPU and all it has.
HostName name_host() {
  HostName host{llvm::sys::getHostCPUName().str(), ""};
  llvm::StringMap<bool> features;
  llvm::sys::getHostCPUFeatures(features);
  std::vector<std::string> list;
  for (const auto& f : features) list.push_back((f.second ? "+" : "-") + f.first().str());
  std::sort(list.begin(), list.end());
  if (llvm::Triple(llvm::sys::getProcessTriple()).isAArch64()) {
    // Named CPUs imply SVE, which the system may not offer; vectors here are fixed anyway.
    list.push_back("-sve");
  } else {
    // f16 is only ever converted. With native f16, code of LLVM 16 for a random test kernel that
    // converts f16 to u64 was off by one bit; without, it is right.
    list.push_back("-avx512fp16");
  }
  for (const std::string& f : list) host.features += (host.features.empty() ? "" : ",") + f;
  return host;
}

// Replaces kHostCpu by that. Looked up once: it reads files of the system.
void find_host(CodegenTarget& target) {
  static const HostName host = name_host();
  target.cpu = host.cpu;
  target.features += (target.features.empty() ? "" : ",") + host.features;
}

// Level 1 makes the code of level 2 here, so the quick one is 0.
llvm::CodeGenOpt::Level level_of(Effort effort) {
  if (effort == Effort::kFastDev) return llvm::CodeGenOpt::None;
  return effort == Effort::kMaxPerf ? llvm::CodeGenOpt::Aggressive : llvm::CodeGenOpt::Default;
}

// Keeps what LLVM would print (and exit on).
class Diagnostics : public llvm::DiagnosticHandler {
 public:
  explicit Diagnostics(std::string& errors) : errors_(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream stream(errors_);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    }
    return true;
  }

 private:
  std::string& errors_;
};

// Contexts of modules that are only described: most of such a module are types and constants that
// the one before it had too. A context keeps all it ever met, so that it is used some times and no
// more.
class Contexts {
 public:
  static Contexts& all() {
    static Contexts contexts;
    return contexts;
  }

  std::unique_ptr<llvm::LLVMContext> take() {
    {
      const std::scoped_lock lock(mutex_);
      if (++taken_ % kUses == 0) free_.clear();
      if (!free_.empty()) {
        auto context = std::move(free_.back());
        free_.pop_back();
        return context;
      }
    }
    auto context = std::make_unique<llvm::LLVMContext>();
    context->setDiscardValueNames(true);
    return context;
  }

  void give_back(std::unique_ptr<llvm::LLVMContext> context) {
    context->setDiagnosticHandler(nullptr);
    const std::scoped_lock lock(mutex_);
    if (free_.size() < kMost) free_.push_back(std::move(context));
  }

 private:
  static constexpr size_t kMost = 4;
  static constexpr int64_t kUses = 256;

  std::mutex mutex_;  // guards everything below
  std::vector<std::unique_ptr<llvm::LLVMContext>> free_;
  int64_t taken_ = 0;
};

// Without the table of symbols, which repeats what the module says.
std::string bitcode_of(const llvm::Module& module) {
  llvm::SmallVector<char, 0> bytes;
  llvm::BitcodeWriter writer(bytes);
  writer.writeModule(module);
  writer.writeStrtab();
  return {bytes.begin(), bytes.end()};
}

#ifndef NDEBUG
// That modules with the same description are the same to LLVM too, of all that this process writes.
void check_described(const std::string& described, const std::string& bitcode) {
  static std::mutex mutex;
  static std::map<Digest, Digest> known;
  const std::scoped_lock lock(mutex);
  const Digest found = hash128(std::as_bytes(std::span(bitcode)));
  const Digest before =
      known.try_emplace(hash128(std::as_bytes(std::span(described))), found).first->second;
  PYC_CHECK(before == found, "modules that differ are described alike");
}
#endif

}  // namespace

Compilation::Compilation(CodegenTarget target, std::string name, std::vector<int64_t>* dims,
                         bool named)
    : target_(std::move(target)),
      name_(std::move(name)),
      context_(named ? std::make_unique<llvm::LLVMContext>() : Contexts::all().take()) {
  if (dims != nullptr) numbers_.emplace(*dims);
  if (target_.cpu == kHostCpu) find_host(target_);
}

Compilation::~Compilation() {
  module_.reset();
  if (context_->shouldDiscardValueNames()) Contexts::all().give_back(std::move(context_));
}

Status Compilation::make_machine() {
  initialise_llvm();
  context_->setDiagnosticHandler(std::make_unique<Diagnostics>(errors_));
  const llvm::Triple triple(target_.triple);
  const bool x86 = triple.getArch() == llvm::Triple::x86_64;
  if (!x86 && triple.getArch() != llvm::Triple::aarch64) {
    return {Code::kUnsupported, "no code can be made for '" + target_.triple +
                                    "': expected an aarch64 or x86_64 triple"};
  }
  if (!triple.isOSBinFormatELF()) {
    return {Code::kUnsupported, "objects are ELF, '" + target_.triple + "' is not"};
  }
  if (target_.lanes != 4 && target_.lanes != 8 && target_.lanes != 16) {
    return {Code::kInvalidArgument,
            "expected 4, 8 or 16 lanes, found " + std::to_string(target_.lanes)};
  }
  std::string error;
  const llvm::Target* llvm_target = llvm::TargetRegistry::lookupTarget(target_.triple, error);
  if (llvm_target == nullptr) return {Code::kUnsupported, error};
  // LLVM prints about names it does not know, so they are looked up first.
  const std::unique_ptr<llvm::MCSubtargetInfo> plain(
      llvm_target->createMCSubtargetInfo(target_.triple, "", ""));
  if (!plain->isCPUStringValid(target_.cpu)) {
    return {Code::kUnsupported, "LLVM does not know the CPU '" + target_.cpu + "'"};
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  machine_.reset(llvm_target->createTargetMachine(
      target_.triple, target_.cpu, target_.features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, level_of(target_.effort)));
  if (machine_ == nullptr) return {Code::kUnsupported, "LLVM has no code for " + target_.triple};
  // One selector of instructions at all levels: the quick ones of level 0 are no quicker on these
  // kernels, and bits would hang on two more pieces of LLVM.
  machine_->setO0WantsFastISel(false);
  machine_->setFastISel(false);
  machine_->setGlobalISel(false);
  const llvm::MCSubtargetInfo* info = machine_->getMCSubtargetInfo();
  if (x86 && !(info->checkFeatures("+fma") && info->checkFeatures("+avx2"))) {
    return {Code::kUnsupported,
            "the CPU '" + target_.cpu + "' lacks AVX2 or FMA, which exactly rounded fma needs"};
  }
  if (!x86 && !info->checkFeatures("+neon")) {
    return {Code::kUnsupported, "the CPU '" + target_.cpu + "' lacks NEON"};
  }
  return {};
}

Result<Compilation::TargetFacts> Compilation::facts() {
  static std::mutex mutex;
  static std::map<std::string, TargetFacts> known;
  const std::string key = target_.triple + '\n' + target_.cpu + '\n' + target_.features + '\n' +
                          std::to_string(target_.lanes);
  {
    const std::scoped_lock lock(mutex);
    if (const auto it = known.find(key); it != known.end()) return it->second;
  }
  PYC_TRY(make_machine());
  const llvm::MCSubtargetInfo* info = machine_->getMCSubtargetInfo();
  TargetTraits t;
  t.aarch64 = target_.is_aarch64();
  t.f16c = !t.aarch64 && info->checkFeatures("+f16c");
  const bool avx512 = !t.aarch64 && info->checkFeatures("+avx512f,+avx512dq,+avx512vl");
  t.lanes = target_.lanes;
  t.avx512 = avx512 && t.lanes == 16;
  t.byte_dot = t.aarch64 ? info->checkFeatures("+dotprod")
                         : t.avx512 && info->checkFeatures("+avx512vnni,+avx512bw");
  t.vector_registers = t.aarch64 || avx512 ? 32 : 16;
  t.slow_division = t.lanes == 16;
  const std::scoped_lock lock(mutex);
  TargetFacts made{t, machine_->createDataLayout().getStringRepresentation()};
  return known.try_emplace(key, std::move(made)).first->second;
}

void Compilation::set_attributes() {
  // CPUs with AVX-512 are tuned for 256 bits unless told otherwise.
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

Status Compilation::named(Status status) const {
  return std::move(status).with_context("compiling " + name_);
}

Status Compilation::write(const Writer& writer) {
  auto found = facts();
  if (!found.ok()) return named(std::move(found).status());
  found->traits.numbers = numbers_ ? &*numbers_ : nullptr;
  module_ = std::make_unique<llvm::Module>("pyc", *context_);
  module_->setTargetTriple(target_.triple);
  module_->setDataLayout(found->data_layout);
  writer(*module_, found->traits);
  return {};
}

// All that attributes follow from stands before the module, once.
std::string Compilation::source() const {
  std::string out = target_.triple + '\n' + target_.cpu + '\n' + target_.features + '\n' +
                    std::to_string(target_.lanes) + '\n' +
                    std::to_string(static_cast<int>(target_.effort)) + '\n';
  const std::optional<std::string> described = module_source(*module_);
  if (!described) return out + "bitcode\n" + bitcode_of(*module_);
#ifndef NDEBUG
  check_described(*described, bitcode_of(*module_));
#endif
  return out + *described;
}

Status Compilation::finish() {
  set_attributes();
  if (machine_ == nullptr) {
    if (Status status = make_machine(); !status.ok()) return named(std::move(status));
  }
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  if (llvm::verifyModule(*module_, &stream)) {
    return named({Code::kInternal, "invalid LLVM IR: " + broken});
  }
  optimise();
  if (target_.is_aarch64()) compare_with_itself(*module_);
  return {};
}

// A test for NaN has become a comparison with zero: three instructions on vectors, where NEON
// compares a vector with itself in one. Freezing keeps LLVM from seeing that it is itself.
void Compilation::compare_with_itself(llvm::Module& module) {
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* test = llvm::dyn_cast<llvm::FCmpInst>(&instruction);
      if (test == nullptr || !test->getType()->isVectorTy()) continue;
      const bool is_nan = test->getPredicate() == llvm::CmpInst::FCMP_UNO;
      if (!is_nan && test->getPredicate() != llvm::CmpInst::FCMP_ORD) continue;
      if (!llvm::PatternMatch::match(test->getOperand(1), llvm::PatternMatch::m_AnyZeroFP()))
        continue;
      test->setPredicate(is_nan ? llvm::CmpInst::FCMP_UNE : llvm::CmpInst::FCMP_OEQ);
      test->setOperand(1, new llvm::FreezeInst(test->getOperand(0), "", test));
    }
  }
}

// We hoist and vectorize; what is left to clean up is repeated index arithmetic.
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

Result<std::string> Compilation::code(llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, stream, nullptr, type)) {
    return named({Code::kUnsupported, "LLVM cannot write this kind of file for " + target_.triple});
  }
  passes.run(*module_);
  if (!errors_.empty()) return named({Code::kCompileFailed, "LLVM: " + errors_});
  return std::string(bytes.begin(), bytes.end());
}

std::string Compilation::text() const {
  std::string out;
  llvm::raw_string_ostream stream(out);
  module_->print(stream, nullptr);
  return out;
}

Result<std::string> Compilation::assembly() { return code(llvm::CGFT_AssemblyFile); }

Result<std::string> Compilation::object() {
  PYC_ASSIGN(std::string object, code(llvm::CGFT_ObjectFile));
  PYC_ASSIGN(const std::vector<std::string> missing, runtime::undefined_symbols(object));
  if (!missing.empty()) {
    return named({Code::kInternal, "the object needs the undefined symbol '" + missing[0] + "'"});
  }
  return object;
}

}  // namespace pyc::cpu
