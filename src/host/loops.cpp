#include "host/loops.h"

#include <fmt/format.h>

#include <algorithm>

namespace pyc::host {
namespace {

Status check_count(std::string_view what, size_t expected, size_t found) {
  if (expected == found) return {};
  return {Code::kInvalidArgument,
          fmt::format("the body returns {} {}, expected {}", found, what, expected)};
}

constexpr size_t kMaxParts = size_t{1} << 24;

// One output that grows by an element with every iteration.
struct Stack {
  int64_t axis = 0;
  bool reversed = false;
  open::OpenType element;
  Values parts = {};

  Status push(DynValue part) {
    parts.push_back(std::move(part));
    if (parts.size() <= kMaxParts) return {};
    return {Code::kBudgetExceeded, fmt::format("a loop stacks more than {} values", kMaxParts)};
  }

  Result<DynValue> finish() {
    if (parts.empty()) return empty_stack(element, axis < 0 ? 0 : static_cast<size_t>(axis));
    if (reversed) std::reverse(parts.begin(), parts.end());
    PYC_TRY(check_array(parts[0], "scanned value"));
    PYC_ASSIGN(const size_t at, axis_in(axis, parts[0].shape.size() + 1));
    return stack(parts, at);
  }
};

Status check_scan(const ScanSpec& spec) {
  if (spec.inputs.empty()) return {Code::kInvalidArgument, "there is nothing to scan"};
  if (spec.input_axes.size() != spec.inputs.size() ||
      spec.input_reversed.size() != spec.inputs.size() || spec.output_axes.size() != spec.outputs ||
      spec.output_reversed.size() != spec.outputs || spec.output_elements.size() != spec.outputs) {
    return {Code::kInvalidArgument,
            "axes and directions need one entry for each scanned input or output"};
  }
  return {};
}

}  // namespace

Result<DynValue> empty_stack(const open::OpenType& element, size_t axis) {
  const bool strings = element.kind == open::OpenType::Kind::kStrings;
  if (!strings && (element.kind != open::OpenType::Kind::kTensor || !element.dtype)) {
    return Status(Code::kUnsupported,
                  "the body never ran and the type of a stacked output is not declared");
  }
  Ints shape;
  if (element.shape) {
    for (const open::OpenType::Dim& d : *element.shape)
      shape.push_back(std::max<int64_t>(d.value, 0));
  }
  if (axis > shape.size()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("axis {} is out of range for rank {}", axis, shape.size() + 1));
  }
  shape.insert(shape.begin() + static_cast<int64_t>(axis), 0);
  DynValue like = DynValue::of_strings({0}, {});
  if (!strings) {
    like.kind = DynValue::Kind::kTensor;
    like.dtype = *element.dtype;
  }
  return zeros_like(like, std::move(shape));
}

Result<Values> run_loop(const LoopSpec& spec, const Body& body) {
  Values carried = spec.carried;
  std::vector<Stack> stacks;
  for (size_t k = 0; k < spec.scans; ++k) {
    stacks.push_back(
        {.element = k < spec.scan_elements.size() ? spec.scan_elements[k] : open::OpenType{}});
  }
  bool going = spec.condition.value_or(true);
  for (int64_t i = 0; going && (!spec.trips || i < *spec.trips); ++i) {
    Values inputs{DynValue::of_int(i), DynValue::of_bool(going)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    PYC_ASSIGN(Values outputs, body(std::move(inputs)));
    PYC_TRY(check_count("outputs", 1 + carried.size() + spec.scans, outputs.size()));
    PYC_ASSIGN(const bool said, one_bool(outputs[0], "condition"));
    if (spec.condition) going = said;
    std::move(outputs.begin() + 1, outputs.begin() + 1 + static_cast<int64_t>(carried.size()),
              carried.begin());
    for (size_t k = 0; k < spec.scans; ++k) {
      PYC_TRY(stacks[k].push(std::move(outputs[1 + carried.size() + k])));
    }
  }
  for (Stack& s : stacks) {
    PYC_ASSIGN(DynValue stacked, s.finish());
    carried.push_back(std::move(stacked));
  }
  return carried;
}

Result<Values> run_scan(const ScanSpec& spec, const Body& body) {
  PYC_TRY(check_scan(spec));
  std::vector<size_t> axes;
  int64_t trips = -1;
  for (size_t k = 0; k < spec.inputs.size(); ++k) {
    PYC_TRY(check_array(spec.inputs[k], fmt::format("scanned input {}", k)));
    PYC_ASSIGN(const size_t axis, axis_in(spec.input_axes[k], spec.inputs[k].shape.size()));
    axes.push_back(axis);
    const int64_t dim = spec.inputs[k].shape[axis];
    if (trips >= 0 && dim != trips) {
      return Status(Code::kShapeMismatch,
                    fmt::format("scanned inputs are {} and {} long", trips, dim));
    }
    trips = dim;
  }
  Values states = spec.states;
  std::vector<Stack> stacks;
  for (size_t k = 0; k < spec.outputs; ++k) {
    stacks.push_back({spec.output_axes[k], spec.output_reversed[k], spec.output_elements[k]});
  }
  for (int64_t t = 0; t < trips; ++t) {
    Values inputs = states;
    for (size_t k = 0; k < spec.inputs.size(); ++k) {
      PYC_ASSIGN(DynValue cut,
                 entry(spec.inputs[k], axes[k], spec.input_reversed[k] ? trips - 1 - t : t));
      inputs.push_back(std::move(cut));
    }
    PYC_ASSIGN(Values outputs, body(std::move(inputs)));
    PYC_TRY(check_count("outputs", states.size() + spec.outputs, outputs.size()));
    for (size_t k = 0; k < spec.outputs; ++k) {
      PYC_TRY(stacks[k].push(std::move(outputs[states.size() + k])));
    }
    outputs.resize(states.size());
    states = std::move(outputs);
  }
  for (Stack& s : stacks) {
    PYC_ASSIGN(DynValue stacked, s.finish());
    states.push_back(std::move(stacked));
  }
  return states;
}

namespace {

// The first `length` entries of axis 0.
Result<DynValue> head(const DynValue& value, int64_t length) {
  Ints at(static_cast<size_t>(length));
  for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int64_t>(i);
  return take(value, 0, at);
}

Result<DynValue> padded(const DynValue& value, int64_t length) {
  Ints rest = value.shape;
  rest[0] = length - rest[0];
  PYC_ASSIGN(DynValue zeros, zeros_like(value, std::move(rest)));
  const Values parts{value, std::move(zeros)};
  return concat(parts, 0);
}

Result<Values> scan_batch(const BatchedScanSpec& spec, int64_t batch, int64_t longest,
                          const Body& body) {
  ScanSpec one;
  one.outputs = spec.outputs;
  one.output_axes.resize(spec.outputs);
  one.output_reversed.resize(spec.outputs);
  one.output_elements = spec.output_elements;
  const int64_t length = spec.lengths ? (*spec.lengths)[static_cast<size_t>(batch)] : longest;
  if (length < 0 || length > longest) {
    return Status(Code::kInvalidArgument,
                  fmt::format("a sequence of length {} does not fit {}", length, longest));
  }
  for (const DynValue& state : spec.states) {
    PYC_ASSIGN(DynValue mine, entry(state, 0, batch));
    one.states.push_back(std::move(mine));
  }
  for (const DynValue& input : spec.inputs) {
    PYC_ASSIGN(const DynValue mine, entry(input, 0, batch));
    PYC_ASSIGN(DynValue cut, head(mine, length));
    one.inputs.push_back(std::move(cut));
    one.input_axes.push_back(0);
  }
  one.input_reversed = spec.input_reversed;
  PYC_ASSIGN(Values results, run_scan(one, body));
  for (size_t k = spec.states.size(); k < results.size(); ++k) {
    PYC_ASSIGN(results[k], padded(results[k], longest));
  }
  return results;
}

}  // namespace

Result<Values> run_batched_scan(const BatchedScanSpec& spec, const Body& body) {
  if (spec.inputs.empty()) return Status(Code::kInvalidArgument, "there is nothing to scan");
  PYC_TRY(check_array(spec.inputs[0], "scanned input 0"));
  if (spec.inputs[0].shape.size() < 2) {
    return Status(Code::kRankMismatch, fmt::format("expected batches of sequences, found {}",
                                                   spec.inputs[0].to_string()));
  }
  const int64_t batches = spec.inputs[0].shape[0];
  const int64_t longest = spec.inputs[0].shape[1];
  for (const Values* values : {&spec.states, &spec.inputs}) {
    for (const DynValue& v : *values) {
      PYC_TRY(check_array(v, "input"));
      const bool scanned = values == &spec.inputs;
      if (v.shape.size() < (scanned ? 2 : 1) || v.shape[0] != batches ||
          (scanned && v.shape[1] != longest)) {
        return Status(Code::kShapeMismatch, fmt::format("expected {} batches of {}, found {}",
                                                        batches, longest, v.to_string()));
      }
    }
  }
  if (batches == 0) return Status(Code::kUnsupported, "a scan of no batches");
  if (spec.lengths && static_cast<int64_t>(spec.lengths->size()) != batches) {
    return Status(Code::kSizeMismatch, fmt::format("{} batches have {} sequence lengths", batches,
                                                   spec.lengths->size()));
  }
  std::vector<Values> columns(spec.states.size() + spec.outputs);
  for (int64_t b = 0; b < batches; ++b) {
    PYC_ASSIGN(Values results, scan_batch(spec, b, longest, body));
    for (size_t k = 0; k < columns.size(); ++k) columns[k].push_back(std::move(results[k]));
  }
  Values joined;
  for (const Values& column : columns) {
    PYC_ASSIGN(DynValue whole, stack(column, 0));
    joined.push_back(std::move(whole));
  }
  return joined;
}

Result<Values> map_sequence(const Values& inputs, size_t outputs, const Body& body) {
  if (inputs.empty()) return Status(Code::kInvalidArgument, "expected a sequence, found nothing");
  PYC_TRY(check_sequence(inputs[0], "input 0"));
  const size_t count = inputs[0].items->size();
  std::vector<Values> results(outputs);
  for (size_t i = 0; i < count; ++i) {
    Values arguments;
    for (const DynValue& input : inputs) {
      if (input.kind != DynValue::Kind::kSequence) {
        arguments.push_back(input);
        continue;
      }
      if (input.items->size() != count) {
        return Status(Code::kSizeMismatch,
                      fmt::format("sequences have {} and {} items", count, input.items->size()));
      }
      arguments.push_back((*input.items)[i]);
    }
    PYC_ASSIGN(Values given, body(std::move(arguments)));
    PYC_TRY(check_count("outputs", outputs, given.size()));
    for (size_t k = 0; k < outputs; ++k) results[k].push_back(std::move(given[k]));
  }
  Values sequences;
  for (Values& items : results) sequences.push_back(DynValue::of_items(std::move(items)));
  return sequences;
}

}  // namespace pyc::host
