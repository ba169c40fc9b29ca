#pragma once

// What a backend is: it proposes kernels for groups and compiles the chosen ones. Adding a backend
// is a folder copied from null/ and a line in driver/devices.cpp.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/target_info.h"
#include "lower/types.h"
#include "runtime/program.h"

namespace pyc::backends {

// Options that may change speed but never bits.
struct BackendOptions {
  int threads = 1;
  int lanes = 0;  // vector width in f32 lanes; 0: the target's own
  // What code is made for, by name; "": this machine. Code for another machine is emitted, not
  // loaded: steps then have no function.
  std::string target;
};

struct Capabilities {
  bool runs = true;    // false: compiles only, models cannot be made for it
  bool strict = true;  // keeps the strict determinism level; else that level is refused
  bool ahead = false;  // makes objects for a named target
};

// What a candidate would be made by, decided when it was offered; only its backend reads it.
struct KernelPlan {
  virtual ~KernelPlan() = default;
};

// One way to compute a group. If it is not applicable, `rejected` says why and the rest is void.
struct Candidate {
  std::string name;  // states itself: "f32_matmul__8x8", "loop_generic__4"
  std::string rejected;
  double cost_ns = 0.0;  // estimated for one run with all threads
  lower::KernelNeeds needs;
  // The order of its products (docs/NUMERICS.md, matrix units): that of its group, or it may be
  // chosen at the level `fast` alone.
  std::string order = std::string(lower::kCanonicalOrder);
  std::shared_ptr<const KernelPlan> plan;
};

// What a compiled step's buffer is. The driver turns it into a place with the help of the plan.
struct Operand {
  enum class Kind : uint8_t { kValue, kWorkspace, kPacked, kScratch };
  Kind kind = Kind::kValue;
  ir::ValueId value = ir::kNoId;  // kValue
  int64_t offset = 0;             // kWorkspace: bytes into the group's workspace
  uint32_t packed = 0;            // kPacked: index into CompiledGroup::packed
};

struct CompiledStep {
  pyc_kernel_fn fn = nullptr;
  std::string symbol;  // its name in the group's object, if there is one
  const void* self = nullptr;
  std::vector<Operand> operands;
  int64_t parallel = 1;
};

struct CompiledGroup {
  std::vector<CompiledStep> steps;            // run in order
  std::shared_ptr<const std::string> object;  // machine code for a foreign target; may be shared
  std::vector<runtime::Parameter> packed;     // one per KernelNeeds::packed, in that order
  std::vector<std::shared_ptr<const void>> owners;
};

struct CompileStats {
  int64_t kernels = 0;     // asked for
  int64_t distinct = 0;    // compiled after deduplication
  int64_t slowest_ns = 0;  // processor time of the kernel that took longest
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual Capabilities capabilities() const = 0;
  // At least one candidate for every group is applicable: the generic one.
  virtual std::vector<Candidate> candidates(const ir::Graph& graph, const lower::Group& group,
                                            const BackendOptions& options) const = 0;
  // Compiles group i as chosen[i], one of its candidates; equal kernels are compiled once.
  virtual Result<std::vector<CompiledGroup>> compile(const lower::LoweredGraph& lowered,
                                                     std::span<const Candidate> chosen,
                                                     const BackendOptions& options,
                                                     CompileStats* stats) const = 0;
  // Text of a group's code after the given stage ("llvm", "asm"); kUnsupported if there is none.
  virtual Result<std::string> dump(const lower::LoweredGraph& lowered, size_t group,
                                   const Candidate& chosen, const BackendOptions& options,
                                   std::string_view stage) const = 0;
};

}  // namespace pyc::backends
