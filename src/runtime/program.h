#pragma once

// Program: what a backend made of a plan. Plain data: steps over a table of buffers, ready to run.
// It knows nothing of graphs, loops or code generators.

#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/kernel_abi.h"
#include "base/status.h"

namespace pyc::runtime {

// An input or output of a model.
struct IoSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

// Where a step finds a buffer.
enum class Where : uint8_t {
  kInput,      // the caller's input `index`
  kOutput,     // the caller's output `index`
  kParameter,  // Program::parameters[index]
  kArena,      // `offset` bytes into the run's arena
  kScratch,    // nothing: the kernel addresses its scratch memory itself
};

struct BufferRef {
  Where where = Where::kArena;
  uint32_t index = 0;
  int64_t offset = 0;
};

// Constant bytes that outlive the program's runs: weights as given or packed for a kernel.
struct Parameter {
  std::shared_ptr<const void> owner;
  const void* data = nullptr;
  int64_t bytes = 0;
};

// One kernel over a parallel range.
struct Step {
  std::string name;  // the group's name, for traces and messages
  pyc_kernel_fn fn = nullptr;
  const void* self = nullptr;  // goes into pyc_kernel_args::self
  // In a program made for another machine fn is null and the function is `symbol` of `object`.
  std::string symbol;
  std::shared_ptr<const std::string> object;
  std::vector<BufferRef> buffers;  // in the kernel's order
  int64_t parallel = 1;            // points of the kernel's parallel box
  int64_t bytes_moved = 0;         // read and written at least, for reports
  double flops = 0.0;
  std::vector<std::string> faults;  // message of fault code i+1
};

struct Program {
  std::vector<IoSpec> inputs;
  std::vector<IoSpec> outputs;
  std::vector<Parameter> parameters;
  std::vector<Step> steps;
  int64_t arena_bytes = 0;    // temporaries and workspaces, 64-byte aligned offsets
  int64_t scratch_bytes = 0;  // per thread, the largest any step needs
  std::vector<std::shared_ptr<const void>> owners;  // machine code, interpreters
};

// Refuses, with kInternal and the step's name, a program that cannot be run: a reference to a
// buffer that does not exist, a step without a kernel, sizes that contradict shapes.
Status check_program(const Program& program);

}  // namespace pyc::runtime
