#include "open/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "open/fold.h"

namespace pyc::open {
namespace {

using ir::kNoId;
using ir::ValueId;
using open::OpenGraph;
using open::OpenNode;

// A graph whose nodes are being closed: the main one, or a region inside one of its nodes.
struct Scope {
  explicit Scope(const OpenGraph& g, Scope* around = nullptr)
      : graph(&g), outer(around), values(g.values.size(), kNoId) {}
  const OpenGraph* graph;
  Scope* outer;
  std::vector<ir::ValueId> values;  // by value: what it is, once it is closed
};

enum class Outcome : uint8_t { kClosed, kWaits };

bool can_be_closed(const DynValue& value) { return value.is_tensor() && !is_complex(value.dtype); }
BreakReason reason_of(const DynValue& value) {
  return value.is_tensor() ? BreakReason::kComplex : BreakReason::kNotATensor;
}

class SegmentBuilder final : public open::Folder {
 public:
  SegmentBuilder(const State& state, const ir::OpSet& ops, const Evaluate& evaluate)
      : state_(state),
        builder_(ops, state.graph->name.empty() ? "main" : state.graph->name),
        finder_(ops, evaluate),
        main_(*state.graph),
        scope_(&main_) {}

  Result<Segment> build();
  Result<Segment> build_whole();

  std::shared_ptr<const ir::ConstData> known(const ir::Graph& graph, ir::ValueId value) override {
    return finder_.find(graph, value);
  }
  Result<std::optional<std::vector<ir::ValueId>>> inline_region(
      const OpenGraph& region, std::span<const ir::ValueId> inputs) override;

 private:
  Result<Outcome> close_node(const OpenNode& node, Break* why);
  Result<Outcome> try_close(const OpenNode& node, Break* why, ir::ValueId* missing);
  Result<std::optional<ir::ValueId>> resolve(Scope& scope, OpenId id, Break* why);
  Result<std::optional<ir::ValueId>> resolve_main(OpenId id, Break* why);
  Result<ir::ValueId> add_constant(const DynValue& value);
  std::shared_ptr<const ir::ConstData> data_of(OpenId id) const;
  bool specialize(ir::ValueId missing);
  Status close_nodes();
  Status finish();
  void name_values();
  Status place(OpenId value, std::unordered_map<ir::ValueId, OpenId>& placed);

  const State& state_;
  ir::GraphBuilder builder_;
  ConstantFinder finder_;
  Scope main_;
  Scope* scope_;
  ir::ValueId region_missing_ = ir::kNoId;
  Segment segment_;
  bool whole_ = false;
};

Result<ir::ValueId> SegmentBuilder::add_constant(const DynValue& value) {
  return builder_.constant({value.dtype, value.shape}, ir::dense_data(value.bytes));
}

// The content of a constant of the main graph, shared by all that close it.
std::shared_ptr<const ir::ConstData> SegmentBuilder::data_of(OpenId id) const {
  const bool kept = id < state_.data.size() && state_.data[id] != nullptr;
  return kept ? state_.data[id] : ir::dense_data(state_.values[id]->bytes);
}

Result<std::optional<ir::ValueId>> SegmentBuilder::resolve_main(OpenId id, Break* why) {
  const auto& content = state_.values[id];
  if (!content) {
    *why = {.reason = BreakReason::kWaitsForNode, .detail = state_.graph->values[id].name};
    return std::optional<ir::ValueId>();
  }
  if (!can_be_closed(*content)) {
    *why = {.reason = reason_of(*content), .detail = state_.graph->values[id].name};
    return std::optional<ir::ValueId>();
  }
  ir::ValueId made = ir::kNoId;
  if (state_.constant[id]) {
    PYC_ASSIGN(made, builder_.constant({content->dtype, content->shape}, data_of(id)));
  } else {
    const std::string& name = state_.graph->values[id].name;
    PYC_ASSIGN(made, builder_.input(name.empty() ? fmt::format("in{}", id) : name,
                                    {content->dtype, content->shape}));
    segment_.inputs.push_back(id);
  }
  main_.values[id] = made;
  return std::optional<ir::ValueId>(made);
}

// The value of the graph being built that open value `id` is; nothing when it has to be waited for.
Result<std::optional<ir::ValueId>> SegmentBuilder::resolve(Scope& scope, OpenId id, Break* why) {
  if (scope.values[id] != kNoId) return std::optional<ir::ValueId>(scope.values[id]);
  if (scope.outer == nullptr) return resolve_main(id, why);
  for (const OpenGraph::Capture& c : scope.graph->captures) {
    if (c.inner == id) return resolve(*scope.outer, c.outer, why);
  }
  const auto& constant = scope.graph->values[id].constant;
  if (!constant || !can_be_closed(*constant)) {
    *why = {.reason = constant ? reason_of(*constant) : BreakReason::kNotATensor,
            .detail = scope.graph->values[id].name};
    return std::optional<ir::ValueId>();
  }
  PYC_ASSIGN(const ir::ValueId made, add_constant(*constant));
  scope.values[id] = made;
  return std::optional<ir::ValueId>(made);
}

Result<Outcome> SegmentBuilder::try_close(const OpenNode& node, Break* why, ir::ValueId* missing) {
  std::vector<ir::ValueId> inputs;
  for (const OpenId id : node.inputs) {
    if (id == open::kAbsentId) {
      inputs.push_back(ir::kNoId);
      continue;
    }
    PYC_ASSIGN(const std::optional<ir::ValueId> value, resolve(*scope_, id, why));
    if (!value) return Outcome::kWaits;
    inputs.push_back(*value);
  }
  open::CloseContext context(builder_, node, std::move(inputs), *this);
  region_missing_ = ir::kNoId;
  Status status = node.op->close(context);
  PYC_TRY(finder_.refused());
  if (context.missing() != ir::kNoId || context.open_region()) {
    *missing = context.missing() != ir::kNoId ? context.missing() : region_missing_;
    const bool waits = context.missing() != ir::kNoId;
    *why = {.reason = waits                            ? BreakReason::kWaitsForValue
                      : open::regions_of(node).empty() ? BreakReason::kHostFunction
                                                       : BreakReason::kOpenRegion,
            .detail = *missing == ir::kNoId ? "" : builder_.graph().value(*missing).name};
    return Outcome::kWaits;
  }
  if (!status.ok()) return status;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == open::kAbsentId) continue;
    if (context.output(i) == ir::kNoId) {
      return Status(Code::kUnsupported, fmt::format("output {} cannot be given", i));
    }
    scope_->values[node.outputs[i]] = context.output(i);
  }
  return Outcome::kClosed;
}

// Makes the content of a value that is there part of the graph. Whether `missing` is such a value.
bool SegmentBuilder::specialize(ir::ValueId missing) {
  if (whole_) return false;
  for (const OpenId id : segment_.inputs) {
    if (main_.values[id] != missing) continue;
    if (!state_.type_only.empty() && state_.type_only[id]) {
      segment_.undetermined.push_back(id);
      return false;
    }
    auto constant = add_constant(*state_.values[id]);
    if (!constant.ok()) return false;
    main_.values[id] = *constant;
    segment_.specialized.push_back(id);
    return true;
  }
  return false;
}

Result<Outcome> SegmentBuilder::close_node(const OpenNode& node, Break* why) {
  if (node.op->close == nullptr) {
    *why = {.reason = BreakReason::kHostFunction, .detail = node.op->name};
    return Outcome::kWaits;
  }
  for (;;) {
    ir::ValueId missing = ir::kNoId;
    auto outcome = try_close(node, why, &missing);
    if (!outcome.ok()) {
      return std::move(outcome).status().with_context(
          fmt::format("{} '{}'", node.op->name, node.name));
    }
    if (*outcome == Outcome::kClosed) return outcome;
    const bool again = missing != ir::kNoId && scope_ == &main_ && specialize(missing);
    if (!again) return outcome;
  }
}

Result<std::optional<std::vector<ir::ValueId>>> SegmentBuilder::inline_region(
    const OpenGraph& region, std::span<const ir::ValueId> inputs) {
  Scope scope(region, scope_);
  if (region.inputs.size() != inputs.size()) {
    return Status(Code::kInvalidArgument, fmt::format("a region with {} inputs is given {}",
                                                      region.inputs.size(), inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) scope.values[region.inputs[i]] = inputs[i];
  Scope* const outer = std::exchange(scope_, &scope);
  const auto close_all = [&]() -> Result<std::optional<std::vector<ir::ValueId>>> {
    Break why;
    for (const OpenNode& node : region.nodes) {
      if (node.op->close == nullptr) return std::optional<std::vector<ir::ValueId>>();
      ir::ValueId missing = ir::kNoId;
      auto outcome = try_close(node, &why, &missing);
      if (!outcome.ok()) {
        return std::move(outcome).status().with_context(
            fmt::format("{} '{}'", node.op->name, node.name));
      }
      if (*outcome == Outcome::kWaits) {
        region_missing_ = missing;
        return std::optional<std::vector<ir::ValueId>>();
      }
    }
    std::vector<ir::ValueId> outputs;
    for (const OpenId id : region.outputs) {
      PYC_ASSIGN(const std::optional<ir::ValueId> value, resolve(scope, id, &why));
      if (!value) return std::optional<std::vector<ir::ValueId>>();
      outputs.push_back(*value);
    }
    return std::optional(std::move(outputs));
  };
  auto result = close_all();
  scope_ = outer;
  return result;
}

// Says where the content of an open value comes from after the segment ran.
Status SegmentBuilder::place(OpenId value, std::unordered_map<ir::ValueId, OpenId>& placed) {
  const ir::ValueId id = main_.values[value];
  const ir::Value& info = builder_.graph().value(id);
  if (info.kind == ir::ValueKind::kConstant) {
    DynValue constant;
    constant.kind = DynValue::Kind::kTensor;
    constant.dtype = info.type.dtype;
    constant.shape = info.type.shape;
    constant.bytes = info.constant->bytes;
    segment_.constants[value] = std::move(constant);
    return {};
  }
  const auto [it, fresh] = placed.emplace(id, value);
  if (!fresh) {
    segment_.aliases.emplace_back(value, it->second);
    return {};
  }
  segment_.outputs.push_back(value);
  return builder_.output(id);
}

Status SegmentBuilder::finish() {
  const OpenGraph& graph = *state_.graph;
  std::vector<bool> done = state_.done;
  for (const uint32_t n : segment_.closed) done[n] = true;
  std::vector<bool> needed(graph.values.size());
  for (const OpenId v : graph.outputs) needed[v] = true;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (done[n]) continue;
    for (const OpenId v : open::reads_of(graph.nodes[n])) needed[v] = true;
  }
  std::unordered_map<ir::ValueId, OpenId> placed;
  for (const OpenId id : segment_.inputs) {
    // Specialized inputs are constants by now; what was read as an input is there already.
    const ir::ValueId value = main_.values[id];
    if (builder_.graph().value(value).kind == ir::ValueKind::kInput) placed.emplace(value, id);
  }
  for (const uint32_t n : segment_.closed) {
    for (const OpenId v : graph.nodes[n].outputs) {
      if (v != open::kAbsentId && needed[v]) PYC_TRY(place(v, placed));
    }
  }
  return {};
}

Result<Segment> SegmentBuilder::build() {
  PYC_TRY(close_nodes());
  PYC_TRY(finish());
  segment_.graph = std::move(builder_).take();
  return std::move(segment_);
}

Result<Segment> SegmentBuilder::build_whole() {
  whole_ = true;
  Break why;
  for (const OpenId id : state_.graph->inputs) PYC_TRY(resolve_main(id, &why).status());
  PYC_TRY(close_nodes());
  if (segment_.breaks.empty()) {
    for (const OpenId id : state_.graph->outputs) {
      PYC_ASSIGN(const std::optional<ir::ValueId> value, resolve(main_, id, &why));
      if (!value) {
        return Status(Code::kUnsupported, fmt::format("output '{}' is no tensor", why.detail));
      }
      PYC_TRY(builder_.output(*value));
    }
  }
  segment_.graph = std::move(builder_).take();
  name_values();
  return std::move(segment_);
}

// Results that are model outputs get the model's names, where those are free; then the others do,
// and constants: what is said of a graph is said in the model's words.
void SegmentBuilder::name_values() {
  ir::Graph& graph = segment_.graph;
  std::unordered_set<std::string> taken;
  for (const ir::Value& v : graph.values) taken.insert(v.name);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    ir::Value& value = graph.values[graph.outputs[i]];
    const std::string& wanted = state_.graph->values[state_.graph->outputs[i]].name;
    if (value.kind != ir::ValueKind::kResult || !taken.insert(wanted).second) continue;
    value.name = wanted;
  }
  std::vector<bool> named(graph.values.size());
  for (const ir::ValueId v : graph.outputs) named[v] = true;
  for (OpenId id = 0; id < main_.values.size(); ++id) {
    const ir::ValueId v = main_.values[id];
    if (v == ir::kNoId || named[v] || graph.values[v].kind == ir::ValueKind::kInput) continue;
    const std::string& wanted = state_.graph->values[id].name;
    if (wanted.empty() || !taken.insert(wanted).second) continue;
    graph.values[v].name = wanted;
    named[v] = true;
  }
}

Status SegmentBuilder::close_nodes() {
  const OpenGraph& graph = *state_.graph;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (state_.done[n]) continue;
    Break why;
    PYC_ASSIGN(const Outcome outcome, close_node(graph.nodes[n], &why));
    if (outcome == Outcome::kClosed) {
      segment_.closed.push_back(n);
    } else {
      why.node = n;
      segment_.breaks.push_back(std::move(why));
    }
  }
  return {};
}

}  // namespace

std::string_view reason_name(BreakReason reason) {
  constexpr std::string_view kNames[] = {"host_function", "waits_for_value", "waits_for_node",
                                         "open_region",   "not_a_tensor",    "complex_numbers",
                                         "no_rule"};
  return kNames[static_cast<size_t>(reason)];
}

State initial_state(const OpenGraph& graph) {
  State state{.graph = &graph,
              .values = std::vector<std::optional<DynValue>>(graph.values.size()),
              .constant = std::vector<bool>(graph.values.size()),
              .done = std::vector<bool>(graph.nodes.size(), true),
              .type_only = {},
              .data = std::vector<std::shared_ptr<const ir::ConstData>>(graph.values.size())};
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!graph.values[v].constant) continue;
    state.values[v] = graph.values[v].constant;
    state.constant[v] = true;
    if (state.values[v]->is_tensor()) state.data[v] = ir::dense_data(state.values[v]->bytes);
  }
  std::vector<bool> needed(graph.values.size());
  for (const OpenId v : graph.outputs) needed[v] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const auto& outputs = graph.nodes[n].outputs;
    const bool wanted = std::any_of(outputs.begin(), outputs.end(),
                                    [&](OpenId v) { return v != open::kAbsentId && needed[v]; });
    if (!wanted) continue;
    state.done[n] = false;
    for (const OpenId v : open::reads_of(graph.nodes[n])) needed[v] = true;
  }
  return state;
}

Result<Segment> close_segment(const State& state, const ir::OpSet& ops, const Evaluate& evaluate) {
  return SegmentBuilder(state, ops, evaluate).build();
}

Result<Segment> close_whole(const State& state, const ir::OpSet& ops, const Evaluate& evaluate) {
  return SegmentBuilder(state, ops, evaluate).build_whole();
}

}  // namespace pyc::open
