#include "backends/cpu/codegen.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/Support/Host.h>

#include <algorithm>

#include "backends/cpu/compilation.h"
#include "backends/cpu/emitter.h"

namespace pyc::cpu {
namespace {

Compilation of_kernel(const loop::Kernel& kernel, const CodegenTarget& target) {
  return {target, "kernel '" + kernel.name + "'"};
}

Compilation::Writer writer(const loop::Kernel& kernel, std::string symbol) {
  return [&kernel, symbol = std::move(symbol)](llvm::Module& module, const TargetTraits& traits) {
    emit_kernel(kernel, traits, module, symbol);
  };
}

}  // namespace

namespace {

CodegenTarget find_host() {
  CodegenTarget t;
  t.triple = llvm::sys::getProcessTriple();
  t.cpu = llvm::sys::getHostCPUName().str();
  llvm::StringMap<bool> features;
  llvm::sys::getHostCPUFeatures(features);
  std::vector<std::string> list;
  for (const auto& f : features) list.push_back((f.second ? "+" : "-") + f.first().str());
  std::sort(list.begin(), list.end());
  if (t.is_aarch64()) {
    // Named CPUs imply SVE, which the system may not offer; vectors here are fixed anyway.
    list.push_back("-sve");
  } else {
    // f16 is only ever converted. With native f16, code of LLVM 16 for a random test kernel that
    // converts f16 to u64 was off by one bit; without, it is right.
    list.push_back("-avx512fp16");
  }
  for (const std::string& f : list) t.features += (t.features.empty() ? "" : ",") + f;
  const auto has = [&](const char* name) {
    const auto it = features.find(name);
    return it != features.end() && it->second;
  };
  t.lanes = t.is_aarch64() ? 4 : has("avx512f") && has("avx512vl") ? 16 : has("avx2") ? 8 : 4;
  return t;
}

}  // namespace

// Looked up once: LLVM reads files of the system for it.
CodegenTarget CodegenTarget::host() {
  static const CodegenTarget target = find_host();
  return target;
}

CodegenTarget CodegenTarget::aarch64_neon() {
  return {"aarch64-unknown-linux-gnu", "generic", "+neon", 4};
}

CodegenTarget CodegenTarget::x86_avx2() { return {"x86_64-unknown-linux-gnu", "x86-64-v3", "", 8}; }

CodegenTarget CodegenTarget::x86_avx512() {
  return {"x86_64-unknown-linux-gnu", "x86-64-v4", "", 16};
}

Result<std::string> emit_llvm_text(const loop::Kernel& kernel, const CodegenTarget& target) {
  Compilation c = of_kernel(kernel, target);
  PYC_TRY(c.emit(writer(kernel, std::string(kDefaultSymbol))));
  return c.text();
}

Result<std::string> emit_assembly(const loop::Kernel& kernel, const CodegenTarget& target) {
  Compilation c = of_kernel(kernel, target);
  PYC_TRY(c.emit(writer(kernel, std::string(kDefaultSymbol))));
  return c.assembly();
}

Result<std::string> emit_object(const loop::Kernel& kernel, const CodegenTarget& target,
                                const std::string& symbol) {
  Compilation c = of_kernel(kernel, target);
  PYC_TRY(c.emit(writer(kernel, symbol)));
  return c.object();
}

}  // namespace pyc::cpu
