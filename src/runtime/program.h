#pragma once

// Program: what a backend made of a plan. Plain data: steps over a table of buffers. Code is bytes
// in it; a Loader (engine.h) makes it callable, whether it was compiled now or read from a file.
// It knows nothing of graphs, loops or code generators.

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/fault.h"
#include "base/status.h"

namespace pyc::runtime {

// An input or output of a model.
struct IoSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

// What a model keeps from one run to the next: an input whose value is what the last run left in
// its place, under the name of an output. Neither is among the program's inputs and outputs.
struct StateSpec {
  IoSpec input;
  std::string output;
  int64_t first_write = 0;  // no step before this one writes it
};

// Where a step finds a buffer.
enum class Where : uint8_t {
  kInput,      // `offset` bytes into the caller's input `index`
  kOutput,     // `offset` bytes into the caller's output `index`
  kParameter,  // `offset` bytes into Program::parameters[index]
  kArena,      // `offset` bytes into the run's arena
  kScratch,    // nothing: the kernel addresses its scratch memory itself
  kState,      // `offset` bytes into the model's state `index`
  kShelf,      // `offset` bytes into host memory of a run on a device; only copies name it
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
  bool in_file = false;  // known to lie in a mapped file
};

inline constexpr std::string_view kHostSpace = "host";

// Where steps run.
struct Place {
  std::string backend;  // whose Loader takes its code: "cpu"
  // What the code needs, in the backend's words: "x86_avx2". "": nothing, or it was made by this
  // process for the machine it is on.
  std::string target = {};
  std::string space = std::string(kHostSpace);  // the memory that its steps read and write
};

// Code over buffers.
struct Kernel {
  std::string symbol;                         // its name in the object
  std::shared_ptr<const std::string> object;  // what its backend makes; kernels may share one
  std::string launch;                         // how it is started: bytes that its backend reads
  std::vector<BufferRef> buffers = {};        // in the kernel's order
  std::vector<Fault> faults = {};             // what fault code i+1 means; buffers are this one's
};

// The first bytes of one buffer into another; they do not overlap.
struct Copy {
  std::array<BufferRef, 2> buffers = {};  // from, to
  int64_t bytes = 0;
};

// One thing a run does.
struct Step {
  std::string name;    // the group's name, for traces and messages
  uint32_t place = 0;  // index into Program::places
  std::variant<Kernel, Copy> work = {};
  int64_t bytes_moved = 0;  // read and written at least, for reports
  double flops = 0.0;
  bool again = false;  // it computes what an earlier step did, so that nobody had to keep it

  // Of a kernel step only.
  const Kernel& kernel() const { return std::get<Kernel>(work); }
  Kernel& kernel() { return std::get<Kernel>(work); }
  // Null where the step is no copy.
  const Copy* copy() const { return std::get_if<Copy>(&work); }
  std::span<const BufferRef> buffers() const {
    if (const Copy* c = copy()) return c->buffers;
    return kernel().buffers;
  }
};

struct Program {
  std::vector<Place> places;  // the first is on the host, where inputs and outputs are
  std::vector<IoSpec> inputs;
  std::vector<IoSpec> outputs;
  std::vector<StateSpec> states = {};
  std::vector<Parameter> parameters;
  std::vector<Step> steps;
  int64_t arena_bytes = 0;    // temporaries and workspaces, 64-byte aligned offsets
  int64_t scratch_bytes = 0;  // per thread, the largest any step needs
};

// Per parameter: whether steps copy it to where kernels read it, so that it may stay in a file.
// Requires a program that passed check_program.
std::vector<bool> streamed_parameters(const Program& program);

// The bytes of host memory that a run's copies name as its shelf; 0: none do. Requires a program
// that passed check_program.
int64_t shelf_bytes(const Program& program);

// How many bytes a reference to an existing buffer reaches; scratch: as many as a thread has.
int64_t bytes_behind(const Program& program, const BufferRef& ref);

// Refuses, with kInternal and the step's name, a program that cannot be run: a reference to a
// buffer or place that does not exist, a kernel without code, a copy beyond its buffers, sizes that
// contradict shapes.
Status check_program(const Program& program);

}  // namespace pyc::runtime
