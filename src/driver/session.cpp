#include "driver/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>

#include "driver/devices.h"
#include "ops/registry.h"
#include "specialize/segment.h"

namespace pyc::driver {
namespace {

using ir::OpenGraph;
using ir::OpenId;
using specialize::Segment;
using specialize::State;

constexpr int kMaxDepth = 64;  // of regions inside regions
constexpr size_t kMaxDecisions = size_t{1} << 16;

struct Stage;

// What a stage does for one signature.
struct Entry {
  std::string signature;  // the types it was made for
  Segment segment;
  std::unique_ptr<runtime::Model> model;            // null: nothing to compute
  std::vector<std::pair<OpenId, DynValue>> pinned;  // contents that entered the graph
  std::unique_ptr<Stage> next;
};

struct Stage {
  std::list<std::shared_ptr<Entry>> entries;  // the one used last first
  int64_t compiled = 0;
};

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

Result<runtime::TensorView> view_of(DynValue& value) {
  const auto address = reinterpret_cast<uintptr_t>(value.bytes.data());
  if (address % static_cast<uintptr_t>(dtype_size(value.dtype)) != 0) {
    PYC_ASSIGN(NewTensor copy, new_tensor(value.dtype, value.shape));
    std::copy(value.bytes.begin(), value.bytes.end(), copy.data);
    value = std::move(copy.value);
  }
  return runtime::TensorView{const_cast<std::byte*>(value.bytes.data()), value.dtype, value.shape,
                             static_cast<int64_t>(value.bytes.size())};
}

Result<std::vector<SharedBytes>> run_model(runtime::Model& model, std::vector<DynValue> inputs) {
  std::vector<runtime::TensorView> in;
  for (DynValue& value : inputs) {
    PYC_ASSIGN(runtime::TensorView view, view_of(value));
    in.push_back(std::move(view));
  }
  std::vector<runtime::TensorView> out;
  std::vector<SharedBytes> results;
  for (const runtime::IoSpec& spec : model.outputs()) {
    PYC_ASSIGN(NewTensor tensor, new_tensor(spec.dtype, spec.shape));
    out.push_back({tensor.data, spec.dtype, spec.shape, spec.bytes});
    results.push_back(tensor.value.bytes);
  }
  PYC_TRY(model.run(in, out));
  return results;
}

Result<std::vector<SharedBytes>> evaluate(ir::Graph graph) {
  CompileOptions options;
  options.device = "reference";
  options.threads = 1;
  options.cache = false;
  PYC_ASSIGN(const std::unique_ptr<runtime::Model> model, compile(std::move(graph), options));
  return run_model(*model, {});
}

}  // namespace

struct Session::Impl {
  std::shared_ptr<const OpenGraph> graph;
  CompileOptions options;
  mutable std::mutex mutex;  // guards everything below
  std::map<const OpenGraph*, std::unique_ptr<Stage>> roots;
  std::map<const ir::OpenNode*, std::unique_ptr<OpenGraph>> alone;  // nodes as graphs
  SessionStats stats;
  DecisionLog log;

  Result<std::vector<DynValue>> run_graph(const OpenGraph& g, std::vector<DynValue> inputs,
                                          std::span<const DynValue> captured, int depth);
  Result<std::shared_ptr<Entry>> find_entry(Stage& stage, const State& state);
  Result<std::shared_ptr<Entry>> make_entry(Stage& stage, const State& state);
  Status run_segment(const Entry& entry, State& state);
  Result<bool> run_host_nodes(const Entry& entry, State& state, int depth);
  Stage& root_of(const OpenGraph& g);
  const OpenGraph& graph_of(const ir::OpenNode& node);
};

namespace {

class Call final : public ir::HostCall {
 public:
  using RunGraph = std::function<Result<std::vector<DynValue>>(
      const OpenGraph&, std::vector<DynValue>, std::span<const DynValue>)>;
  using Alone = std::function<const OpenGraph&()>;

  Call(const ir::OpenNode& node, const State& state, RunGraph run, Alone alone)
      : node_(node),
        state_(state),
        run_(std::move(run)),
        alone_(std::move(alone)),
        outputs_(node.outputs.size()) {}

  const ir::OpenNode& node() const override { return node_; }
  const DynValue& input(size_t i) const override {
    const OpenId id = i < node_.inputs.size() ? node_.inputs[i] : ir::kAbsentId;
    return id == ir::kAbsentId ? absent_ : *state_.values[id];
  }
  void set_output(size_t i, DynValue value) override {
    if (i < outputs_.size()) outputs_[i] = std::move(value);
  }
  Result<std::vector<DynValue>> run_region(std::string_view attr_name,
                                           std::vector<DynValue> inputs) override {
    const auto* region = attr<std::shared_ptr<const OpenGraph>>(attr_name);
    if (region == nullptr || *region == nullptr) {
      return Status(Code::kInvalidArgument, fmt::format("attribute '{}' is no graph", attr_name));
    }
    std::vector<DynValue> captured;
    for (const OpenGraph::Capture& c : (*region)->captures) {
      captured.push_back(*state_.values[c.outer]);
    }
    return run_(**region, std::move(inputs), captured);
  }
  Result<std::vector<DynValue>> run_node(std::vector<DynValue> inputs) override {
    if (inputs.size() != node_.inputs.size()) {
      return Status(Code::kInvalidArgument, "a node is run with as many inputs as it has");
    }
    std::vector<DynValue> present;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (node_.inputs[i] != ir::kAbsentId) present.push_back(std::move(inputs[i]));
    }
    PYC_ASSIGN(std::vector<DynValue> given, run_(alone_(), std::move(present), {}));
    std::vector<DynValue> outputs(node_.outputs.size());
    auto next = given.begin();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (node_.outputs[i] != ir::kAbsentId) outputs[i] = std::move(*next++);
    }
    return outputs;
  }
  std::optional<DynValue>& output(size_t i) { return outputs_[i]; }

 private:
  const ir::OpenNode& node_;
  const State& state_;
  RunGraph run_;
  Alone alone_;
  std::vector<std::optional<DynValue>> outputs_;
  DynValue absent_;
};

bool reads_present(const ir::OpenNode& node, const State& state) {
  const std::vector<OpenId> reads = ir::reads_of(node);
  return std::all_of(reads.begin(), reads.end(),
                     [&](OpenId v) { return state.values[v].has_value(); });
}

// Whether a node that waits is closed once what it waits for is there. The host is for nodes that
// closing left to it, for other values than tensors, and for regions, which run as they are.
bool closes_later(const ir::OpenNode& node, const specialize::Break& why, const State& state) {
  const bool waits = why.reason == "waits_for_value" || why.reason == "waits_for_node";
  if (!waits || node.op->close == nullptr || !ir::regions_of(node).empty()) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](OpenId v) { return v == ir::kAbsentId || state.values[v]->is_tensor(); });
}

bool complete(const State& state) {
  return std::all_of(state.graph->outputs.begin(), state.graph->outputs.end(),
                     [&](OpenId v) { return state.values[v].has_value(); });
}

// Declared shapes are often those of another batch; a declared dtype has to be what is computed.
Status check_output(const ir::OpenValue& declared, DType dtype, const std::string& found) {
  const ir::OpenType& type = declared.type;
  if (type.kind != ir::OpenType::Kind::kTensor || !type.dtype || *type.dtype == dtype) return {};
  return {Code::kDtypeMismatch, fmt::format("output '{}': expected {}, found {}", declared.name,
                                            type.to_string(), found)};
}

Status stuck(const State& state, const Segment& segment) {
  const specialize::Break& first = segment.breaks.front();
  const ir::OpenNode& node = state.graph->nodes[first.node];
  return {Code::kUnsupported, fmt::format("{} '{}' cannot run: {} {}", node.op->name, node.name,
                                          first.reason, first.detail)};
}

}  // namespace

Stage& Session::Impl::root_of(const OpenGraph& g) {
  const std::scoped_lock lock(mutex);
  std::unique_ptr<Stage>& root = roots[&g];
  if (root == nullptr) root = std::make_unique<Stage>();
  return *root;
}

// The node as a graph whose inputs are those it has and whose outputs are those it gives.
const OpenGraph& Session::Impl::graph_of(const ir::OpenNode& node) {
  const std::scoped_lock lock(mutex);
  std::unique_ptr<OpenGraph>& known = alone[&node];
  if (known != nullptr) return *known;
  auto graph = std::make_unique<OpenGraph>();
  graph->name = "alone";
  graph->nodes.push_back(node);
  const auto rename = [&](std::vector<OpenId>& ids, std::vector<OpenId>& ends) {
    for (OpenId& id : ids) {
      if (id == ir::kAbsentId) continue;
      id = static_cast<OpenId>(graph->values.size());
      graph->values.emplace_back();
      ends.push_back(id);
    }
  };
  rename(graph->nodes[0].inputs, graph->inputs);
  rename(graph->nodes[0].outputs, graph->outputs);
  known = std::move(graph);  // whole, or not there
  return *known;
}

Result<std::shared_ptr<Entry>> Session::Impl::make_entry(Stage& stage, const State& state) {
  auto entry = std::make_shared<Entry>();
  PYC_ASSIGN(entry->segment, specialize::close_segment(state, ops::all_ops(), evaluate));
  Segment& segment = entry->segment;
  for (const OpenId v : segment.specialized) entry->pinned.emplace_back(v, *state.values[v]);
  if (!segment.outputs.empty()) {
    CompileOptions o = options;
    o.cache = false;  // entries are the cache, and hashing weights takes time
    PYC_ASSIGN(entry->model, compile(std::move(segment.graph), o));
    ++stats.segments_compiled;
    const DecisionLog& made = entry->model->decisions();
    if (log.size() < kMaxDecisions) log.insert(log.end(), made.begin(), made.end());
  }
  segment.graph = {};
  entry->next = std::make_unique<Stage>();
  for (const specialize::Break& b : segment.breaks) {
    if (log.size() >= kMaxDecisions) break;
    const ir::OpenNode& node = state.graph->nodes[b.node];
    log.push_back({.what = "graph_break",
                   .chosen = fmt::format("{} '{}'", node.op->name, node.name),
                   .reason = b.reason,
                   .detail = b.detail,
                   .alternatives = {}});
  }
  if (++stage.compiled == kStormLimit) {
    log.push_back({.what = "respecialize",
                   .chosen = "go_on",
                   .reason = "storm",
                   .detail = fmt::format("{} signatures of one stage", stage.compiled),
                   .alternatives = {}});
  }
  return entry;
}

Result<std::shared_ptr<Entry>> Session::Impl::find_entry(Stage& stage, const State& state) {
  const std::scoped_lock lock(mutex);
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
  if (stage.entries.size() > kMaxPrograms) stage.entries.pop_back();
  return entry;
}

Status Session::Impl::run_segment(const Entry& entry, State& state) {
  const Segment& segment = entry.segment;
  if (entry.model != nullptr) {
    std::vector<DynValue> inputs;
    for (const OpenId v : segment.inputs) inputs.push_back(*state.values[v]);
    PYC_ASSIGN(std::vector<SharedBytes> results, run_model(*entry.model, std::move(inputs)));
    for (size_t i = 0; i < segment.outputs.size(); ++i) {
      const runtime::IoSpec& spec = entry.model->outputs()[i];
      DynValue value;
      value.kind = DynValue::Kind::kTensor;
      value.dtype = spec.dtype;
      value.shape = spec.shape;
      value.bytes = std::move(results[i]);
      state.values[segment.outputs[i]] = std::move(value);
    }
    const std::scoped_lock lock(mutex);
    ++stats.segments_run;
  }
  for (const auto& [v, constant] : segment.constants) {
    state.values[v] = constant;
    state.constant[v] = true;
  }
  for (const auto& [v, same] : segment.aliases) state.values[v] = state.values[same];
  for (const uint32_t n : segment.closed) state.done[n] = true;
  return {};
}

Result<bool> Session::Impl::run_host_nodes(const Entry& entry, State& state, int depth) {
  bool any = false;
  for (const specialize::Break& b : entry.segment.breaks) {
    const ir::OpenNode& node = state.graph->nodes[b.node];
    if (node.op->host == nullptr || !reads_present(node, state)) continue;
    if (closes_later(node, b, state)) continue;
    const auto run = [&](const OpenGraph& region, std::vector<DynValue> inputs,
                         std::span<const DynValue> captured) {
      return run_graph(region, std::move(inputs), captured, depth + 1);
    };
    Call call(node, state, run, [&]() -> const OpenGraph& { return graph_of(node); });
    Status status = node.op->host(call);
    if (!status.ok()) {
      return std::move(status).with_context(fmt::format("{} '{}'", node.op->name, node.name));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == ir::kAbsentId) continue;
      if (!call.output(i)) {
        return Status(Code::kUnsupported, fmt::format("{} '{}': output {} cannot be given",
                                                      node.op->name, node.name, i));
      }
      state.values[node.outputs[i]] = std::move(*call.output(i));
    }
    state.done[b.node] = true;
    any = true;
    const std::scoped_lock lock(mutex);
    ++stats.host_calls;
  }
  return any;
}

Result<std::vector<DynValue>> Session::Impl::run_graph(const OpenGraph& g,
                                                       std::vector<DynValue> inputs,
                                                       std::span<const DynValue> captured,
                                                       int depth) {
  if (depth > kMaxDepth) {
    return Status(Code::kBudgetExceeded, fmt::format("regions nest deeper than {}", kMaxDepth));
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
    PYC_TRY(run_segment(*entry, state));
    PYC_ASSIGN(const bool ran, run_host_nodes(*entry, state, depth));
    if (!ran && entry->segment.closed.empty()) return stuck(state, entry->segment);
    stage = entry->next.get();
    path.push_back(std::move(entry));
  }
  std::vector<DynValue> outputs;
  for (const OpenId v : g.outputs) outputs.push_back(*state.values[v]);
  return outputs;
}

Result<ir::Graph> close_model(const OpenGraph& graph) {
  State state = specialize::initial_state(graph);
  for (const OpenId v : graph.inputs) {
    const ir::OpenValue& input = graph.values[v];
    if (!input.type.is_static()) {
      return Status(
          Code::kUnsupported,
          fmt::format("input '{}' is {}: its shape must be fixed to compile the model as a "
                      "whole",
                      input.name, input.type.to_string()));
    }
    DynValue type_only;
    type_only.kind = DynValue::Kind::kTensor;
    type_only.dtype = *input.type.dtype;
    for (const ir::OpenType::Dim& d : *input.type.shape) type_only.shape.push_back(d.value);
    state.values[v] = std::move(type_only);
  }
  PYC_ASSIGN(Segment segment, specialize::close_whole(state, ops::all_ops(), evaluate));
  if (!segment.breaks.empty()) return stuck(state, segment);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::TensorType& type = segment.graph.type(segment.graph.outputs[i]);
    PYC_TRY(check_output(graph.values[graph.outputs[i]], type.dtype, type.to_string()));
  }
  return std::move(segment.graph);
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const OpenGraph> graph,
                                                 CompileOptions options) {
  PYC_ASSIGN([[maybe_unused]] const backends::Backend* backend, find_backend(options.device));
  auto impl = std::make_unique<Impl>();
  impl->graph = std::move(graph);
  impl->options = std::move(options);
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

const OpenGraph& Session::graph() const { return *impl_->graph; }

Result<std::vector<DynValue>> Session::run(std::span<const DynValue> inputs) {
  {
    const std::scoped_lock lock(impl_->mutex);
    ++impl_->stats.runs;
  }
  const OpenGraph& g = *impl_->graph;
  for (size_t i = 0; i < std::min(inputs.size(), g.inputs.size()); ++i) {
    PYC_TRY(ir::check_accepts(g.values[g.inputs[i]], inputs[i]));
  }
  PYC_ASSIGN(std::vector<DynValue> outputs,
             impl_->run_graph(g, {inputs.begin(), inputs.end()}, {}, 0));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_tensor()) continue;
    PYC_TRY(check_output(g.values[g.outputs[i]], outputs[i].dtype, outputs[i].to_string()));
  }
  return outputs;
}

SessionStats Session::stats() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->stats;
}

DecisionLog Session::decisions() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->log;
}

}  // namespace pyc::driver
