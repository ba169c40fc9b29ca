#include "driver/compile_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <type_traits>

#include "base/matrix_unit.h"
#include "base/thread_pool.h"
#include "driver/devices.h"
#include "driver/targets.h"
#include "ir/rules.h"

namespace pyc::driver {
namespace {

// The words of the table.
OptionAccepts anything() { return {}; }
OptionAccepts range(int64_t lo, int64_t hi) { return {.lo = lo, .hi = hi}; }
OptionAccepts among(std::vector<int64_t> numbers) { return {.among = std::move(numbers)}; }
OptionAccepts words(std::vector<std::string_view> (*list)()) { return {.words = list}; }
OptionAccepts form(std::string_view text) { return {.form = text}; }
std::vector<std::string_view> precision_names() {
  return {dtype_name(DType::kF32), dtype_name(DType::kBF16), dtype_name(DType::kF16)};
}
std::vector<std::string_view> fallback_names() { return {"refuse", kFallbackAllowed}; }
std::vector<std::string_view> mode_names() { return {"balanced", kMemoryFirst, kLatencyFirst}; }
std::vector<std::string_view> effort_names() { return {kFastDev, "balanced", kMaxPerf}; }
std::vector<std::string_view> rails_names() { return {kRailsOff, kRailsShadow, "on"}; }
std::vector<std::string_view> unit_names() {
  std::vector<std::string_view> names = matrix_unit_names();
  names.insert(names.begin(), kNoMatrixUnit);
  return names;
}

// Per type of a field: its kind, its text, and the way back.
template <class T>
OptionKind kind_of(const OptionAccepts& accepts) {
  if constexpr (std::same_as<T, bool>) return OptionKind::kSwitch;
  if constexpr (std::integral<T>) return OptionKind::kInteger;
  if constexpr (std::same_as<T, Determinism> || std::same_as<T, DType>) return OptionKind::kWord;
  if constexpr (std::same_as<T, std::string>) {
    return accepts.words != nullptr ? OptionKind::kWord : OptionKind::kText;
  }
  return OptionKind::kList;
}

std::string to_option_text(bool value) { return value ? "on" : "off"; }
std::string to_option_text(std::integral auto value) { return std::to_string(value); }
std::string to_option_text(Determinism value) { return std::string(determinism_name(value)); }
std::string to_option_text(DType value) { return std::string(dtype_name(value)); }
std::string to_option_text(const std::string& value) { return value; }
std::string to_option_text(const Names& items) { return fmt::format("{}", fmt::join(items, "\n")); }
std::string to_option_text(const DimSizes& dims) {
  Names lines;
  for (const auto& [name, size] : dims) lines.push_back(fmt::format("{}={}", name, size));
  return to_option_text(lines);
}
std::string to_option_text(const InputShapes& shapes) {
  Names lines;
  for (const auto& [name, shape] : shapes) {
    lines.push_back(fmt::format("{}={}", name, fmt::join(shape, ",")));
  }
  return to_option_text(lines);
}
std::string to_option_text(const StatePairs& states) {
  Names lines;
  for (const auto& [input, output] : states) lines.push_back(fmt::format("{}={}", input, output));
  return to_option_text(lines);
}

Status expected(const OptionRow& row, std::string_view what, std::string_view found) {
  return {Code::kInvalidArgument,
          fmt::format("{}: expected {}, found '{}'", row.name, what, found)};
}

std::string accepted_numbers(const OptionAccepts& accepts) {
  if (!accepts.among.empty()) return fmt::format("one of {}", fmt::join(accepts.among, ", "));
  if (accepts.hi == INT64_MAX) return fmt::format("an integer of {} or more", accepts.lo);
  return fmt::format("an integer from {} to {}", accepts.lo, accepts.hi);
}

Status check_number(const OptionRow& row, int64_t number, std::string_view text) {
  const OptionAccepts& a = row.accepts;
  const bool listed =
      a.among.empty() || std::find(a.among.begin(), a.among.end(), number) != a.among.end();
  if (listed && number >= a.lo && number <= a.hi) return {};
  return expected(row, accepted_numbers(a), text);
}

Status check_word(const OptionRow& row, std::string_view word) {
  if (row.accepts.words == nullptr) return {};
  const std::vector<std::string_view> known = row.accepts.words();
  if (std::find(known.begin(), known.end(), word) != known.end()) return {};
  return {Code::kUnknownOption,
          fmt::format("{} '{}' is not known; known are {}{}", row.name, word,
                      fmt::join(known, ", "), ir::did_you_mean(ir::closest_name(word, known)))};
}

template <std::integral T>
bool read_number(std::string_view text, T& number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end;
}

Status from_text(const OptionRow& row, std::string_view text, bool& value) {
  if (text != "on" && text != "off") return expected(row, "on or off", text);
  value = text == "on";
  return {};
}
Status from_text(const OptionRow& row, std::string_view text, std::integral auto& value) {
  auto number = value;
  if (!read_number(text, number)) return expected(row, accepted_numbers(row.accepts), text);
  PYC_TRY(check_number(row, number, text));
  value = number;
  return {};
}
Status from_text(const OptionRow& row, std::string_view text, Determinism& value) {
  PYC_TRY(check_word(row, text));
  const std::vector<std::string_view> names = determinism_names();
  value = static_cast<Determinism>(std::find(names.begin(), names.end(), text) - names.begin());
  return {};
}
Status from_text(const OptionRow& row, std::string_view text, DType& value) {
  PYC_TRY(check_word(row, text));
  for (int t = 0; t < kDTypeCount; ++t) {
    if (dtype_name(static_cast<DType>(t)) == text) value = static_cast<DType>(t);
  }
  return {};
}
// "" is the default of a text.
Status from_text(const OptionRow& row, std::string_view text, std::string& value) {
  if (!text.empty()) PYC_TRY(check_word(row, text));
  value = text;
  return {};
}
Status from_text(const OptionRow& row, std::string_view text, Names& items) {
  if (text.empty()) return expected(row, "a name", text);
  items.emplace_back(text);
  return {};
}

// "NAME=TEXT"; a name may hold an equals sign.
struct NameAndText {
  std::string name;
  std::string_view text;
};
Result<NameAndText> split_item(const OptionRow& row, std::string_view item) {
  const size_t equal = item.rfind('=');
  if (equal == std::string_view::npos || equal == 0) return expected(row, row.accepts.form, item);
  return NameAndText{std::string(item.substr(0, equal)), item.substr(equal + 1)};
}
Result<int64_t> size_from(const OptionRow& row, std::string_view text) {
  int64_t size = 0;
  if (read_number(text, size) && size >= 0) return size;
  return expected(row, "a size of 0 or more", text);
}
Status from_text(const OptionRow& row, std::string_view text, DimSizes& dims) {
  PYC_ASSIGN(NameAndText item, split_item(row, text));
  PYC_ASSIGN(const int64_t size, size_from(row, item.text));
  dims.insert_or_assign(std::move(item.name), size);
  return {};
}
Status from_text(const OptionRow& row, std::string_view text, StatePairs& states) {
  PYC_ASSIGN(NameAndText item, split_item(row, text));
  if (item.text.empty()) return expected(row, row.accepts.form, text);
  states.emplace_back(std::move(item.name), item.text);
  return {};
}
// "2,3" or "2x3"; "" is the shape of a scalar.
Status from_text(const OptionRow& row, std::string_view text, InputShapes& shapes) {
  PYC_ASSIGN(NameAndText item, split_item(row, text));
  std::vector<int64_t> shape;
  for (size_t at = 0; at < item.text.size();) {
    const size_t end = std::min(item.text.find_first_of(",x", at), item.text.size());
    PYC_ASSIGN(const int64_t size, size_from(row, item.text.substr(at, end - at)));
    shape.push_back(size);
    at = end + 1;
  }
  if (static_cast<int64_t>(shape.size()) > ir::kMaxRank) {
    return expected(row, fmt::format("at most {} dims", ir::kMaxRank), text);
  }
  shapes.insert_or_assign(std::move(item.name), std::move(shape));
  return {};
}

template <class T>
Status check_field(const OptionRow& row, const T& value) {
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    return check_number(row, value, std::to_string(value));
  } else if constexpr (std::same_as<T, std::string>) {
    return value.empty() ? Status() : check_word(row, value);
  } else if constexpr (std::same_as<T, DType>) {
    return check_word(row, dtype_name(value));
  } else {
    return {};
  }
}

template <auto Field>
OptionRow make_row(std::string_view name, OptionAccepts accepts, OptionEffect effect,
                   OptionBits bits, OptionOffer offer, std::string_view help) {
  using T = std::remove_cvref_t<decltype(std::declval<CompileOptions>().*Field)>;
  OptionRow row{};
  row.name = name;
  row.kind = kind_of<T>(accepts);
  row.accepts = std::move(accepts);
  row.effect = effect;
  row.bits = bits;
  row.offer = offer;
  row.help = help;
  row.text = [](const CompileOptions& o) { return to_option_text(o.*Field); };
  row.set = [](const OptionRow& r, CompileOptions& o, std::string_view text) {
    return from_text(r, text, o.*Field);
  };
  row.reset = [](CompileOptions& o) { o.*Field = CompileOptions().*Field; };
  row.check = [](const OptionRow& r, const CompileOptions& o) { return check_field(r, o.*Field); };
  return row;
}

std::vector<OptionRow> make_rows() {
  using enum OptionEffect;
  using enum OptionBits;
  using enum OptionOffer;
  return {
#define PYC_OPTION(type, field, initial, name, ...) \
  make_row<&CompileOptions::field>(name, __VA_ARGS__),
#include "driver/compile_options.inc"
#undef PYC_OPTION
  };
}

bool is_default(const OptionRow& row, const CompileOptions& options) {
  return row.text(options) == row.text(CompileOptions());
}

std::string assignment(const OptionRow& row, const CompileOptions& options) {
  std::string value = row.text(options);
  std::replace(value.begin(), value.end(), '\n', ',');
  return fmt::format("{}={}", row.name, value);
}

}  // namespace

std::vector<std::string_view> determinism_names() { return {"strict", "balanced", "fast"}; }

std::string_view determinism_name(Determinism level) {
  return determinism_names()[static_cast<size_t>(level)];
}

std::span<const OptionRow> option_rows() {
  static const std::vector<OptionRow> rows = make_rows();
  return rows;
}

Result<const OptionRow*> find_option(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OptionRow& row : option_rows()) {
    if (row.offer == OptionOffer::kInternal) continue;
    if (row.name == name) return &row;
    names.push_back(row.name);
  }
  return Status(Code::kUnknownOption, fmt::format("there is no compile option '{}'{}", name,
                                                  ir::did_you_mean(ir::closest_name(name, names))));
}

Status set_option(CompileOptions& options, std::string_view name, std::string_view text) {
  PYC_ASSIGN(const OptionRow* row, find_option(name));
  PYC_TRY(row->set(*row, options, text));
  if (std::ranges::find(options.asked, name) == options.asked.end()) {
    options.asked.emplace_back(name);
  }
  return {};
}

Status reset_option(CompileOptions& options, std::string_view name) {
  PYC_ASSIGN(const OptionRow* row, find_option(name));
  row->reset(options);
  std::erase(options.asked, name);
  return {};
}

bool was_asked(const CompileOptions& options, std::string_view name) {
  const auto rows = option_rows();
  const auto row = std::ranges::find(rows, name, &OptionRow::name);
  return std::ranges::find(options.asked, name) != options.asked.end() ||
         (row != rows.end() && !is_default(*row, options));
}

Status check_options(const CompileOptions& options) {
  for (const OptionRow& row : option_rows()) PYC_TRY(row.check(row, options));
  return {};
}

std::string options_key(const CompileOptions& options) {
  Names parts;
  for (const OptionRow& row : option_rows()) {
    if (row.effect != OptionEffect::kRun) parts.push_back(assignment(row, options));
  }
  return fmt::format("{}\n", fmt::join(parts, " "));
}

std::string options_summary(const CompileOptions& options) {
  Names parts;
  for (const OptionRow& row : option_rows()) {
    if (!is_default(row, options)) parts.push_back(assignment(row, options));
  }
  return parts.empty() ? "defaults" : fmt::format("{}", fmt::join(parts, " "));
}

std::vector<std::string_view> decided_options(const CompileOptions& options) {
  std::vector<std::string_view> names;
  for (const OptionRow& row : option_rows()) {
    if (row.effect == OptionEffect::kProgram && !is_default(row, options)) {
      names.push_back(row.name);
    }
  }
  return names;
}

}  // namespace pyc::driver
