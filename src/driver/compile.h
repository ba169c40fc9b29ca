#pragma once

// From a graph to a model that runs: the only place that knows the order of the stages.

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "runtime/model.h"

namespace pyc::driver {

enum class Determinism : uint8_t { kStrict, kBalanced, kFast };
// "strict", "balanced", "fast".
std::string_view determinism_name(Determinism level);

struct CompileOptions {
  std::string device = "cpu";  // cpu, reference, null
  Determinism determinism = Determinism::kBalanced;
  int threads = 0;  // 0: one per core
  int lanes = 0;    // vector width of generated code in f32 lanes; 0: the CPU's own
  // Machine to make code for: aarch64_neon, x86_avx2, x86_avx512; "": this CPU. compile takes
  // only the latter.
  std::string target = {};
  int64_t memory_budget = -1;             // bytes for everything a run needs; -1: none
  std::vector<std::string> kernels = {};  // candidates to leave out, by name or family
  // Passes to leave out, by name. Leaving out a value-changing one changes bits, others do not.
  std::vector<std::string> passes_off = {};
  bool fuse = true;   // off: one group per node
  bool reuse = true;  // off: no two buffers share memory
  bool cache = true;  // look in the in-memory compile cache
  // Folder of a cache of artefacts on disk; "": what PYC_CACHE_DIR names, or none. Code from it is
  // for the named target that this machine is.
  std::string cache_dir = {};
  // Iterations that all loops of one run on the host may take together.
  int64_t loop_limit = kDefaultLoopLimit;
  // Bytes that the values one run makes between its programs may hold (base/value_meter.h); the
  // memory budget when that is less. 0: default_value_limit().
  int64_t value_limit = 0;

  static constexpr int64_t kDefaultLoopLimit = int64_t{1} << 24;
};

// What a compile produced, before it became a model.
struct Compiled {
  std::shared_ptr<const runtime::Program> program;
  DecisionLog log;
  runtime::MemoryReport memory;
  runtime::CompileBreakdown times = {};
};

// A graph from text IR over all of PyC's ops.
Result<ir::Graph> parse_model(std::string_view text);

// Refuses with the code and message of the stage that cannot go on.
Result<std::unique_ptr<runtime::Model>> compile(ir::Graph graph, const CompileOptions& options);

// The program for the machine options.target: its steps name functions in relocatable objects
// instead of pointing to them.
Result<Compiled> compile_ahead(ir::Graph graph, const CompileOptions& options);

// The options' thread count, with one per core for 0.
int thread_count(const CompileOptions& options);

// The text of every stage of a compile, for `pyc dump` and docs/ARCHITECTURE.md.
// stage: graph, passes, groups, loop, plan, llvm, asm.
Result<std::string> dump(ir::Graph graph, const CompileOptions& options, std::string_view stage);

}  // namespace pyc::driver
