#pragma once

#include <stdint.h>

// How generated code is called. Plain C, so that every backend and every ahead-of-time artefact can
// use it.
extern "C" {

struct pyc_kernel_args {
  void* const* buffers;  // one pointer per kernel buffer, in the kernel's order; scratch ones unset
  const int64_t* dims;   // sizes that are arguments of the code; null when there are none
  void* scratch;         // this thread's scratch memory, 64-byte aligned; null when none is needed
  const void* self;      // what the backend attached to the kernel (an interpreter's program)
  int32_t* fault;        // a kernel sets *fault to a nonzero code when a run-time check fails
  int32_t thread;        // 0 … threads-1
  int32_t threads;
};

// Runs the parallel iterations [begin, end) of the kernel.
typedef void (*pyc_kernel_fn)(const struct pyc_kernel_args* args, int64_t begin, int64_t end);
}
