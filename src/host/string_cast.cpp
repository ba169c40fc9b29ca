#include "host/string_cast.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "host/elements.h"

namespace pyc::host {
namespace {

constexpr int kMaxDigits = 9;  // enough for every type narrower than f64

std::string shortest_f64(double value) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  return {buffer, end};
}

// "d.ddde±xx" of the shortest decimal that reads back as the same element.
std::string shortest(Word word, DType dtype) {
  const double value = word_to_double(word, dtype);
  if (dtype == DType::kF64) return shortest_f64(value);
  for (int digits = 0; digits < kMaxDigits; ++digits) {
    std::string text = fmt::format("{:.{}e}", value, digits);
    double back = 0.0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    if (word_from_double(back, dtype) == word) return text;
  }
  return fmt::format("{:.{}e}", value, kMaxDigits);
}

std::string float_text(Word word, DType dtype) {
  const double value = word_to_double(word, dtype);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const std::string text = shortest(word, dtype);
  const size_t e = text.find('e');
  int exponent = 0;
  const char* digits_of_exponent = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, text.data() + text.size(), exponent);
  std::string digits;
  for (const char c : std::string_view(text).substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  const std::string sign = text[0] == '-' ? "-" : "";
  // As numpy does: without an exponent from 1e-4 on, to where the type's digits end.
  const double plain_to = dtype == DType::kF64 ? 1e16 : dtype == DType::kF32 ? 1e6 : 1e3;
  if (value != 0.0 && (std::abs(value) < 1e-4 || std::abs(value) >= plain_to)) {
    const std::string tail = digits.size() > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}{:02}", sign, digits[0], tail, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  }
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kWhite = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kWhite);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhite) - begin + 1);
}

// What a decimal beyond the type's range becomes: its parts tell whether it is tiny or huge.
double beyond_range(std::string_view text) {
  const double sign = text.starts_with('-') ? -1.0 : 1.0;
  const size_t e = text.find_first_of("eE");
  const std::string_view whole = text.substr(0, std::min(e, text.find('.')));
  const bool tiny = e != std::string_view::npos
                        ? text.substr(e + 1).starts_with('-')
                        : whole.find_first_of("123456789") == std::string_view::npos;
  return sign * (tiny ? 0.0 : HUGE_VAL);
}

template <class T>
std::optional<double> parse_float(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (at != end || text.empty() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) return beyond_range(text);
  return static_cast<double>(value);
}

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (at != end || text.empty() || error != std::errc()) return std::nullopt;
  return value;
}

std::optional<Word> parse_int(std::string_view text, DType to) {
  if (is_unsigned_int(to)) {
    if (const auto u = parse_whole<uint64_t>(text)) return convert_word(*u, DType::kU64, to);
  }
  if (const auto i = parse_whole<int64_t>(text)) return word_from_int(*i, to);
  const auto d = parse_float<double>(text);
  if (!d) return std::nullopt;
  return word_from_double(*d, to);
}

bool same_word(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

std::optional<Word> parse(std::string_view text, DType to) {
  if (to == DType::kBool) {
    if (same_word(text, "true")) return 1;
    if (same_word(text, "false")) return 0;
    const auto d = parse_float<double>(text);
    if (!d) return std::nullopt;
    return *d != 0.0 ? 1 : 0;
  }
  if (!is_float(to)) return parse_int(text, to);
  const auto d = to == DType::kF32 ? parse_float<float>(text) : parse_float<double>(text);
  if (!d) return std::nullopt;
  return word_from_double(*d, to);
}

}  // namespace

std::string number_text(Word word, DType dtype) {
  if (dtype == DType::kBool) return word != 0 ? "True" : "False";
  if (is_float(dtype)) return float_text(word, dtype);
  if (is_signed_int(dtype)) {
    return std::to_string(static_cast<int64_t>(convert_word(word, dtype, DType::kI64)));
  }
  return std::to_string(convert_word(word, dtype, DType::kU64));
}

Result<DynValue> numbers_to_strings(const DynValue& input) {
  PYC_TRY(check_numbers(input, "input"));
  PYC_ASSIGN(const DynValue space, zeros_like(DynValue::of_strings({0}, {}), input.shape));
  std::vector<std::string> texts = *space.strings;
  const auto size = static_cast<size_t>(dtype_size(input.dtype));
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i] = number_text(load_word(input.bytes.data() + i * size, input.dtype), input.dtype);
  }
  return DynValue::of_strings(input.shape, std::move(texts));
}

Result<DynValue> strings_to_numbers(const DynValue& input, DType to) {
  PYC_TRY(check_strings(input, "input"));
  PYC_ASSIGN(NewTensor made, new_tensor(to, input.shape));
  std::byte* at = made.data;
  for (const std::string& text : *input.strings) {
    const auto word = parse(trimmed(text), to);
    if (!word) {
      return Status(Code::kInvalidArgument, fmt::format("'{}' is no {}", text, dtype_name(to)));
    }
    store_word(at, to, *word);
    at += dtype_size(to);
  }
  return made.value;
}

}  // namespace pyc::host
