#include "base/fp_state.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#error \
    "PyC runs on x86-64 and AArch64: add this architecture's floating-point control register here"
#endif

namespace pyc {
namespace {

#if defined(__x86_64__)
// All six exceptions masked; rounding, flush-to-zero and denormals-are-zero bits clear.
constexpr uint64_t kContractState = 0x1F80;
constexpr uint64_t kStickyFlags = 0x3F;
#else
// The default of the procedure call standard: every field zero. The sticky flags are in FPSR.
constexpr uint64_t kContractState = 0;
constexpr uint64_t kStickyFlags = 0;
#endif

}  // namespace

#if defined(__x86_64__)

uint64_t read_fp_control() {
  uint32_t control = 0;
  asm volatile("stmxcsr %0" : "=m"(control) : : "memory");
  return control;
}

void write_fp_control(uint64_t control) {
  const uint32_t value = static_cast<uint32_t>(control);
  asm volatile("ldmxcsr %0" : : "m"(value) : "memory");
}

#else

uint64_t read_fp_control() {
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control) : : "memory");
  return control;
}

void write_fp_control(uint64_t control) {
  asm volatile("msr fpcr, %0" : : "r"(control) : "memory");
}

#endif

FpStateGuard::FpStateGuard() : saved_(read_fp_control()) {
  // Writing serialises the pipeline on some cores, and most callers are in this state already.
  if ((saved_ & ~kStickyFlags) != kContractState) write_fp_control(kContractState);
}

FpStateGuard::~FpStateGuard() {
  if (read_fp_control() != saved_) write_fp_control(saved_);
}

}  // namespace pyc
