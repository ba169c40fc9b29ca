#include <fmt/format.h>

#include "host/sequence.h"
#include "import/onnx/host_rules.h"
#include "import/onnx/rules.h"

namespace pyc::onnx {
namespace {

constexpr int64_t kMaxParts = int64_t{1} << 20;

Status sequence_construct(HostCall& call) {
  std::vector<DynValue> items = inputs_from(call, 0);
  for (const DynValue& item : items) {
    PYC_TRY(host::check_array(item, "item"));
    if (item.kind != items[0].kind || item.dtype != items[0].dtype) {
      return {Code::kDtypeMismatch, fmt::format("items {} and {} are of two types",
                                                items[0].to_string(), item.to_string())};
    }
  }
  call.set_output(0, DynValue::of_items(std::move(items)));
  return {};
}

Status sequence_empty(HostCall& call) { return give(call, DynValue::of_items({})); }

// The position given as input i, or none.
Result<std::optional<int64_t>> position(HostCall& call, size_t i) {
  if (!call.has(i)) return std::optional<int64_t>();
  PYC_ASSIGN(const int64_t at, host::one_int(call.input(i), "position"));
  return std::optional(at);
}

Status sequence_insert(HostCall& call) {
  PYC_ASSIGN(const std::optional<int64_t> at, position(call, 2));
  PYC_TRY(host::check_array(input_of(call, 1), "item"));
  return give(call, host::sequence_insert(input_of(call, 0), input_of(call, 1), at));
}

Status sequence_erase(HostCall& call) {
  PYC_ASSIGN(const std::optional<int64_t> at, position(call, 1));
  return give(call, host::sequence_erase(input_of(call, 0), at));
}

Status sequence_at(HostCall& call) {
  PYC_ASSIGN(const int64_t at, host::one_int(input_of(call, 1), "position"));
  return give(call, host::sequence_at(input_of(call, 0), at));
}

Status sequence_length(HostCall& call) {
  PYC_TRY(host::check_sequence(input_of(call, 0), "input"));
  return give(call, DynValue::of_int(static_cast<int64_t>(call.input(0).items->size())));
}

// Parts of one length; the last one may be shorter.
Result<Ints> equal_parts(int64_t whole, int64_t part) {
  if (part < 1 || whole / part >= kMaxParts) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} cannot be split into parts of {}", whole, part));
  }
  Ints sizes(static_cast<size_t>(whole / part), part);
  if (whole % part != 0) sizes.push_back(whole % part);
  return sizes;
}

Status split_to_sequence(HostCall& call) {
  const DynValue& input = input_of(call, 0);
  PYC_TRY(host::check_array(input, "input"));
  PYC_ASSIGN(const size_t axis, host::axis_in(call.attr_int("axis", 0), input.shape.size()));
  Ints sizes;
  if (!call.has(1)) {
    PYC_ASSIGN(sizes, equal_parts(input.shape[axis], 1));
  } else if (call.input(1).shape.empty()) {
    PYC_ASSIGN(const int64_t part, host::one_int(call.input(1), "split"));
    PYC_ASSIGN(sizes, equal_parts(input.shape[axis], part));
  } else {
    PYC_TRY(host::check_numbers(call.input(1), "split"));
    sizes = to_ints(call.input(1));
  }
  PYC_ASSIGN(DynValue parts, host::split_to_sequence(input, axis, sizes));
  if (!call.has(1) && call.attr_int("keepdims", 1) == 0) {
    std::vector<DynValue> items = *parts.items;
    for (DynValue& item : items) item.shape.erase(item.shape.begin() + static_cast<int64_t>(axis));
    parts = DynValue::of_items(std::move(items));
  }
  call.set_output(0, std::move(parts));
  return {};
}

Status concat_from_sequence(HostCall& call) {
  PYC_TRY(host::check_sequence(input_of(call, 0), "input"));
  const std::vector<DynValue>& items = *call.input(0).items;
  if (items.empty()) return {Code::kInvalidArgument, "an empty sequence cannot be joined"};
  for (const DynValue& item : items) PYC_TRY(host::check_array(item, "item"));
  const bool fresh = call.attr_int("new_axis", 0) != 0;
  const size_t rank = items[0].shape.size() + (fresh ? 1 : 0);
  PYC_ASSIGN(const size_t axis, host::axis_in(call.attr_int("axis", 0), rank));
  return give(call, fresh ? host::stack(items, axis) : host::concat(items, axis));
}

Status optional(HostCall& call) { return give(call, input_of(call, 0)); }

Status optional_get(HostCall& call) {
  if (!call.has(0)) return {Code::kInvalidArgument, "the optional holds nothing"};
  return give(call, call.input(0));
}

Status optional_has(HostCall& call) { return give(call, DynValue::of_bool(call.has(0))); }

constexpr Rule kSequenceRules[] = {
    {"ConcatFromSequence", nullptr, concat_from_sequence},
    {"Optional", nullptr, optional},
    {"OptionalGetElement", nullptr, optional_get},
    {"OptionalHasElement", nullptr, optional_has},
    {"SequenceAt", nullptr, sequence_at},
    {"SequenceConstruct", nullptr, sequence_construct},
    {"SequenceEmpty", nullptr, sequence_empty},
    {"SequenceErase", nullptr, sequence_erase},
    {"SequenceInsert", nullptr, sequence_insert},
    {"SequenceLength", nullptr, sequence_length},
    {"SplitToSequence", nullptr, split_to_sequence},
};

}  // namespace

Rules sequence_rules() { return kSequenceRules; }

}  // namespace pyc::onnx
