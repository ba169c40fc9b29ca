#include "host/sequence.h"

#include <fmt/format.h>

#include <numeric>

namespace pyc::host {
namespace {

Result<int64_t> position(int64_t at, size_t count, bool end_allowed) {
  const auto n = static_cast<int64_t>(count);
  if (at < -n || at > n || (at == n && !end_allowed)) {
    return Status(Code::kInvalidArgument,
                  fmt::format("position {} is out of range for a sequence of {}", at, n));
  }
  return at < 0 ? at + n : at;
}

}  // namespace

Result<DynValue> sequence_insert(const DynValue& sequence, const DynValue& item,
                                 std::optional<int64_t> at) {
  PYC_TRY(check_sequence(sequence, "sequence"));
  std::vector<DynValue> items = *sequence.items;
  if (!items.empty() && (items[0].kind != item.kind || items[0].dtype != item.dtype)) {
    return Status(Code::kDtypeMismatch, fmt::format("a sequence of items like {} cannot hold {}",
                                                    items[0].to_string(), item.to_string()));
  }
  const auto end = static_cast<int64_t>(items.size());
  PYC_ASSIGN(const int64_t place, position(at.value_or(end), items.size(), true));
  items.insert(items.begin() + place, item);
  return DynValue::of_items(std::move(items));
}

Result<DynValue> sequence_erase(const DynValue& sequence, std::optional<int64_t> at) {
  PYC_TRY(check_sequence(sequence, "sequence"));
  std::vector<DynValue> items = *sequence.items;
  PYC_ASSIGN(const int64_t place, position(at.value_or(-1), items.size(), false));
  items.erase(items.begin() + place);
  return DynValue::of_items(std::move(items));
}

Result<DynValue> sequence_at(const DynValue& sequence, int64_t at) {
  PYC_TRY(check_sequence(sequence, "sequence"));
  PYC_ASSIGN(const int64_t place, position(at, sequence.items->size(), false));
  return (*sequence.items)[static_cast<size_t>(place)];
}

Result<DynValue> split_to_sequence(const DynValue& input, size_t axis, const Ints& sizes) {
  PYC_TRY(check_array(input, "input"));
  if (axis >= input.shape.size()) {
    return Status(Code::kRankMismatch, fmt::format("{} has no axis {}", input.to_string(), axis));
  }
  int64_t left = input.shape[axis];
  for (const int64_t size : sizes) {
    if (size < 0 || size > left) {
      return Status(Code::kInvalidArgument,
                    fmt::format("parts do not add up to dim {} of {}", axis, input.to_string()));
    }
    left -= size;
  }
  if (left != 0) {
    return Status(Code::kInvalidArgument,
                  fmt::format("parts leave {} of dim {} of {}", left, axis, input.to_string()));
  }
  std::vector<DynValue> parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    Ints at(static_cast<size_t>(size));
    std::iota(at.begin(), at.end(), begin);
    PYC_ASSIGN(DynValue part, take(input, axis, at));
    parts.push_back(std::move(part));
    begin += size;
  }
  return DynValue::of_items(std::move(parts));
}

}  // namespace pyc::host
