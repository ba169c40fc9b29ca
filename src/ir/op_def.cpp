#include "ir/op_def.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <variant>

#include "base/lexer.h"
#include "ir/literal.h"
#include "ir/rules.h"

namespace pyc::ir {
namespace {

// Names longer than this are never near another one; keeps suggestions cheap.
constexpr size_t kLongestCompared = 64;
// Every integer up to here is a double.
constexpr int64_t kExactInDouble = int64_t{1} << 53;

char lower_case(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`.
size_t edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<size_t> rows(3 * width);
  size_t* before = &rows[0];
  size_t* above = &rows[width];
  size_t* row = &rows[2 * width];
  for (size_t j = 0; j < width; ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j < width; ++j) {
      const bool same = lower_case(a[i - 1]) == lower_case(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower_case(a[i - 1]) == lower_case(b[j - 2]) &&
          lower_case(a[i - 2]) == lower_case(b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

const AttrDef* find_attr(const OpDef& op, std::string_view name) {
  for (const AttrDef& attr : op.attrs) {
    if (attr.name == name) return &attr;
  }
  return nullptr;
}

Status bad_attr_kind(const OpDef& op, const AttrDef& expected, const Attr& found) {
  return {Code::kInvalidArgument,
          fmt::format("[bad_attr_kind] attribute '{}' of op '{}': expected {}, found {} {}",
                      expected.name, op.name, attr_kind_name(expected.kind),
                      attr_kind_name(kind_of(found)), attr_to_string(found))};
}

Status missing_attr(const OpDef& op, const AttrDef& attr) {
  return {Code::kInvalidArgument, fmt::format("[missing_attr] op '{}' needs attribute '{}' ({})",
                                              op.name, attr.name, attr_kind_name(attr.kind))};
}

// Of an attribute of the right kind: that it is a dtype, if it should be one.
Status check_value(const OpDef& op, std::string_view name, const Attr& attr) {
  const DType* dtype = std::get_if<DType>(&attr);
  if (dtype == nullptr || static_cast<int>(*dtype) < kDTypeCount) return {};
  return {Code::kInvalidArgument,
          fmt::format("[bad_attr_value] attribute '{}' of op '{}': expected a dtype, found {}",
                      name, op.name, attr_to_string(attr))};
}

bool to_exact_double(int64_t value, double& out) {
  out = static_cast<double>(value);
  return value >= -kExactInDouble && value <= kExactInDouble;
}

// Integers given where floats are expected become floats, if no digit is lost.
void widen_to_floats(AttrKind expected, Attr& attr) {
  if (expected == AttrKind::kFloat && kind_of(attr) == AttrKind::kInt) {
    double value = 0;
    if (to_exact_double(std::get<int64_t>(attr), value)) attr = value;
  }
  if (expected == AttrKind::kFloats && kind_of(attr) == AttrKind::kInts) {
    const auto& ints = std::get<std::vector<int64_t>>(attr);
    std::vector<double> values(ints.size());
    for (size_t i = 0; i < ints.size(); ++i) {
      if (!to_exact_double(ints[i], values[i])) return;
    }
    attr = std::move(values);
  }
}

template <class T>
const T& get_attr(const Attrs& attrs, std::string_view name) {
  const auto found = attrs.find(name);
  PYC_CHECK(found != attrs.end(), fmt::format("attribute '{}' is not defined", name));
  const T* value = std::get_if<T>(&found->second);
  PYC_CHECK(value != nullptr, fmt::format("attribute '{}' is of another kind", name));
  return *value;
}

}  // namespace

AttrDef::AttrDef(std::string_view name, AttrKind kind)
    : name(name), kind(kind), required(true), may_be_absent(false), fallback(int64_t{0}) {}
AttrDef::AttrDef(std::string_view name, const Attr& fallback)
    : name(name),
      kind(kind_of(fallback)),
      required(false),
      may_be_absent(false),
      fallback(fallback) {}
AttrDef AttrDef::or_absent(std::string_view name, AttrKind kind) {
  AttrDef def(name, kind);
  def.required = false;
  def.may_be_absent = true;
  return def;
}
AttrDef::~AttrDef() = default;
AttrDef::AttrDef(const AttrDef& other) = default;
AttrDef& AttrDef::operator=(const AttrDef& other) = default;

std::string_view closest_name(std::string_view name, std::span<const std::string_view> candidates) {
  if (name.empty() || name.size() > kLongestCompared) return "";
  // A name with every letter replaced is not near.
  const size_t limit = std::min(std::clamp<size_t>(name.size() / 3, 1, 4), name.size() - 1);
  std::string_view best;
  size_t best_distance = limit + 1;
  for (const std::string_view candidate : candidates) {
    if (name == "gpu" && candidate == "cuda") return candidate;  // not 'cpu', a letter away
    if (candidate.size() + limit < name.size() || name.size() + limit < candidate.size()) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view closest) {
  return closest.empty() ? "" : fmt::format(", did you mean '{}'?", closest);
}

std::vector<OnnxWord> onnx_words(std::string_view list) {
  std::vector<OnnxWord> words;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    const std::string_view word = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    const size_t at = word.find('=');
    words.push_back({word.substr(0, at), at == word.npos ? word : word.substr(at + 1)});
  }
  return words;
}

int64_t InferArgs::attr_int(std::string_view name) const { return get_attr<int64_t>(attrs, name); }
double InferArgs::attr_float(std::string_view name) const { return get_attr<double>(attrs, name); }
bool InferArgs::attr_bool(std::string_view name) const { return get_attr<bool>(attrs, name); }
DType InferArgs::attr_dtype(std::string_view name) const { return get_attr<DType>(attrs, name); }
const std::string& InferArgs::attr_string(std::string_view name) const {
  return get_attr<std::string>(attrs, name);
}
const std::vector<int64_t>& InferArgs::attr_ints(std::string_view name) const {
  return get_attr<std::vector<int64_t>>(attrs, name);
}

OpSet::OpSet(std::vector<const OpDef*> ops) : ops_(std::move(ops)) {
  const auto by_name = [](const OpDef* a, const OpDef* b) { return a->name < b->name; };
  std::sort(ops_.begin(), ops_.end(), by_name);
  for (size_t i = 1; i < ops_.size(); ++i) {
    PYC_CHECK(ops_[i - 1]->name != ops_[i]->name,
              fmt::format("two ops are named '{}'", ops_[i]->name));
  }
}

const OpDef* OpSet::find(std::string_view name) const {
  const auto before = [](const OpDef* op, std::string_view wanted) { return op->name < wanted; };
  const auto found = std::lower_bound(ops_.begin(), ops_.end(), name, before);
  return found != ops_.end() && (*found)->name == name ? *found : nullptr;
}

std::string_view OpSet::suggest(std::string_view name) const {
  std::vector<std::string_view> names;
  names.reserve(ops_.size());
  for (const OpDef* op : ops_) names.push_back(op->name);
  return closest_name(name, names);
}

Status unknown_attr(const OpDef& op, std::string_view name) {
  std::vector<std::string_view> names;
  names.reserve(op.attrs.size());
  for (const AttrDef& attr : op.attrs) names.push_back(attr.name);
  return {Code::kInvalidArgument,
          fmt::format("[unknown_attr] op '{}' has no attribute '{}'{}", op.name,
                      cut_text(name, kLongestCompared), did_you_mean(closest_name(name, names)))};
}

void StreamNumbers::number(const OpDef& op, Attrs& attrs) {
  if (!op.traits.random) return;
  const Attr& stream = attrs.try_emplace("stream", next_).first->second;
  const auto* given = std::get_if<int64_t>(&stream);
  if (given == nullptr || *given < next_) return;
  next_ = *given == std::numeric_limits<int64_t>::max() ? 0 : *given + 1;
}

Result<Attrs> complete_attrs(const OpDef& op, Attrs attrs) {
  for (auto& [name, attr] : attrs) {
    const AttrDef* def = find_attr(op, name);
    if (def == nullptr) return unknown_attr(op, name);
    widen_to_floats(def->kind, attr);
    if (kind_of(attr) != def->kind) return bad_attr_kind(op, *def, attr);
  }
  const bool all_given = attrs.size() == op.attrs.size();  // each of them has one of the names
  for (const AttrDef& def : op.attrs) {
    if (all_given || attrs.find(def.name) != attrs.end()) continue;
    if (def.required) return missing_attr(op, def);
    if (def.may_be_absent) continue;
    Attr fallback = def.fallback;
    widen_to_floats(def.kind, fallback);
    attrs.emplace(def.name, std::move(fallback));
  }
  for (const auto& [name, attr] : attrs) PYC_TRY(check_value(op, name, attr));
  return attrs;
}

Status check_attrs(const OpDef& op, const Attrs& attrs) {
  for (const auto& [name, attr] : attrs) {
    const AttrDef* def = find_attr(op, name);
    if (def == nullptr) return unknown_attr(op, name);
    if (attr.valueless_by_exception() || kind_of(attr) != def->kind) {
      return bad_attr_kind(op, *def, attr);
    }
    PYC_TRY(check_value(op, name, attr));
  }
  if (attrs.size() == op.attrs.size()) return {};  // each of them has one of the names
  for (const AttrDef& def : op.attrs) {
    if (!def.may_be_absent && attrs.find(def.name) == attrs.end()) return missing_attr(op, def);
  }
  return {};
}

}  // namespace pyc::ir
