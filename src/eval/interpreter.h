#pragma once

#include <memory>

#include "base/kernel_abi.h"
#include "base/status.h"
#include "loop/loop.h"

namespace pyc::eval {

// A kernel made ready for interpretation: its expressions as flat instruction lists, one per
// scope. It does exactly what loop.h says, one scalar after another, and checks every load and
// store against the buffer's size.
class Interpreter {
 public:
  static Result<std::unique_ptr<Interpreter>> create(const loop::Kernel& kernel);
  virtual ~Interpreter() = default;
  // Runs parallel points [begin, end). An access out of bounds sets *args.fault to
  // kFaultOutOfBounds and stops. Thread-safe.
  virtual void run(const pyc_kernel_args& args, int64_t begin, int64_t end) const = 0;
};

inline constexpr int32_t kFaultOutOfBounds = -1;

// A pyc_kernel_fn whose args->self is an Interpreter.
void run_interpreted(const pyc_kernel_args* args, int64_t begin, int64_t end);

}  // namespace pyc::eval
