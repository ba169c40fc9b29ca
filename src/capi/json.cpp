#include "capi/json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/escape.h"

namespace pyc::capi {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

JsonWriter& JsonWriter::open(char bracket) {
  begin_value();
  out_ += bracket;
  has_entries_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  const bool had_entries = has_entries_.back();
  has_entries_.pop_back();
  if (had_entries) new_line();
  out_ += bracket;
  return *this;
}

void JsonWriter::begin_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_entries_.empty()) return;
  if (has_entries_.back()) out_ += ',';
  has_entries_.back() = true;
  new_line();
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(has_entries_.size() * static_cast<size_t>(indent_), ' ');
}

JsonWriter& JsonWriter::key(std::string_view name) {
  begin_value();
  append_quoted(name);
  out_ += indent_ == 0 ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::text(std::string_view value) {
  begin_value();
  append_quoted(value);
  return *this;
}

JsonWriter& JsonWriter::integer(int64_t value) {
  begin_value();
  out_ += fmt::format("{}", value);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  begin_value();
  const std::string digits = fmt::format("{}", value);
  out_ += digits;
  if (digits.find_first_of(".e") == std::string::npos) out_ += ".0";
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
  begin_value();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  begin_value();
  out_ += "null";
  return *this;
}

void JsonWriter::append_quoted(std::string_view value) {
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  out_ += '"';
  while (!value.empty()) {
    const size_t length = utf8_length(value);
    const char c = value[0];
    if (length == 0) {
      out_ += kReplacement;
    } else if (const size_t i = kEscaped.find(c); i != std::string_view::npos) {
      out_ += '\\';
      out_ += kLetters[i];
    } else if (is_unprintable(value)) {  // the last byte alone is the number of the character
      out_ += fmt::format("\\u{:04x}", static_cast<unsigned char>(value[length - 1]));
    } else {
      out_ += value.substr(0, length);
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
  out_ += '"';
}

}  // namespace pyc::capi
