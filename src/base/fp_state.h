#pragma once

#include <cstdint>

namespace pyc {

// The floating-point control register of the calling thread: MXCSR on x86-64 (its sticky exception
// flags included), FPCR on AArch64. Writing it takes effect for all later scalar and vector
// arithmetic of this thread.
uint64_t read_fp_control();
void write_fp_control(uint64_t control);

// Puts the calling thread into the state the numerics contract asks for (round to nearest even, no
// flush-to-zero, no denormals-are-zero, all exceptions masked) and gives the caller's control
// register back, exactly as it was, on destruction. Guards nest. Both ends must run on one thread.
class FpStateGuard {
 public:
  FpStateGuard();
  ~FpStateGuard();
  FpStateGuard(const FpStateGuard&) = delete;
  FpStateGuard& operator=(const FpStateGuard&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace pyc
