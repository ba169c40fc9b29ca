#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pyc {

// Sizes in bytes of the data caches that one core sees; 0: unknown or absent.
struct CacheSizes {
  int64_t l1 = 0;
  int64_t l2 = 0;
  int64_t l3 = 0;
};

// The machine code is made for. It may steer speed alone, never the bits of a result. An
// instruction set counts as present when both the CPU and the operating system support it.
struct TargetInfo {
  std::string arch;  // "aarch64" or "x86_64"

  // x86_64
  bool has_avx2 = false;
  bool has_fma = false;
  bool has_f16c = false;
  bool has_bmi = false;     // BMI1, BMI2, LZCNT, MOVBE and POPCNT together
  bool has_avx512 = false;  // F, BW, CD, DQ and VL together
  bool has_avx512_vnni = false;
  bool has_avx512_bf16 = false;
  bool has_avx512_fp16 = false;
  bool has_amx_int8 = false;
  bool has_amx_bf16 = false;

  // aarch64
  bool has_neon = false;
  bool has_neon_fp16 = false;  // f16 arithmetic
  bool has_dotprod = false;    // SDOT, UDOT
  bool has_i8mm = false;       // SMMLA, UMMLA
  bool has_bf16 = false;       // BFDOT, BFMMLA
  bool has_sve = false;

  int vector_bytes = 16;  // of the widest registers that are used
  int vector_registers = 16;
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;
  int64_t l3_bytes = 8 << 20;
  int cores = 1;  // that this process may run on

  // The names of the features present, in a fixed order, joined by commas: "avx2,fma,f16c".
  std::string features() const;
};

// The machine this process runs on. What the system does not tell keeps the default above. On x86
// the system is asked to save tile registers (AMX), for the whole process.
TargetInfo host_target();

// Fixed machines that code is made for ahead of time. Each names exactly what its code may use.
std::span<const std::string_view> target_names();
// The widest of them that the machine runs; "" when there is none.
std::string_view native_target(const TargetInfo& machine);
// "" when the machine runs code made for the target, else what is in the way: "it is an aarch64",
// "it has no avx512".
std::string missing_for(std::string_view target, const TargetInfo& machine);

// The sizes told by a folder laid out like Linux's /sys/devices/system/cpu/cpu0/cache.
CacheSizes read_cache_sizes(const std::string& folder);

}  // namespace pyc
