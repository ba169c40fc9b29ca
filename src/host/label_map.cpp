#include "host/label_map.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <unordered_map>

#include "host/elements.h"

namespace pyc::host {
namespace {

// Elements as numbers that are equal when the elements are.
Ints identities(const DynValue& value) {
  if (!is_float(value.dtype)) return to_ints(value);
  Ints out;
  for (const double v : to_doubles(value)) {
    const double same = std::isnan(v) ? std::nan("") : v == 0.0 ? 0.0 : v;
    out.push_back(std::bit_cast<int64_t>(same));
  }
  return out;
}

template <class K>
Ints look_up(const std::vector<K>& input, const std::vector<K>& keys) {
  std::unordered_map<K, int64_t> places;
  for (size_t i = 0; i < keys.size(); ++i) places[keys[i]] = static_cast<int64_t>(i);
  Ints found;
  for (const K& element : input) {
    const auto it = places.find(element);
    found.push_back(it == places.end() ? static_cast<int64_t>(keys.size()) : it->second);
  }
  return found;
}

Status check_kinds(const DynValue& input, const DynValue& keys) {
  const bool strings = !input.is_tensor();
  if (strings == !keys.is_tensor() && (strings || is_float(input.dtype) == is_float(keys.dtype))) {
    return {};
  }
  return {Code::kDtypeMismatch, fmt::format("elements of {} are looked up among keys {}",
                                            input.to_string(), keys.to_string())};
}

}  // namespace

Result<DynValue> map_labels(const DynValue& input, const DynValue& keys, const DynValue& values,
                            const DynValue& fallback) {
  PYC_TRY(check_array(input, "input"));
  PYC_TRY(check_array(keys, "keys"));
  PYC_TRY(check_array(values, "values"));
  PYC_TRY(check_array(fallback, "default"));
  PYC_TRY(check_kinds(input, keys));
  if (keys.shape.size() != 1 || values.shape != keys.shape || fallback.elements() != 1) {
    return Status(Code::kShapeMismatch,
                  fmt::format("keys {}, values {} and default {} do not fit", keys.to_string(),
                              values.to_string(), fallback.to_string()));
  }
  PYC_ASSIGN(const DynValue last, reshaped(fallback, {1}));
  const DynValue parts[] = {values, last};
  PYC_ASSIGN(const DynValue table, concat(parts, 0));
  const Ints places = input.is_tensor() ? look_up(identities(input), identities(keys))
                                        : look_up(*input.strings, *keys.strings);
  return pick(table, input.shape, places);
}

}  // namespace pyc::host
