#pragma once

// What a backend is: it proposes kernels for groups, compiles the chosen ones to objects, and loads
// objects. Adding a backend is a folder copied from null/ and a line in driver/devices.cpp.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/effort.h"
#include "base/status.h"
#include "base/target_info.h"
#include "base/trace.h"
#include "lower/types.h"
#include "runtime/engine.h"
#include "runtime/program.h"

namespace pyc::backends {

// What a backend keeps for all programs of one open graph, which are made for other sizes of the
// same; only it reads it. Threads share it.
struct CodeStore {
  virtual ~CodeStore() = default;
};

// Options that may change speed but never bits.
struct BackendOptions {
  int threads = 1;
  int lanes = 0;               // vector width in f32 lanes; 0: the target's own
  std::string target;          // what code is made for, by name; "": this machine
  CodeStore* store = nullptr;  // of the graph's other programs; null: the program stands alone
  Effort effort = Effort::kBalanced;
  bool least_memory = false;  // of two ways, the one with the smaller workspace
  TraceLog* trace = nullptr;  // where the kernels that are made are recorded; null: nowhere
  // Asked before each kernel is made; what it refuses ends the compile. Threads share it.
  std::function<Status()> before_kernel = {};
  // Told after each kernel that was made how many there are to make. Threads share it.
  std::function<void(int64_t all)> after_kernel = {};
};

struct Capabilities {
  // Rounds division, root and fma correctly and keeps subnormals. Else the determinism levels
  // strict and balanced are refused.
  bool ieee_floats = true;
  // The machines that its code can be made for, by name; none: its code is for any.
  std::vector<std::string_view> targets = {};
  // Whether its lanes keep a model's state (runtime/states.h) where its kernels write it.
  bool states = true;
  // Whether its engines run Copy steps of parameters into the arena (plan/stream.h).
  bool streams = true;
  // Whether its engines run Copy steps of the arena to the host and back (plan/offload.h).
  bool offloads = false;
  // Whether one product of many columns takes less time than several that share their rows.
  bool joined_products = false;
  // What dump has besides the stages that all backends share.
  std::vector<std::string_view> stages = {};
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
  int64_t offset = 0;             // kValue, kWorkspace: bytes into the value or the workspace
  uint32_t packed = 0;            // kPacked: index into CompiledGroup::packed
};

struct CompiledStep {
  std::string symbol;                         // its name in the object
  std::shared_ptr<const std::string> object;  // for the backend's loader; may be shared
  std::string launch;                         // bytes that the loader's engine starts it with
  std::vector<Operand> operands;
  bool prepares = false;  // packs an operand for a later step, which has the group's arithmetic
  // In the object, a function that does the same from the last point to the first; "": there is
  // none. Every second of the steps that read one packed constant takes it, and so begins with what
  // the step before left of that constant in the cache.
  std::string backwards = {};
};

struct CompiledGroup {
  std::vector<CompiledStep> steps;         // run in order
  std::vector<runtime::Parameter> packed;  // one per KernelNeeds::packed, in that order
};

struct CompileStats {
  int64_t kernels = 0;     // asked for
  int64_t distinct = 0;    // compiled after deduplication
  int64_t generated = 0;   // of those: not found in the store
  int64_t slowest_ns = 0;  // processor time of the kernel that took longest
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual Capabilities capabilities() const = 0;
  // What it knows of its kernels, for the choice of layouts; by default nothing.
  virtual lower::LayoutFacts layout_facts(const BackendOptions&) const { return {}; }
  // Which of its targets this machine is, the widest; "" when it is none of them.
  virtual std::string native_target() const { return ""; }
  // What it found on this machine of all that it needs, in a line for people; "": it needs nothing.
  virtual std::string found_here() const { return ""; }
  // The device kind whose matrix unit (base/matrix_unit.h) sums products at the level balanced, by
  // what code is made for and never by what is here; "": none. It then has a candidate of that
  // order for every group that has it.
  virtual Result<std::string_view> matrix_unit(const BackendOptions&) const {
    return std::string_view();
  }
  // At least one candidate for every group is applicable: the generic one.
  virtual std::vector<Candidate> candidates(const ir::Graph& graph, const lower::Group& group,
                                            const BackendOptions& options) const = 0;
  // Compiles group i as chosen[i], one of its candidates; equal kernels are compiled once.
  virtual Result<std::vector<CompiledGroup>> compile(const lower::LoweredGraph& lowered,
                                                     std::span<const Candidate> chosen,
                                                     const BackendOptions& options,
                                                     CompileStats* stats) const = 0;
  // A store for the programs of one open graph, or null if it keeps nothing.
  virtual std::shared_ptr<CodeStore> make_store() const { return nullptr; }
  // Makes the objects of its steps callable, compiled now or read from a file; alive for the whole
  // process. It needs nothing that only compiling needs.
  virtual const runtime::Loader& loader() const = 0;
  // Text of a group's code after the given stage ("llvm", "asm"); kUnsupported if there is none.
  virtual Result<std::string> dump(const lower::LoweredGraph& lowered, size_t group,
                                   const Candidate& chosen, const BackendOptions& options,
                                   std::string_view stage) const = 0;
};

}  // namespace pyc::backends
