#include "exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/value_meter.h"
#include "exec/host_call.h"
#include "exec/run_values.h"
#include "exec/stage.h"

namespace pyc::exec {

using open::BreakReason;
using open::OpenGraph;
using open::Segment;

namespace {

constexpr int kMaxDepth = 64;  // of regions inside regions

Status takes_no_complex(const DynValue& found) {
  return {Code::kUnsupported,
          fmt::format("expected real numbers, found {}: complex ones are moved about, and nothing "
                      "is computed with them",
                      found.to_string())};
}

// A refusal that is about this node.
Status at_node(Status status, const open::OpenNode& node) {
  return std::move(status)
      .with_context(fmt::format("{} '{}'", node.op->name, node.name))
      .with_node(node.name);
}

// The node that messages about the segment name.
const open::OpenNode& first_node(const OpenGraph& graph, const Segment& segment) {
  const auto n = segment.closed.empty() ? segment.breaks.front().node : segment.closed.front();
  return graph.nodes[n];
}

int64_t bytes_of(const DynValue& value) {
  auto bytes = static_cast<int64_t>(value.bytes.size());
  if (value.strings != nullptr) {
    for (const std::string& s : *value.strings) {
      bytes += static_cast<int64_t>(sizeof(std::string) + s.size());
    }
  }
  if (value.items != nullptr) {
    for (const DynValue& item : *value.items) {
      bytes += static_cast<int64_t>(sizeof(item)) + bytes_of(item);
    }
  }
  return bytes;
}

// What the values take that were computed when the segment was closed and are no constants of the
// graph.
int64_t folded_bytes(const Segment& segment, const Frame& frame) {
  if (segment.constants.empty()) return 0;
  std::set<const std::byte*> known;
  for (const std::optional<DynValue>& value : frame.state().values) {
    if (value) known.insert(value->bytes.data());
  }
  int64_t bytes = 0;
  for (const auto& [v, constant] : segment.constants) {
    if (known.insert(constant.bytes.data()).second) bytes += handed_out(bytes_of(constant));
  }
  return bytes;
}

Decision storm(const Stage& stage) {
  return {.what = "respecialize",
          .chosen = "interpret",
          .reason = "storm",
          .detail = fmt::format("{} signatures of one stage; compiling took {} ns since the limit, "
                                "running {} ns",
                                stage.compiled, stage.storm_ns, stage.run_ns),
          .alternatives = {}};
}

// Room for all that a segment gives, before it runs. The node that gives the first value too many
// is named.
Status check_results(const OpenGraph& graph, std::span<const OpenId> ids,
                     std::span<const runtime::IoSpec> specs) {
  int64_t bytes = 0;
  int64_t taken = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    bytes += specs[i].bytes;
    taken += handed_out(specs[i].bytes);
    Status room = check_room(bytes, taken);
    if (room.ok()) continue;
    const auto gives = [&](const open::OpenNode& node) {
      return std::find(node.outputs.begin(), node.outputs.end(), ids[i]) != node.outputs.end();
    };
    const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(), gives);
    return node == graph.nodes.end() ? room : at_node(std::move(room), *node);
  }
  return {};
}

}  // namespace

// One run of the model, as the graphs inside of it see it.
struct Executor::Run {
  runtime::RunStats& measured;
  const ValueMeter& meter;
  int64_t& regions;  // how many were entered so far
  int depth = 0;
};

Executor::Root::Root(const OpenGraph& graph) : table(graph), stage(std::make_unique<Stage>()) {}
Executor::Root::~Root() = default;

Status stuck(const OpenGraph& graph, const Segment& segment) {
  const open::Break& first = segment.breaks.front();
  const open::OpenNode& node = graph.nodes[first.node];
  return {Code::kUnsupported, fmt::format("{} '{}' cannot run: {} {}", node.op->name, node.name,
                                          open::reason_name(first.reason), first.detail)};
}

Executor::Executor(const OpenGraph& graph, ExecutorOptions options, GrowingLog& log)
    : graph_(graph),
      options_(std::move(options)),
      log_(log),
      account_(std::make_shared<MemoryAccount>(options_.memory_budget)) {}
Executor::~Executor() = default;

Executor::Root& Executor::root_of(const OpenGraph& g) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<Root>& root = roots_[&g];
  if (root == nullptr) root = std::make_unique<Root>(g);
  return *root;
}

const OpenGraph& Executor::graph_of(const open::OpenNode& node) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<OpenGraph>& graph = alone_[&node];
  if (graph == nullptr) graph = std::make_unique<OpenGraph>(graph_of_node(node));
  return *graph;
}

// Nodes that only wait for others are consequences, not breaks.
void Executor::note_breaks(const OpenGraph& graph, const Segment& segment) {
  for (const open::Break& b : segment.breaks) {
    if (b.reason == BreakReason::kWaitsForNode) continue;
    if (&graph == &graph_) breaks_.insert_or_assign(b.node, b);
    const open::OpenNode& node = graph.nodes[b.node];
    log_.add({.what = "graph_break",
              .chosen = fmt::format("{} '{}'", node.op->name, node.name),
              .reason = std::string(open::reason_name(b.reason)),
              .detail = b.detail,
              .alternatives = {}});
  }
}

// Without the lock: nobody else touches a program in the making. A program gets the memory that the
// run and all kept programs leave of the budget; where that is not enough, kept programs go first,
// the oldest before others.
Result<SegmentCode> Executor::make_code(StageProgram& program, const Frame& frame, const Run* run) {
  ir::Graph graph = std::move(program.segment.graph);
  const auto& make = program.interpreted ? options_.interpret : options_.compile;
  if (account_->budget() == 0) return make(std::move(graph), 0);
  const int64_t held = run == nullptr ? 0 : run->meter.own();
  // The plan has the segment's inputs, which the run holds, and what its results are without what
  // the allocator adds.
  int64_t beside = held;
  for (const OpenId v : program.segment.inputs) beside -= bytes_of(*frame.find(v));
  for (const ir::ValueId v : graph.outputs) {
    const int64_t bytes = graph.type(v).bytes();
    beside += handed_out(bytes) - bytes;
  }
  for (;;) {
    const int64_t programs = account_->programs();
    auto code = make(graph, std::max<int64_t>(account_->budget() - programs - beside, 1));
    if (code.status().code() != Code::kBudgetExceeded) return code;
    {
      const std::scoped_lock lock(mutex_);
      if (drop_oldest()) continue;
    }
    Status refused = std::move(code).status();
    if (programs + held == 0) return refused;
    return std::move(refused).with_context(
        fmt::format("programs hold {} bytes, inputs and values {}, the memory budget is {}",
                    programs, held, account_->budget()));
  }
}

Status Executor::compile_program(Stage& stage, StageProgram& program, const Frame& frame,
                                 const Run* run) {
  const int64_t start = now_ns();
  const OpenGraph& graph = frame.graph();
  Segment& segment = program.segment;
  if (!segment.outputs.empty()) {
    if (options_.keep_text) program.text = ir::print(segment.graph);
    auto code = make_code(program, frame, run);
    if (code.status().code() == Code::kBudgetExceeded) {
      return at_node(std::move(code).status(), first_node(graph, segment));
    }
    PYC_ASSIGN(program.code, std::move(code));
    if (program.code.model != nullptr) log_.add(program.code.model->decisions());
  }
  segment.graph = {};
  program.next = std::make_unique<Stage>();
  int64_t bytes = program.code.model == nullptr ? 0 : own_bytes(*program.code.model);
  for (const auto& [v, content] : program.pinned) bytes += bytes_of(content);
  bytes += folded_bytes(segment, frame);
  program.held.emplace(account_, bytes);
  const std::scoped_lock lock(mutex_);
  if (!segment.outputs.empty() && program.code.compiled) ++stats_.segments_compiled;
  stats_.generated_kernels += program.code.generated;
  if (program.code.model != nullptr) stats_.compile += program.code.model->stats().compile;
  note_breaks(graph, segment);
  const bool cheap = program.interpreted || program.code.shared;
  if (!cheap && ++stage.compiled > kStormLimit) stage.storm_ns += now_ns() - start;
  ++stats_.made;
  return {};
}

// Under the lock. The program for this frame; null: there is none, or none with code where that may
// be made.
std::shared_ptr<StageProgram> Executor::find_usable(Stage& stage, const Signature& types,
                                                    const Frame& frame) {
  std::shared_ptr<StageProgram> found = stage.find(types, frame);
  if (found == nullptr) return nullptr;
  const bool ready = found->condition == StageProgram::Condition::kReady;
  if (ready && found->interpreted && stage.may_compile()) {
    stage.remove(found);
    return nullptr;
  }
  found->used = ++clock_;
  return found;
}

// The program once it is ready; its failure if it did not get so.
Result<std::shared_ptr<StageProgram>> Executor::await(std::shared_ptr<StageProgram> program,
                                                      std::unique_lock<std::mutex>& lock) {
  made_.wait(lock, [&] { return program->condition != StageProgram::Condition::kMaking; });
  if (program->condition == StageProgram::Condition::kFailed) return program->failure;
  return program;
}

// Closing tells which contents enter, and so which runs need the same program: a program is listed
// after closing, before compiling.
Result<std::shared_ptr<StageProgram>> Executor::find_program(Stage& stage, const Frame& frame,
                                                             const Run* run) {
  Signature signature = frame.signature();
  std::unique_lock lock(mutex_);
  if (auto known = find_usable(stage, signature, frame)) return await(std::move(known), lock);
  lock.unlock();

  const int64_t start = now_ns();
  const MeterScope unmetered(nullptr);  // what is made here is the model's
  auto program = std::make_shared<StageProgram>();
  PYC_ASSIGN(program->segment,
             open::close_segment(frame.state(), *options_.ops, options_.evaluate));
  for (const OpenId v : program->segment.specialized) {
    program->pinned.emplace_back(v, *frame.find(v));
  }
  program->signature = std::move(signature);

  lock.lock();
  if (auto other = find_usable(stage, program->signature, frame)) {
    return await(std::move(other), lock);
  }
  program->interpreted = !stage.may_compile();
  program->used = ++clock_;
  if (program->interpreted && !std::exchange(stage.told, true)) log_.add(storm(stage));
  stage.add(program);
  lock.unlock();

  program->failure = Status(Code::kOutOfMemory, "there was no memory to compile this segment");
  const auto settle = [&](StageProgram::Condition condition) {
    const std::scoped_lock settled(mutex_);
    stats_.compile_ns += now_ns() - start;
    program->condition = condition;
    if (condition == StageProgram::Condition::kFailed) stage.remove(program);
    made_.notify_all();
  };
  try {
    program->failure = compile_program(stage, *program, frame, run);
  } catch (...) {
    settle(StageProgram::Condition::kFailed);  // or others would wait for ever
    throw;
  }
  const bool ok = program->failure.ok();
  settle(ok ? StageProgram::Condition::kReady : StageProgram::Condition::kFailed);
  if (!ok) return program->failure;
  return program;
}

// Under the lock. Lets go of the program used longest ago that no run uses, and of none that others
// come after.
bool Executor::drop_oldest() {
  Stage* from = nullptr;
  std::shared_ptr<StageProgram> oldest;
  const std::function<void(Stage&)> visit = [&](Stage& stage) {
    for (const std::shared_ptr<StageProgram>& program : stage.programs()) {
      if (program->condition != StageProgram::Condition::kReady) continue;
      visit(*program->next);
      const bool last = program->next->programs().empty() && program.use_count() == 1;
      if (!last || (oldest != nullptr && oldest->used < program->used)) continue;
      from = &stage;
      oldest = program;
    }
  };
  for (const auto& [graph, root] : roots_) visit(*root->stage);
  if (oldest == nullptr) return false;
  log_.add({.what = "kept_program",
            .chosen = "dropped",
            .reason = "memory_budget",
            .detail = fmt::format("programs hold {} bytes", account_->programs()),
            .alternatives = {}});
  from->remove(oldest);
  return true;
}

// That the segment's run stays within the budget: kept programs go first, the oldest before others.
// A refused segment is not kept.
Status Executor::make_room(Stage& stage, const std::shared_ptr<StageProgram>& program,
                           const Frame& frame, const Run& run) {
  const std::scoped_lock lock(mutex_);
  const int64_t results = program->code.model == nullptr ? 0 : output_bytes(*program->code.model);
  const auto held = [&] { return account_->programs() + run.meter.own() + results; };
  while (!account_->fits(held())) {
    if (drop_oldest()) continue;
    stage.remove(program);
    return at_node(
        {Code::kBudgetExceeded,
         fmt::format("the segment that starts here needs {} bytes: programs hold {}, "
                     "inputs and values {}, its results take {}; the memory budget is {}",
                     held(), account_->programs(), held() - account_->programs() - results, results,
                     account_->budget())},
        first_node(frame.graph(), program->segment));
  }
  return {};
}

Status Executor::run_segment(Stage& stage, const StageProgram& program, Frame& frame, Run& run) {
  const Segment& segment = program.segment;
  if (!segment.outputs.empty()) {
    if (program.code.model == nullptr) {
      return {Code::kUnsupported, "the program was made for another machine"};
    }
    std::vector<const DynValue*> inputs;
    inputs.reserve(segment.inputs.size());
    for (const OpenId v : segment.inputs) inputs.push_back(frame.find(v));
    PYC_TRY(check_results(frame.graph(), segment.outputs, program.code.outputs));
    const int64_t start = now_ns();
    PYC_ASSIGN(std::vector<DynValue> results,
               run_values(*program.code.model, inputs, run.measured));
    const int64_t took = now_ns() - start;
    for (size_t i = 0; i < segment.outputs.size(); ++i) {
      frame.set(segment.outputs[i], std::move(results[i]));
    }
    const std::scoped_lock lock(mutex_);
    ++stats_.segments_run;
    stage.run_ns += took;
    stats_.run_ns += took;
  }
  for (const auto& [v, constant] : segment.constants) frame.set(v, constant, true);
  for (const auto& [v, same] : segment.aliases) frame.set(v, *frame.find(same));
  // Without a break the run is over, and nobody asks what is done.
  if (segment.breaks.empty()) return {};
  for (const uint32_t n : segment.closed) frame.finish(n);
  return {};
}

Status Executor::run_host_node(uint32_t n, Frame& frame, Run& run) {
  const open::OpenNode& node = frame.graph().nodes[n];
  const auto run_region = [&](const OpenGraph& region, std::vector<DynValue> inputs,
                              std::span<const DynValue> captured) {
    return run_graph(region, std::move(inputs), captured,
                     {run.measured, run.meter, run.regions, run.depth + 1});
  };
  NodeCall call(node, frame, run_region, [&]() -> const OpenGraph& { return graph_of(node); });
  const DynValue* const complex = complex_input(node, frame);
  if (complex != nullptr && node.op->complex == nullptr) return takes_no_complex(*complex);
  PYC_TRY(complex != nullptr ? node.op->complex(call) : node.op->host(call));
  PYC_TRY(check_room(0));
  // Values of a few bytes are made without asking.
  if (!account_->fits(run.meter.total_peak())) {
    return {Code::kBudgetExceeded, fmt::format("the run held {} bytes, the memory budget is {}",
                                               run.meter.total_peak(), account_->budget())};
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == open::kAbsentId) continue;
    if (!call.output(i)) {
      return {Code::kUnsupported, fmt::format("output {} cannot be given", i)};
    }
    frame.set(node.outputs[i], std::move(*call.output(i)));
  }
  frame.finish(n);
  const std::scoped_lock lock(mutex_);
  ++stats_.host_calls;
  if (node.op->close != nullptr) ++stats_.fallbacks;
  return {};
}

Result<bool> Executor::run_host_nodes(const StageProgram& program, Frame& frame, Run& run) {
  bool any = false;
  for (const open::Break& b : program.segment.breaks) {
    if (!runs_on_host(b, frame)) continue;
    Status status = run_host_node(b.node, frame, run);
    if (!status.ok()) return at_node(std::move(status), frame.graph().nodes[b.node]);
    any = true;
  }
  return any;
}

Result<std::vector<DynValue>> Executor::run_graph(const OpenGraph& g, std::vector<DynValue> inputs,
                                                  std::span<const DynValue> captured, Run run) {
  if (run.depth > kMaxDepth) {
    return Status(Code::kBudgetExceeded, fmt::format("regions nest deeper than {}", kMaxDepth));
  }
  if (run.depth > 0 && ++run.regions > options_.loop_limit) {
    return Status(Code::kBudgetExceeded,
                  fmt::format("the loops of one run go through more than {} iterations, the loop "
                              "limit of the model",
                              options_.loop_limit));
  }
  if (inputs.size() != g.inputs.size()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("expected {} inputs, found {}", g.inputs.size(), inputs.size()));
  }
  Root& root = root_of(g);
  Frame frame(root.table);
  frame.reserve(inputs.size() + captured.size() + g.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) frame.set(g.inputs[i], std::move(inputs[i]));
  for (size_t i = 0; i < captured.size(); ++i) frame.set(g.captures[i].inner, captured[i]);
  Stage* stage = root.stage.get();
  std::shared_ptr<StageProgram> last;
  std::vector<std::shared_ptr<StageProgram>> path;  // those before it; keeps the stages alive
  while (!frame.complete()) {
    PYC_ASSIGN(std::shared_ptr<StageProgram> program, find_program(*stage, frame, &run));
    PYC_TRY(make_room(*stage, program, frame, run));
    PYC_TRY(run_segment(*stage, *program, frame, run));
    PYC_ASSIGN(const bool ran, run_host_nodes(*program, frame, run));
    if (!ran && program->segment.closed.empty()) return stuck(g, program->segment);
    stage = program->next.get();
    if (last != nullptr) path.push_back(std::move(last));
    last = std::move(program);
  }
  std::vector<DynValue> outputs;
  outputs.reserve(g.outputs.size());
  for (size_t i = 0; i < g.outputs.size(); ++i) outputs.push_back(frame.give(i));
  return outputs;
}

Result<std::vector<DynValue>> Executor::run(std::vector<DynValue> inputs,
                                            runtime::RunStats& measured) {
  int64_t input_bytes = 0;
  for (const DynValue& input : inputs) input_bytes += bytes_of(input);
  const std::shared_ptr<ValueMeter> meter = account_->meter(options_.value_limit, input_bytes);
  const MeterScope scope(meter);
  int64_t regions = 0;
  auto outputs = run_graph(graph_, std::move(inputs), {}, {measured, *meter, regions});
  if (outputs.ok()) account_->note(meter->total_peak());
  measured.value_bytes = meter->live();
  measured.value_peak_bytes = meter->peak();
  return outputs;
}

ExecutorStats Executor::stats() const {
  const std::scoped_lock lock(mutex_);
  return stats_;
}

int64_t Executor::made() const {
  const std::scoped_lock lock(mutex_);
  return stats_.made;
}

Breaks Executor::breaks() const {
  const std::scoped_lock lock(mutex_);
  return breaks_;
}

runtime::MemoryReport Executor::memory() const {
  const std::scoped_lock lock(mutex_);
  runtime::MemoryReport sum;
  for (const auto& [graph, root] : roots_) root->stage->add_memory(sum);
  sum.peak_bytes = account_->peak();
  return sum;
}

}  // namespace pyc::exec
