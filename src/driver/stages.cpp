#include "driver/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "base/clock.h"
#include "base/value_meter.h"
#include "driver/host_call.h"
#include "driver/run_values.h"
#include "driver/session.h"
#include "ops/registry.h"

namespace pyc::driver {

using ir::OpenGraph;
using ir::OpenId;
using specialize::BreakReason;
using specialize::Segment;
using specialize::State;

namespace {

constexpr int kMaxDepth = 64;  // of regions inside regions

bool same_content(const DynValue& a, const DynValue& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
}

// The types of everything that is there and not constant. Closing looks at tensors only: of other
// values it is enough what they are.
std::string signature_of(const State& state) {
  std::string text;
  for (OpenId v = 0; v < state.values.size(); ++v) {
    if (!state.values[v] || state.constant[v]) continue;
    const DynValue& value = *state.values[v];
    text += fmt::format("{}:{};", v, value.is_tensor() ? value.to_string() : "-");
  }
  return text;
}

bool reads_present(const ir::OpenNode& node, const State& state) {
  const std::vector<OpenId> reads = ir::reads_of(node);
  return std::all_of(reads.begin(), reads.end(),
                     [&](OpenId v) { return state.values[v].has_value(); });
}

// The first complex tensor among the node's inputs, all of which are there; null: none.
const DynValue* complex_input(const ir::OpenNode& node, const State& state) {
  for (const OpenId v : node.inputs) {
    if (v == ir::kAbsentId) continue;
    const DynValue& value = *state.values[v];
    if (value.is_tensor() && is_complex(value.dtype)) return &value;
  }
  return nullptr;
}

Status takes_no_complex(const DynValue& found) {
  return {Code::kUnsupported,
          fmt::format("expected real numbers, found {}: complex ones are moved about, and nothing "
                      "is computed with them",
                      found.to_string())};
}

// Whether a node that waits is closed once what it waits for is there. The host is for nodes that
// closing left to it, for other values than tensors, and for regions, which run as they are.
bool closes_later(const ir::OpenNode& node, BreakReason why, const State& state) {
  const bool waits = why == BreakReason::kWaitsForValue || why == BreakReason::kWaitsForNode;
  if (!waits || node.op->close == nullptr || !ir::regions_of(node).empty()) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](OpenId v) { return v == ir::kAbsentId || state.values[v]->is_tensor(); });
}

// What values may hold: what was asked for, and no more than the whole run may.
std::shared_ptr<ValueMeter> meter_of(const CompileOptions& options) {
  const int64_t limit = options.value_limit > 0 ? options.value_limit : default_value_limit();
  if (options.memory_budget > 0 && options.memory_budget < limit) {
    return std::make_shared<ValueMeter>(options.memory_budget, "the memory budget");
  }
  return std::make_shared<ValueMeter>(limit, "the value limit");
}

// A refusal that is about this node.
Status at_node(Status status, const ir::OpenNode& node) {
  return std::move(status)
      .with_context(fmt::format("{} '{}'", node.op->name, node.name))
      .with_node(node.name);
}

// Room for all that a segment gives, before it runs. The node that gives the first value too many
// is named.
Status check_results(const OpenGraph& graph, std::span<const OpenId> ids,
                     std::span<const runtime::IoSpec> specs) {
  int64_t bytes = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    bytes += specs[i].bytes;
    Status room = check_room(bytes);
    if (room.ok()) continue;
    const auto gives = [&](const ir::OpenNode& node) {
      return std::find(node.outputs.begin(), node.outputs.end(), ids[i]) != node.outputs.end();
    };
    const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(), gives);
    return node == graph.nodes.end() ? room : at_node(std::move(room), *node);
  }
  return {};
}

// Lets go of values that nothing reads any more.
void drop_unneeded(State& state) {
  const OpenGraph& graph = *state.graph;
  std::vector<bool> needed(state.values.size());
  for (const OpenId v : graph.outputs) needed[v] = true;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (state.done[n]) continue;
    for (const OpenId v : ir::reads_of(graph.nodes[n])) needed[v] = true;
  }
  for (OpenId v = 0; v < needed.size(); ++v) {
    if (!needed[v] && !state.constant[v]) state.values[v].reset();
  }
}

bool complete(const State& state) {
  return std::all_of(state.graph->outputs.begin(), state.graph->outputs.end(),
                     [&](OpenId v) { return state.values[v].has_value(); });
}

}  // namespace

// What a stage does for one signature.
struct Stages::Entry {
  std::string signature;  // the types it was made for
  Segment segment;
  std::unique_ptr<runtime::Model> model;            // null: nothing to compute
  std::vector<std::pair<OpenId, DynValue>> pinned;  // contents that entered the graph
  std::unique_ptr<Stage> next;
};

struct Stages::Stage {
  std::list<std::shared_ptr<Entry>> entries;  // the one used last first
  int64_t compiled = 0;

  void add_memory(runtime::MemoryReport& sum) const {
    for (const auto& entry : entries) {
      if (entry->model != nullptr) add_report(entry->model->memory(), sum);
      entry->next->add_memory(sum);
    }
  }
  static void add_report(const runtime::MemoryReport& one, runtime::MemoryReport& sum) {
    for (size_t i = 0; i < one.class_bytes.size(); ++i) sum.class_bytes[i] += one.class_bytes[i];
    sum.arena_bytes += one.arena_bytes;
    sum.scratch_bytes += one.scratch_bytes;
    sum.peak_bytes += one.peak_bytes;
    sum.measured_arena_bytes += one.measured_arena_bytes;
    sum.staging_bytes += one.staging_bytes;
  }
};

// One run of the model, as the graphs inside of it see it.
struct Stages::Run {
  runtime::RunStats& measured;
  int64_t& regions;  // how many were run so far
  int depth = 0;
};

Status stuck(const OpenGraph& graph, const Segment& segment) {
  const specialize::Break& first = segment.breaks.front();
  const ir::OpenNode& node = graph.nodes[first.node];
  return {Code::kUnsupported, fmt::format("{} '{}' cannot run: {} {}", node.op->name, node.name,
                                          specialize::reason_name(first.reason), first.detail)};
}

Stages::Stages(const OpenGraph& graph, CompileOptions options, GrowingLog& log)
    : graph_(graph), options_(std::move(options)), log_(log) {}
Stages::~Stages() = default;

Stages::Stage& Stages::root_of(const OpenGraph& g) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<Stage>& root = roots_[&g];
  if (root == nullptr) root = std::make_unique<Stage>();
  return *root;
}

const OpenGraph& Stages::graph_of(const ir::OpenNode& node) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<OpenGraph>& graph = alone_[&node];
  if (graph == nullptr) graph = std::make_unique<OpenGraph>(graph_of_node(node));
  return *graph;
}

// Nodes that only wait for others are consequences, not breaks.
void Stages::note_breaks(const State& state, const Segment& segment) {
  for (const specialize::Break& b : segment.breaks) {
    if (b.reason == BreakReason::kWaitsForNode) continue;
    if (state.graph == &graph_) breaks_.insert_or_assign(b.node, b);
    const ir::OpenNode& node = state.graph->nodes[b.node];
    log_.add({.what = "graph_break",
              .chosen = fmt::format("{} '{}'", node.op->name, node.name),
              .reason = std::string(specialize::reason_name(b.reason)),
              .detail = b.detail,
              .alternatives = {}});
  }
}

Result<std::shared_ptr<Stages::Entry>> Stages::make_entry(Stage& stage, const State& state) {
  const int64_t start = now_ns();
  const MeterScope unmetered(nullptr);  // what is made here is the model's
  auto entry = std::make_shared<Entry>();
  PYC_ASSIGN(entry->segment, specialize::close_segment(state, ops::all_ops(), evaluate));
  Segment& segment = entry->segment;
  for (const OpenId v : segment.specialized) entry->pinned.emplace_back(v, *state.values[v]);
  if (!segment.outputs.empty()) {
    CompileOptions o = options_;
    o.cache = false;  // entries are the cache, and hashing weights takes time
    PYC_ASSIGN(entry->model, compile(std::move(segment.graph), o));
    ++stats_.segments_compiled;
    log_.add(entry->model->decisions());
  }
  segment.graph = {};
  entry->next = std::make_unique<Stage>();
  note_breaks(state, segment);
  if (++stage.compiled == Session::kStormLimit) {
    log_.add({.what = "respecialize",
              .chosen = "go_on",
              .reason = "storm",
              .detail = fmt::format("{} signatures of one stage", stage.compiled),
              .alternatives = {}});
  }
  ++stats_.made;
  stats_.compile_ns += now_ns() - start;
  return entry;
}

Result<std::shared_ptr<Stages::Entry>> Stages::find_entry(Stage& stage, const State& state) {
  const std::scoped_lock lock(mutex_);
  const std::string signature = signature_of(state);
  const auto fits = [&](const std::shared_ptr<Entry>& entry) {
    return entry->signature == signature &&
           std::all_of(entry->pinned.begin(), entry->pinned.end(), [&](const auto& pin) {
             return same_content(pin.second, *state.values[pin.first]);
           });
  };
  const auto it = std::find_if(stage.entries.begin(), stage.entries.end(), fits);
  if (it != stage.entries.end()) {
    stage.entries.splice(stage.entries.begin(), stage.entries, it);
    return stage.entries.front();
  }
  PYC_ASSIGN(std::shared_ptr<Entry> entry, make_entry(stage, state));
  entry->signature = signature;
  stage.entries.push_front(entry);
  if (stage.entries.size() > Session::kMaxPrograms) stage.entries.pop_back();
  return entry;
}

Status Stages::run_segment(const Entry& entry, State& state, Run& run) {
  const Segment& segment = entry.segment;
  if (entry.model != nullptr) {
    std::vector<DynValue> inputs;
    for (const OpenId v : segment.inputs) inputs.push_back(*state.values[v]);
    PYC_TRY(check_results(*state.graph, segment.outputs, entry.model->outputs()));
    PYC_ASSIGN(std::vector<DynValue> results,
               run_values(*entry.model, std::move(inputs), run.measured));
    for (size_t i = 0; i < segment.outputs.size(); ++i) {
      state.values[segment.outputs[i]] = std::move(results[i]);
    }
    const std::scoped_lock lock(mutex_);
    ++stats_.segments_run;
  }
  for (const auto& [v, constant] : segment.constants) {
    state.values[v] = constant;
    state.constant[v] = true;
  }
  for (const auto& [v, same] : segment.aliases) state.values[v] = state.values[same];
  for (const uint32_t n : segment.closed) state.done[n] = true;
  return {};
}

Status Stages::run_host_node(uint32_t n, State& state, Run& run) {
  const ir::OpenNode& node = state.graph->nodes[n];
  const auto run_region = [&](const OpenGraph& region, std::vector<DynValue> inputs,
                              std::span<const DynValue> captured) {
    return run_graph(region, std::move(inputs), captured,
                     {run.measured, run.regions, run.depth + 1});
  };
  NodeCall call(node, state, run_region, [&]() -> const OpenGraph& { return graph_of(node); });
  const DynValue* const complex = complex_input(node, state);
  if (complex != nullptr && node.op->complex == nullptr) return takes_no_complex(*complex);
  PYC_TRY(complex != nullptr ? node.op->complex(call) : node.op->host(call));
  PYC_TRY(check_room(0));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == ir::kAbsentId) continue;
    if (!call.output(i)) {
      return {Code::kUnsupported, fmt::format("output {} cannot be given", i)};
    }
    state.values[node.outputs[i]] = std::move(*call.output(i));
  }
  state.done[n] = true;
  const std::scoped_lock lock(mutex_);
  ++stats_.host_calls;
  if (node.op->close != nullptr) ++stats_.fallbacks;
  return {};
}

Result<bool> Stages::run_host_nodes(const Entry& entry, State& state, Run& run) {
  bool any = false;
  for (const specialize::Break& b : entry.segment.breaks) {
    const ir::OpenNode& node = state.graph->nodes[b.node];
    if (!reads_present(node, state)) continue;
    const bool complex = complex_input(node, state) != nullptr;
    if (!complex && (node.op->host == nullptr || closes_later(node, b.reason, state))) continue;
    Status status = run_host_node(b.node, state, run);
    if (!status.ok()) return at_node(std::move(status), node);
    any = true;
  }
  return any;
}

Result<std::vector<DynValue>> Stages::run_graph(const OpenGraph& g, std::vector<DynValue> inputs,
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
  State state = specialize::initial_state(g);
  for (size_t i = 0; i < inputs.size(); ++i) state.values[g.inputs[i]] = std::move(inputs[i]);
  for (size_t i = 0; i < captured.size(); ++i) state.values[g.captures[i].inner] = captured[i];
  Stage* stage = &root_of(g);
  std::vector<std::shared_ptr<Entry>> path;  // keeps the stages alive
  while (!complete(state)) {
    PYC_ASSIGN(std::shared_ptr<Entry> entry, find_entry(*stage, state));
    PYC_TRY(run_segment(*entry, state, run));
    drop_unneeded(state);
    PYC_ASSIGN(const bool ran, run_host_nodes(*entry, state, run));
    if (!ran && entry->segment.closed.empty()) return stuck(g, entry->segment);
    drop_unneeded(state);
    stage = entry->next.get();
    path.push_back(std::move(entry));
  }
  std::vector<DynValue> outputs;
  for (const OpenId v : g.outputs) outputs.push_back(*state.values[v]);
  return outputs;
}

Result<std::vector<DynValue>> Stages::run(std::vector<DynValue> inputs,
                                          runtime::RunStats& measured) {
  const std::shared_ptr<ValueMeter> meter = meter_of(options_);
  const MeterScope scope(meter);
  int64_t regions = 0;
  auto outputs = run_graph(graph_, std::move(inputs), {}, {measured, regions});
  measured.value_bytes = meter->live();
  measured.value_peak_bytes = meter->peak();
  return outputs;
}

Stages::Stats Stages::stats() const {
  const std::scoped_lock lock(mutex_);
  return stats_;
}

Breaks Stages::breaks() const {
  const std::scoped_lock lock(mutex_);
  return breaks_;
}

runtime::MemoryReport Stages::memory() const {
  const std::scoped_lock lock(mutex_);
  runtime::MemoryReport sum;
  for (const auto& [graph, root] : roots_) root->add_memory(sum);
  return sum;
}

}  // namespace pyc::driver
