#include "ir/literal.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <system_error>

#include "base/escape.h"
#include "base/lexer.h"

namespace pyc::ir {
namespace {

// The largest number of significant digits a float type narrower than f32 can need (f16).
constexpr int kNarrowDigits = 5;
constexpr size_t kShownName = 80;

Word canonical_nan(DType dtype) {
  return word_from_double(std::numeric_limits<double>::quiet_NaN(), dtype);
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Word> parse_int(std::string_view text, DType dtype) {
  Word value = 0;
  if (is_signed_int(dtype)) {
    const auto number = parse_number<int64_t>(text);
    if (!number) return std::nullopt;
    value = static_cast<Word>(*number);
  } else {
    const auto number = parse_number<uint64_t>(text);
    if (!number) return std::nullopt;
    value = *number;
  }
  // A narrower type keeps the low bits: the value was in range when nothing is lost.
  const DType wide = is_signed_int(dtype) ? DType::kI64 : DType::kU64;
  if (convert_word(value, wide, dtype) != value) return std::nullopt;
  return value;
}

std::optional<Word> parse_bits(std::string_view digits, DType dtype) {
  Word value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  if (digits.empty() || error != std::errc() || stop != end) return std::nullopt;
  const int64_t bits = dtype_bits(dtype);
  if (bits < 64 && (value >> bits) != 0) return std::nullopt;
  return value;
}

// Whether `x` is no further out than the type's numbers reach, for the types whose conversion
// does not say so by an infinity or NaN.
bool reaches(double x, DType dtype) {
  constexpr double kBeyondF4E2M1 = 7.0;  // rounds to 8, the number that would follow 6
  return dtype != DType::kF4E2M1 || std::fabs(x) < kBeyondF4E2M1;
}

std::optional<Word> parse_decimal(std::string_view text, DType dtype) {
  const std::string_view magnitude = text.starts_with('-') ? text.substr(1) : text;
  // from_chars would take "inf", "nan(1)" and the like as well.
  if (magnitude.empty() || !is_digit(magnitude[0])) return std::nullopt;
  if (dtype == DType::kF32) {
    const auto value = parse_number<float>(text);
    if (!value) return std::nullopt;
    return std::bit_cast<uint32_t>(*value);
  }
  if (dtype == DType::kF8E8M0) {
    // Rounded up: a decimal that is right to the digits of an f32 must not pass the number.
    const auto value = parse_number<float>(text);
    if (!value || !(*value > 0)) return std::nullopt;
    const Word word = word_from_double(*value, dtype);
    if (!std::isfinite(word_to_double(word, dtype))) return std::nullopt;
    return word;
  }
  const auto value = parse_number<double>(text);
  if (!value || !reaches(*value, dtype)) return std::nullopt;
  const Word word = word_from_double(*value, dtype);
  if (!std::isfinite(word_to_double(word, dtype))) return std::nullopt;
  return word;
}

std::optional<Word> parse_float(std::string_view text, DType dtype) {
  if (text == "nan") {
    if (dtype == DType::kF4E2M1) return std::nullopt;  // has none
    return canonical_nan(dtype);
  }
  if (text.starts_with("0x")) return parse_bits(text.substr(2), dtype);
  if (text == "inf" || text == "-inf") {
    const double infinity = std::numeric_limits<double>::infinity();
    const Word word = word_from_double(text == "inf" ? infinity : -infinity, dtype);
    if (!std::isinf(word_to_double(word, dtype))) return std::nullopt;  // has no infinity
    return word;
  }
  return parse_decimal(text, dtype);
}

template <class... Options>
std::string decimal(Options... options) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), options...);
  return {buffer, end.ptr};
}

// The shortest decimal for a finite value.
std::string shortest(Word value, DType dtype) {
  if (dtype == DType::kF64) return decimal(std::bit_cast<double>(value));
  if (dtype == DType::kF32) return decimal(std::bit_cast<float>(static_cast<uint32_t>(value)));
  // Narrow types have few digits, so trying is cheap. All digits are better than an exponent:
  // 65504, not 6.55e+04.
  const double number = word_to_double(value, dtype);
  std::string all_digits = decimal(static_cast<float>(number));
  if (dtype == DType::kF8E8M0) return all_digits;
  for (int digits = 1; digits <= kNarrowDigits; ++digits) {
    std::string text = decimal(number, std::chars_format::general, digits);
    if (text.size() >= all_digits.size()) break;
    if (parse_decimal(text, dtype) == value) return text;
  }
  return all_digits;
}

void append_float(std::string& out, Word value, DType dtype) {
  const double number = word_to_double(value, dtype);
  if (std::isnan(number)) {
    if (value == canonical_nan(dtype)) {
      out += "nan";
    } else {
      out += fmt::format("0x{:0{}x}", value, dtype_size(dtype) * 2);
    }
    return;
  }
  if (std::isinf(number)) {
    out += number < 0 ? "-inf" : "inf";
    return;
  }
  const std::string text = shortest(value, dtype);
  out += text;
  if (text.find_first_of(".e") == std::string::npos) out += ".0";
}

}  // namespace

void append_element(std::string& out, Word value, DType dtype) {
  if (dtype == DType::kBool) {
    out += value != 0 ? "true" : "false";
  } else if (is_float(dtype)) {
    append_float(out, value, dtype);
  } else if (is_signed_int(dtype)) {
    out += fmt::format("{}", static_cast<int64_t>(value));
  } else {
    out += fmt::format("{}", value);
  }
}

std::string format_element(Word value, DType dtype) {
  std::string out;
  append_element(out, value, dtype);
  return out;
}

std::optional<Word> parse_element(std::string_view text, DType dtype) {
  if (is_float(dtype)) return parse_float(text, dtype);
  if (is_int(dtype)) return parse_int(text, dtype);
  if (text == "true") return 1;
  if (text == "false") return 0;
  return std::nullopt;
}

bool is_plain_name(std::string_view name) {
  if (name.empty() || !is_name_start(name[0])) return false;
  for (const char c : name) {
    if (!is_name_char(c)) return false;
  }
  return true;
}

std::string quote(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return '"' + printable(out) + '"';
}

std::string format_name(std::string_view name) {
  return is_plain_name(name) ? std::string(name) : quote(name);
}

std::string shown_name(std::string_view name) {
  return name.size() <= kShownName ? format_name(name) : quote(cut_text(name, kShownName));
}

}  // namespace pyc::ir
