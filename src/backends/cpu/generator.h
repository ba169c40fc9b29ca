#pragma once

// What turns kernels into code. It lives in a library of its own, libpyc_llvm.so, that is loaded
// when the first code is made: a process that only runs artefacts never maps LLVM. llvm/ implements
// it; everything here is free of LLVM.

#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/attention.h"
#include "backends/cpu/codegen.h"
#include "backends/cpu/matmul.h"
#include "base/status.h"
#include "loop/loop.h"
#include "lower/types.h"

namespace pyc::cpu {

// What is wanted of a module: a relocatable ELF object, assembly, LLVM IR after the pass list, or
// all that its code follows from, as bytes: equal bytes become equal code.
enum class Form : uint8_t { kObject, kAssembly, kLlvmText, kSource };

struct Output {
  std::string symbol = std::string(kDefaultSymbol);
  Form form = Form::kObject;
  // Where not null, sizes are arguments of the code, and these become their values: what
  // pyc_kernel_args::dims has to point at when the code runs for the kernel it was asked for.
  std::vector<int64_t>* dims = nullptr;
};

class Generator {
 public:
  virtual ~Generator() = default;
  virtual Result<std::string> kernel(const loop::Kernel& kernel, const CodegenTarget& target,
                                     const Output& output) const = 0;
  virtual Result<std::string> matmul(const lower::Group& group, const MatmulPlan& plan,
                                     const CodegenTarget& target, const Output& output) const = 0;
  virtual Result<std::string> attention(const lower::Group& group, const AttentionPlan& plan,
                                        const CodegenTarget& target,
                                        const Output& output) const = 0;
  virtual Result<std::string> fma_probe(const CodegenTarget& target,
                                        const std::string& symbol) const = 0;
};

// The library's one public function: its generator, alive for the whole process, or null when the
// caller was built from another version.
inline constexpr const char* kGeneratorSymbol = "pyc_llvm_generator";
using GeneratorFunction = const Generator* (*)(const char* version);

// Loads the library at the first call. It is looked for beside the program or library that this
// code is in, and in ../lib from there. kUnsupported with the places and the loader's reason when
// it cannot be had; the next call tries again.
Result<const Generator*> generator();

}  // namespace pyc::cpu
