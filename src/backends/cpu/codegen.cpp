#include "backends/cpu/codegen.h"

#include "backends/cpu/generator.h"
#include "base/target_info.h"

namespace pyc::cpu {
namespace {

Result<std::string> emit(const loop::Kernel& kernel, const CodegenTarget& target,
                         const std::string& symbol, Form form) {
  PYC_ASSIGN(const Generator* made, generator());
  return made->kernel(kernel, target, {.symbol = symbol, .form = form});
}

Result<std::string> emit(const lower::Group& group, const MatmulPlan& plan,
                         const CodegenTarget& target, const std::string& symbol, Form form) {
  PYC_ASSIGN(const Generator* made, generator());
  return made->matmul(group, plan, target, {.symbol = symbol, .form = form});
}

ByteUnit byte_unit_of(const TargetInfo& machine) {
  if (machine.has_i8mm) return ByteUnit::kMmla;
  if (machine.has_dotprod) return ByteUnit::kDot;
  if (machine.has_avx512_vnni && machine.has_amx_int8) return ByteUnit::kAmx;
  if (machine.has_avx512_vnni) return ByteUnit::kVnni;
  return machine.has_avx2 ? ByteUnit::kWords : ByteUnit::kNone;
}

CodegenTarget find_host() {
  const TargetInfo machine = host_target();
  CodegenTarget t;
  t.triple = machine.arch + "-unknown-linux-gnu";
  t.cpu = kHostCpu;
  t.avx512 = machine.has_avx512;
  t.lanes = machine.has_avx512 ? 16 : machine.has_avx2 ? 8 : 4;
  t.bytes = byte_unit_of(machine);
  return t;
}

}  // namespace

// Looked up once: it reads files of the system.
CodegenTarget CodegenTarget::host() {
  static const CodegenTarget target = find_host();
  return target;
}

CodegenTarget CodegenTarget::aarch64_neon() {
  return {"aarch64-unknown-linux-gnu", "generic", "+neon", 4, false};
}

CodegenTarget CodegenTarget::aarch64_i8mm() {
  return {
      "aarch64-unknown-linux-gnu", "generic", "+neon,+dotprod,+i8mm", 4, false, ByteUnit::kMmla};
}

CodegenTarget CodegenTarget::x86_avx2() {
  return {"x86_64-unknown-linux-gnu", "x86-64-v3", "", 8, false, ByteUnit::kWords};
}

CodegenTarget CodegenTarget::x86_avx512() {
  return {"x86_64-unknown-linux-gnu", "x86-64-v4", "", 16, true, ByteUnit::kWords};
}

CodegenTarget CodegenTarget::x86_vnni() {
  return {"x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512vnni", 16, true, ByteUnit::kVnni};
}

CodegenTarget CodegenTarget::x86_amx() {
  return {"x86_64-unknown-linux-gnu",
          "x86-64-v4",
          "+avx512vnni,+amx-tile,+amx-int8",
          16,
          true,
          ByteUnit::kAmx};
}

Result<std::string> emit_llvm_text(const loop::Kernel& kernel, const CodegenTarget& target) {
  return emit(kernel, target, std::string(kDefaultSymbol), Form::kLlvmText);
}

Result<std::string> emit_assembly(const loop::Kernel& kernel, const CodegenTarget& target) {
  return emit(kernel, target, std::string(kDefaultSymbol), Form::kAssembly);
}

Result<std::string> emit_object(const loop::Kernel& kernel, const CodegenTarget& target,
                                const std::string& symbol) {
  return emit(kernel, target, symbol, Form::kObject);
}

Result<std::string> emit_matmul_object(const lower::Group& group, const MatmulPlan& plan,
                                       const CodegenTarget& target, const std::string& symbol) {
  return emit(group, plan, target, symbol, Form::kObject);
}

Result<std::string> emit_matmul_llvm_text(const lower::Group& group, const MatmulPlan& plan,
                                          const CodegenTarget& target) {
  return emit(group, plan, target, std::string(kDefaultSymbol), Form::kLlvmText);
}

Result<std::string> emit_matmul_assembly(const lower::Group& group, const MatmulPlan& plan,
                                         const CodegenTarget& target) {
  return emit(group, plan, target, std::string(kDefaultSymbol), Form::kAssembly);
}

Result<std::string> emit_fma_probe_object(const CodegenTarget& target, const std::string& symbol) {
  PYC_ASSIGN(const Generator* made, generator());
  return made->fma_probe(target, symbol);
}

int64_t fma_probe_flops(const CodegenTarget& target) {
  return int64_t{2} * target.lanes * fma_probe_chains(target) * kFmaProbeDepth;
}

}  // namespace pyc::cpu
