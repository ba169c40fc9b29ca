#pragma once

// The executor of open graphs. A run holds a frame (frame.h). At each turn it takes the program for
// the frame's signature: code for all that can be closed now (open/), then host functions
// whose inputs are there. A program is made when its signature is met first, outside of any lock,
// or ahead of all runs (`foresee`), and kept; what follows it is again chosen by signature, so the
// partition of a graph is a function of types and of the contents that entered.

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/dyn_value.h"
#include "exec/frame.h"
#include "exec/growing_log.h"
#include "exec/memory_account.h"
#include "open/open_graph.h"
#include "open/segment.h"
#include "runtime/model.h"

namespace pyc::exec {

struct Stage;
struct StageProgram;

// By node of a graph. Nodes that only wait for others are no breaks.
using Breaks = std::map<uint32_t, open::Break>;

// What became of a closed graph.
struct SegmentCode {
  std::unique_ptr<runtime::Model> model;  // null: made for another machine, cannot run here
  std::vector<runtime::IoSpec> outputs;
  bool compiled = true;   // false: it was there already
  bool shared = false;    // no code was generated for it: other programs have it too
  int64_t generated = 0;  // kernels that code was generated for
};

struct ExecutorOptions {
  const ir::OpSet* ops = nullptr;
  open::Evaluate evaluate;
  // The plan's peak may be `memory_budget` bytes; 0: no limit. kBudgetExceeded, before any memory
  // of the program is there, when it is more.
  using Compile = std::function<Result<SegmentCode>(ir::Graph, int64_t memory_budget)>;
  Compile compile;
  Compile interpret;          // without generating code, with the same bits in strict and balanced
  bool keep_text = false;     // of the graphs that became code, for print()
  int64_t loop_limit = 0;     // regions that one run may enter
  int64_t value_limit = 0;    // bytes that the values of one run may hold
  int64_t memory_budget = 0;  // bytes of all that runs and kept programs hold; 0: no limit
};

struct ExecutorStats {
  int64_t segments_run = 0;
  int64_t segments_compiled = 0;
  int64_t generated_kernels = 0;  // of their kernels: those that code was generated for
  int64_t host_calls = 0;
  int64_t fallbacks = 0;  // of those: of ops that become code where their inputs allow it
  int64_t compile_ns = 0;
  int64_t run_ns = 0;                      // of the programs' runs
  runtime::CompileBreakdown compile = {};  // the sum over all compiled programs
  int64_t made = 0;                        // how often something new was closed, compiled or not
};

class Executor {
 public:
  // Programs kept per stage; the one unused longest goes first. Those that share all their code
  // take little beside the memory of their runs: of them more are kept, as long as that of all kept
  // ones is within kSharedBytes. After kStormLimit compiles of one stage that generated code,
  // further ones may take as much time as its runs do; signatures that get no code are interpreted,
  // with the same bits in strict and balanced.
  static constexpr size_t kMaxPrograms = 32;
  static constexpr size_t kMaxShared = 1024;
  static constexpr int64_t kSharedBytes = int64_t{256} << 20;
  static constexpr int64_t kStormLimit = 64;

  // `graph` and `log` outlive this.
  Executor(const open::OpenGraph& graph, ExecutorOptions options, GrowingLog& log);
  ~Executor();

  // Any number of threads may call it at the same time; one waits for another's compile only when
  // it needs the same program. Inputs fit what the graph declares.
  Result<std::vector<DynValue>> run(std::vector<DynValue> inputs, runtime::RunStats& measured);

  // Makes the programs that runs with inputs of these types (Frame::is_type) will take, as far as
  // types tell: through If, Loop and Scan, on both sides where a condition decides. Returns whether
  // that is all of them; what is missing is compiled when a run needs it. Refuses what any run
  // would be refused for.
  Result<bool> foresee(std::vector<DynValue> types);

  ExecutorStats stats() const;
  int64_t made() const;  // as in the statistics
  // Of the graph itself, as found by the runs so far.
  Breaks breaks() const;
  // The sum over all programs that are kept; the peak is the most that they and a run's inputs and
  // values took at a time.
  runtime::MemoryReport memory() const;
  // Counts a program that is kept elsewhere.
  void hold(int64_t bytes) { held_.emplace_back(account_, bytes); }
  // All programs that are kept, oldest first: what each was made for, its code, what the host does
  // next and what follows.
  std::string print() const;

 private:
  struct Run;
  // A graph that runs: the model's, a region of it, or a node of it as a graph of its own.
  struct Root {
    explicit Root(const open::OpenGraph& graph);
    ~Root();
    const GraphTable table;
    std::unique_ptr<Stage> stage;
  };

  Result<std::vector<DynValue>> run_graph(const open::OpenGraph& g, std::vector<DynValue> inputs,
                                          std::span<const DynValue> captured, Run run);
  // `run`: null ahead of all runs.
  Result<std::shared_ptr<StageProgram>> find_program(Stage& stage, const Frame& frame,
                                                     const Run* run);
  Result<std::shared_ptr<StageProgram>> await(std::shared_ptr<StageProgram> program,
                                              std::unique_lock<std::mutex>& lock);
  std::shared_ptr<StageProgram> find_usable(Stage& stage, const Signature& types,
                                            const Frame& frame);
  Result<SegmentCode> make_code(StageProgram& program, const Frame& frame, const Run* run);
  Status compile_program(Stage& stage, StageProgram& program, const Frame& frame, const Run* run);
  bool drop_oldest();
  Status make_room(Stage& stage, const std::shared_ptr<StageProgram>& program, const Frame& frame,
                   const Run& run);
  void note_breaks(const open::OpenGraph& graph, const open::Segment& segment);
  Status run_segment(Stage& stage, const StageProgram& program, Frame& frame, Run& run);
  Status run_host_node(uint32_t n, Frame& frame, Run& run);
  Result<bool> run_host_nodes(const StageProgram& program, Frame& frame, Run& run);
  struct Outlook;
  Result<std::vector<DynValue>> foresee_graph(const open::OpenGraph& g,
                                              std::vector<DynValue> inputs,
                                              std::span<const DynValue> captured, Outlook& outlook,
                                              int depth);
  Result<std::vector<DynValue>> foresee_from(Stage& stage, Frame frame, Outlook& outlook,
                                             int depth);
  Result<std::vector<DynValue>> foresee_both(Stage& stage, const Frame& frame, OpenId deciding,
                                             Outlook& outlook, int depth);
  Result<bool> foresee_host_nodes(const StageProgram& program, Frame& frame, Outlook& outlook,
                                  int depth);
  void print_graph(const open::OpenGraph& g, size_t depth, std::string& out) const;
  void print_stage(const open::OpenGraph& g, const Stage& stage, size_t depth,
                   std::string& out) const;
  Root& root_of(const open::OpenGraph& g);
  const open::OpenGraph& graph_of(const open::OpenNode& node);

  const open::OpenGraph& graph_;
  const ExecutorOptions options_;
  GrowingLog& log_;
  const std::shared_ptr<MemoryAccount> account_;
  std::list<MemoryAccount::Held> held_;
  mutable std::mutex mutex_;      // guards everything below; never held while compiling
  std::condition_variable made_;  // a program got ready or failed
  std::map<const open::OpenGraph*, std::unique_ptr<Root>> roots_;
  std::map<const open::OpenNode*, std::unique_ptr<open::OpenGraph>> alone_;  // nodes as graphs
  ExecutorStats stats_;
  Breaks breaks_;
  int64_t clock_ = 0;  // counts looks at programs, so that the oldest is known
};

// That the graph cannot go on, with the first node that waits.
Status stuck(const open::OpenGraph& graph, const open::Segment& segment);

}  // namespace pyc::exec
