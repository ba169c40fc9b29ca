#include <fmt/format.h>

#include <algorithm>

#include "host/loops.h"
#include "import/onnx/host_rules.h"
#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

// Loops up to this size are written out in the graph; longer ones run on the host.
constexpr int64_t kMaxTrips = 32;
constexpr int64_t kMaxNodesInFull = 512;

// At most kMaxNodesInFull + 1. Regions count as if each were the body of a loop written out in
// full: loops in loops must not multiply.
int64_t nodes_in(const open::OpenGraph& graph) {
  auto count = static_cast<int64_t>(graph.nodes.size());
  for (const open::OpenNode& node : graph.nodes) {
    const bool loops = node.op->name == "onnx.Loop" || node.op->name == "onnx.Scan";
    for (const open::OpenGraph* region : open::regions_of(node)) {
      count += (loops ? kMaxTrips : 1) * nodes_in(*region);
    }
    if (count > kMaxNodesInFull) return kMaxNodesInFull + 1;
  }
  return count;
}

bool worth_unrolling(const open::OpenGraph& body, int64_t trips) {
  return trips > 0 && trips <= kMaxTrips && trips * nodes_in(body) <= kMaxNodesInFull;
}

host::Body body_of(HostCall& call) {
  return
      [&call](std::vector<DynValue> inputs) { return call.run_region("body", std::move(inputs)); };
}

std::vector<open::OpenType> types_of(const open::OpenGraph& body, size_t first) {
  std::vector<open::OpenType> types;
  for (size_t i = first; i < body.outputs.size(); ++i) {
    types.push_back(body.values[body.outputs[i]].type);
  }
  return types;
}

Status no_body() { return {Code::kInvalidArgument, "attribute 'body' is needed"}; }

// Elements one after the other along a new axis.
ValueId stacked(CloseContext& c, std::vector<ValueId> parts, int64_t axis, bool reversed) {
  if (reversed) std::reverse(parts.begin(), parts.end());
  const int64_t at = parts.empty() ? 0 : axis_of(c, axis, c.rank(parts[0]) + 1);
  for (ValueId& part : parts) {
    Shape shape = c.shape(part);
    if (!c.ok() || at > static_cast<int64_t>(shape.size())) return part;
    shape.insert(shape.begin() + at, 1);
    part = c.reshape(part, shape);
  }
  return parts.size() == 1 ? parts[0] : c.op("concat", parts, {{"axis", at}});
}

Status if_close(CloseContext& c) {
  const bool taken = c.int_value(c.input(0)) != 0;
  const open::OpenGraph* branch = c.attr_graph(taken ? "then_branch" : "else_branch");
  if (branch == nullptr) return c.refused(Code::kInvalidArgument, "a branch is missing");
  const std::vector<ValueId> results = c.region(*branch, {});
  for (size_t i = 0; i < std::min(results.size(), c.outputs()); ++i) c.set(i, results[i]);
  return c.status();
}

Status if_host(HostCall& call) {
  PYC_ASSIGN(const bool taken, host::one_bool(input_of(call, 0), "condition"));
  return give_all(call, call.run_region(taken ? "then_branch" : "else_branch", {}));
}

bool same_type(const DynValue& a, const DynValue& b) {
  return a.is_tensor() && b.is_tensor() && a.dtype == b.dtype && a.shape == b.shape;
}

DynValue type_of(DType dtype, Ints shape) {
  DynValue type;
  type.kind = DynValue::Kind::kTensor;
  type.dtype = dtype;
  type.shape = std::move(shape);
  return type;
}

// Without its content, which is another one at the next iteration.
DynValue only_type(const DynValue& value) {
  return value.is_tensor() ? type_of(value.dtype, value.shape) : value;
}

Status if_foresee(HostCall& call) {
  PYC_ASSIGN(const std::vector<DynValue> one, call.run_region("then_branch", {}));
  PYC_ASSIGN(const std::vector<DynValue> other, call.run_region("else_branch", {}));
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    if (same_type(one[i], other[i])) call.set_output(i, one[i]);
  }
  return {};
}

Status loop_close(CloseContext& c) {
  const open::OpenGraph* body = c.attr_graph("body");
  if (body == nullptr) return c.status().ok() ? no_body() : c.status();
  const bool has_condition = c.has(1);
  if (!c.has(0) || !c.is_known(c.input(0)) || (has_condition && !c.is_known(c.input(1)))) {
    return c.use_host();
  }
  const int64_t trips = c.int_value(c.input(0));
  bool going = !has_condition || c.int_value(c.input(1)) != 0;
  if (!c.ok() || !going || !worth_unrolling(*body, trips)) return c.use_host();
  std::vector<ValueId> carried;
  for (size_t i = 2; i < c.inputs(); ++i) {
    if (!c.has(i)) return c.use_host();
    carried.push_back(c.input(i));
  }
  if (body->outputs.size() < 1 + carried.size()) {
    return c.refused(Code::kInvalidArgument, "the body returns too few outputs");
  }
  std::vector<std::vector<ValueId>> scans(body->outputs.size() - 1 - carried.size());
  for (int64_t i = 0; i < trips && going && c.ok(); ++i) {
    std::vector<ValueId> inputs{c.constant(DynValue::of_int(i)),
                                c.constant(DynValue::of_bool(true))};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<ValueId> outputs = c.region(*body, inputs);
    if (!c.ok()) return c.status();
    if (has_condition && !c.is_known(outputs[0])) return c.use_host();
    if (has_condition) going = c.int_value(outputs[0]) != 0;
    std::copy_n(outputs.begin() + 1, carried.size(), carried.begin());
    for (size_t k = 0; k < scans.size(); ++k) scans[k].push_back(outputs[1 + carried.size() + k]);
  }
  for (size_t i = 0; i < carried.size(); ++i) c.set(i, carried[i]);
  for (size_t k = 0; k < scans.size(); ++k) {
    c.set(carried.size() + k, stacked(c, scans[k], 0, false));
  }
  return c.status();
}

Status loop_host(HostCall& call) {
  const open::OpenGraph* body = attr_graph(call, "body");
  if (body == nullptr) return no_body();
  host::LoopSpec spec;
  if (call.has(0)) {
    PYC_ASSIGN(spec.trips, host::one_int(call.input(0), "trip count"));
  }
  if (call.has(1)) {
    PYC_ASSIGN(spec.condition, host::one_bool(call.input(1), "condition"));
  }
  spec.carried = inputs_from(call, 2);
  const size_t fixed = 1 + spec.carried.size();
  if (body->outputs.size() < fixed) {
    return {Code::kInvalidArgument, "the body returns too few outputs"};
  }
  spec.scans = body->outputs.size() - fixed;
  spec.scan_elements = types_of(*body, fixed);
  return give_all(call, host::run_loop(spec, body_of(call)));
}

// How often the body runs is not known: types of what is carried follow if the body keeps them.
Status loop_foresee(HostCall& call) {
  std::vector<DynValue> carried;
  for (const DynValue& value : inputs_from(call, 2)) carried.push_back(only_type(value));
  std::vector<DynValue> inputs{type_of(DType::kI64, {}), type_of(DType::kBool, {})};
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  PYC_ASSIGN(const std::vector<DynValue> outputs, call.run_region("body", std::move(inputs)));
  if (outputs.size() < 1 + carried.size()) return {};
  for (size_t i = 0; i < carried.size(); ++i) {
    if (same_type(carried[i], outputs[1 + i])) call.set_output(i, carried[i]);
  }
  return {};
}

// The i-th entry of a list attribute, 0 when there is no list; lists are as long as `count`.
Result<Ints> per_value(const Ints& list, size_t count, std::string_view name) {
  if (list.empty()) return Ints(count, 0);
  if (list.size() == count) return list;
  return Status(Code::kSizeMismatch, fmt::format("attribute '{}' has {} entries, expected {}", name,
                                                 list.size(), count));
}

std::vector<bool> flags(const Ints& list) {
  std::vector<bool> out;
  for (const int64_t v : list) out.push_back(v != 0);
  return out;
}

// How many of `inputs` are states and how many are scanned; refused when they do not fit.
struct ScanCounts {
  size_t states = 0;
  size_t inputs = 0;
  size_t outputs = 0;
};
Result<ScanCounts> scan_counts(const open::OpenGraph& body, int64_t scanned, size_t inputs) {
  if (scanned < 1 || scanned > static_cast<int64_t>(inputs)) {
    return Status(Code::kInvalidArgument,
                  fmt::format("num_scan_inputs {} does not fit {} inputs", scanned, inputs));
  }
  const auto count = static_cast<size_t>(scanned);
  const size_t states = inputs - count;
  if (body.outputs.size() < states) {
    return Status(Code::kInvalidArgument, "the body returns too few outputs");
  }
  return ScanCounts{states, count, body.outputs.size() - states};
}

// The list attributes of Scan, one entry per scanned input or output; `read` gets one by its name.
struct ScanLists {
  Ints in_axes;
  Ints in_reversed;
  Ints out_axes;
  Ints out_reversed;
};
template <class Read>
Result<ScanLists> scan_lists(const ScanCounts& counts, Read read) {
  ScanLists lists;
  const auto fill = [&](Ints& list, std::string_view name, size_t count) -> Status {
    PYC_ASSIGN(list, per_value(read(name), count, name));
    return {};
  };
  PYC_TRY(fill(lists.in_axes, "scan_input_axes", counts.inputs));
  PYC_TRY(fill(lists.in_reversed, "scan_input_directions", counts.inputs));
  PYC_TRY(fill(lists.out_axes, "scan_output_axes", counts.outputs));
  PYC_TRY(fill(lists.out_reversed, "scan_output_directions", counts.outputs));
  return lists;
}

// One entry of an axis, the axis gone.
ValueId cut_of(CloseContext& c, ValueId x, int64_t axis, int64_t at) {
  const ValueId cut = c.op(
      "slice", {x},
      {{"starts", Ints{at}}, {"ends", Ints{at + 1}}, {"axes", Ints{axis}}, {"steps", Ints{1}}});
  Shape shape = c.shape(x);
  if (c.ok()) shape.erase(shape.begin() + axis);
  return c.reshape(cut, shape);
}

// How long all scanned inputs are; their axes are counted from the front. Refused when they differ.
int64_t scan_length(CloseContext& c, size_t first, Ints& axes) {
  int64_t length = -1;
  for (size_t k = 0; k < axes.size(); ++k) {
    const ValueId x = c.input(first + k);
    axes[k] = axis_of(c, axes[k], c.rank(x));
    if (!c.ok()) return 0;
    const int64_t dim = c.shape(x)[static_cast<size_t>(axes[k])];
    if (length >= 0 && dim != length) {
      c.refuse(Code::kShapeMismatch, fmt::format("scanned inputs are {} and {} long", length, dim));
    }
    length = dim;
  }
  return length;
}

Status scan_close(CloseContext& c) {
  const open::OpenGraph* body = c.attr_graph("body");
  if (body == nullptr) return c.status().ok() ? no_body() : c.status();
  if (c.version() < 9) return c.use_host();
  PYC_ASSIGN(const ScanCounts counts,
             scan_counts(*body, c.attr_int("num_scan_inputs"), c.inputs()));
  PYC_ASSIGN(ScanLists lists,
             scan_lists(counts, [&](std::string_view name) { return c.attr_ints(name); }));
  const int64_t trips = scan_length(c, counts.states, lists.in_axes);
  if (!c.ok()) return c.status();
  if (!worth_unrolling(*body, trips)) return c.use_host();
  std::vector<ValueId> states;
  for (size_t i = 0; i < counts.states; ++i) states.push_back(c.input(i));
  std::vector<std::vector<ValueId>> scans(counts.outputs);
  for (int64_t t = 0; t < trips && c.ok(); ++t) {
    std::vector<ValueId> inputs = states;
    for (size_t k = 0; k < counts.inputs; ++k) {
      const int64_t at = lists.in_reversed[k] != 0 ? trips - 1 - t : t;
      inputs.push_back(cut_of(c, c.input(counts.states + k), lists.in_axes[k], at));
    }
    const std::vector<ValueId> outputs = c.region(*body, inputs);
    if (!c.ok()) return c.status();
    std::copy_n(outputs.begin(), states.size(), states.begin());
    for (size_t k = 0; k < scans.size(); ++k) scans[k].push_back(outputs[states.size() + k]);
  }
  for (size_t i = 0; i < states.size(); ++i) c.set(i, states[i]);
  for (size_t k = 0; k < scans.size(); ++k) {
    c.set(states.size() + k, stacked(c, scans[k], lists.out_axes[k], lists.out_reversed[k] != 0));
  }
  return c.status();
}

// Opset 8: batches, and the lengths of the sequences as the first input.
Status scan8_host(HostCall& call, const open::OpenGraph& body) {
  const std::vector<DynValue> inputs = inputs_from(call, 1);
  PYC_ASSIGN(const ScanCounts counts,
             scan_counts(body, call.attr_int("num_scan_inputs", 0), inputs.size()));
  host::BatchedScanSpec spec;
  const auto middle = inputs.begin() + static_cast<int64_t>(counts.states);
  spec.states.assign(inputs.begin(), middle);
  spec.inputs.assign(middle, inputs.end());
  PYC_ASSIGN(const Ints reversed,
             per_value(attr_ints(call, "directions"), counts.inputs, "directions"));
  spec.input_reversed = flags(reversed);
  spec.outputs = counts.outputs;
  spec.output_elements = types_of(body, counts.states);
  if (call.has(0)) {
    PYC_TRY(host::check_numbers(call.input(0), "sequence_lens"));
    spec.lengths = to_ints(call.input(0));
  }
  return give_all(call, host::run_batched_scan(spec, body_of(call)));
}

Status scan_host(HostCall& call) {
  const open::OpenGraph* body = attr_graph(call, "body");
  if (body == nullptr) return no_body();
  if (call.node().version < 9) return scan8_host(call, *body);
  const std::vector<DynValue> inputs = inputs_from(call, 0);
  PYC_ASSIGN(const ScanCounts counts,
             scan_counts(*body, call.attr_int("num_scan_inputs", 0), inputs.size()));
  PYC_ASSIGN(ScanLists lists,
             scan_lists(counts, [&](std::string_view name) { return attr_ints(call, name); }));
  host::ScanSpec spec;
  const auto middle = inputs.begin() + static_cast<int64_t>(counts.states);
  spec.states.assign(inputs.begin(), middle);
  spec.inputs.assign(middle, inputs.end());
  spec.input_axes = std::move(lists.in_axes);
  spec.input_reversed = flags(lists.in_reversed);
  spec.outputs = counts.outputs;
  spec.output_axes = std::move(lists.out_axes);
  spec.output_reversed = flags(lists.out_reversed);
  spec.output_elements = types_of(*body, counts.states);
  return give_all(call, host::run_scan(spec, body_of(call)));
}

// A type with one axis less, or with one more of this size; nothing when there is no such axis.
std::optional<DynValue> without_axis(const DynValue& type, int64_t axis) {
  const auto rank = static_cast<int64_t>(type.shape.size());
  if (!type.is_tensor() || axis < -rank || axis >= rank) return std::nullopt;
  DynValue out = type_of(type.dtype, type.shape);
  out.shape.erase(out.shape.begin() + (axis < 0 ? axis + rank : axis));
  return out;
}
std::optional<DynValue> with_axis(const DynValue& type, int64_t axis, int64_t size) {
  const auto rank = static_cast<int64_t>(type.shape.size()) + 1;
  if (!type.is_tensor() || axis < -rank || axis >= rank) return std::nullopt;
  DynValue out = type_of(type.dtype, type.shape);
  out.shape.insert(out.shape.begin() + (axis < 0 ? axis + rank : axis), size);
  return out;
}

// From opset 9 on. What does not fit is left to the run, which says why.
Status scan_foresee(HostCall& call) {
  const open::OpenGraph* body = attr_graph(call, "body");
  if (body == nullptr || call.node().version < 9) return {};
  PYC_ASSIGN(const ScanCounts counts,
             scan_counts(*body, call.attr_int("num_scan_inputs", 0), call.inputs()));
  PYC_ASSIGN(const ScanLists lists,
             scan_lists(counts, [&](std::string_view name) { return attr_ints(call, name); }));
  std::vector<DynValue> inputs;
  for (size_t i = 0; i < counts.states; ++i) inputs.push_back(only_type(call.input(i)));
  int64_t trips = 0;
  for (size_t k = 0; k < counts.inputs; ++k) {
    const DynValue& scanned = call.input(counts.states + k);
    std::optional<DynValue> cut = without_axis(scanned, lists.in_axes[k]);
    if (!cut) return {};
    const auto rank = static_cast<int64_t>(scanned.shape.size());
    const int64_t axis = lists.in_axes[k] < 0 ? lists.in_axes[k] + rank : lists.in_axes[k];
    trips = scanned.shape[static_cast<size_t>(axis)];
    inputs.push_back(std::move(*cut));
  }
  PYC_ASSIGN(const std::vector<DynValue> outputs, call.run_region("body", std::move(inputs)));
  if (outputs.size() != counts.states + counts.outputs || trips == 0) return {};
  for (size_t i = 0; i < counts.states; ++i) {
    if (same_type(call.input(i), outputs[i])) call.set_output(i, outputs[i]);
  }
  for (size_t k = 0; k < counts.outputs; ++k) {
    std::optional<DynValue> all = with_axis(outputs[counts.states + k], lists.out_axes[k], trips);
    if (all) call.set_output(counts.states + k, std::move(*all));
  }
  return {};
}

Status sequence_map(HostCall& call) {
  const open::OpenGraph* body = attr_graph(call, "body");
  if (body == nullptr) return no_body();
  return give_all(call,
                  host::map_sequence(inputs_from(call, 0), body->outputs.size(), body_of(call)));
}

constexpr Rule kControlRules[] = {
    {.op = "If", .close = if_close, .host = if_host, .foresee = if_foresee},
    {.op = "Loop", .close = loop_close, .host = loop_host, .foresee = loop_foresee},
    {.op = "Scan", .close = scan_close, .host = scan_host, .since = 8, .foresee = scan_foresee},
    {.op = "SequenceMap", .host = sequence_map},
};

}  // namespace

Rules control_rules() { return kControlRules; }

}  // namespace pyc::onnx
