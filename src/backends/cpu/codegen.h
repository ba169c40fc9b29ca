#pragma once

// Loop IR → a relocatable object for a target: this machine's or a foreign one. What is made for
// this machine is loaded by runtime/code_module.h. Nothing here aborts, prints or calls back; all
// functions are thread-safe.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/effort.h"
#include "base/status.h"
#include "loop/loop.h"

namespace pyc::cpu {

// The CPU that this process runs on, with all it has: LLVM finds out what that is.
inline constexpr std::string_view kHostCpu = "host";

// What multiplies bytes of several k at once and adds them, exactly, to i32.
enum class ByteUnit : uint8_t {
  kNone,
  kMmla,   // aarch64 with i8mm: two rows of 8 by two columns of 8
  kDot,    // aarch64 with dotprod: 4 by 4 in every lane, both signed or both unsigned
  kVnni,   // x86 with AVX-512 VNNI: 4 by 4 in every lane, unsigned by signed
  kAmx,    // x86 with AMX: tiles of 16 rows of 64 by 16 columns of 64
  kWords,  // other x86: bytes as words, 2 by 2 in every lane
};

// What code is made for. Results never depend on it, speed does.
struct CodegenTarget {
  std::string triple;    // "aarch64-…" or "x86_64-…", Linux (ELF)
  std::string cpu;       // LLVM's name, or kHostCpu
  std::string features;  // LLVM's list, "+avx2,-sve"; x86 must have FMA
  int lanes = 4;         // elements per vector body: 4, 8 or 16, whatever the hardware's width
  bool avx512 = false;   // x86: 32 registers of 512 bits
  ByteUnit bytes = ByteUnit::kNone;
  Effort effort = Effort::kBalanced;

  bool is_aarch64() const { return triple.starts_with("aarch64"); }

  // This machine, with its native f32 width: NEON 4, AVX2 8, AVX-512 16.
  static CodegenTarget host();
  // Fixed targets for ahead-of-time and cross-ISA objects.
  static CodegenTarget aarch64_neon();
  static CodegenTarget aarch64_i8mm();
  static CodegenTarget x86_avx2();
  static CodegenTarget x86_avx512();
  static CodegenTarget x86_vnni();
  static CodegenTarget x86_amx();
};

inline constexpr std::string_view kDefaultSymbol = "pyc_kernel";

// The kernel as LLVM IR after the pass list, as assembly, and as a relocatable ELF object whose
// one public symbol is a pyc_kernel_fn. The kernel must pass loop::verify_kernel. Refuses
// (kUnsupported) targets that lack exactly rounded fma or that LLVM does not know. Objects refer to
// nothing outside themselves. Equal arguments give equal bytes.
// The code takes it that a kernel's buffers do not overlap, but for a written one that is in place
// of a read one.
Result<std::string> emit_llvm_text(const loop::Kernel& kernel, const CodegenTarget& target);
Result<std::string> emit_assembly(const loop::Kernel& kernel, const CodegenTarget& target);
Result<std::string> emit_object(const loop::Kernel& kernel, const CodegenTarget& target,
                                const std::string& symbol = std::string(kDefaultSymbol));

}  // namespace pyc::cpu
