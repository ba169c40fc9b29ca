#include "capi/json.h"

#include <fmt/format.h>

#include <cmath>

namespace pyc::capi {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// How many bytes at the start of `text` are one well-formed UTF-8 sequence; 0: none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  size_t length = 0;
  if (first >= 0xC2 && first <= 0xDF) length = 2;
  if (first >= 0xE0 && first <= 0xEF) length = 3;
  if (first >= 0xF0 && first <= 0xF4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || beyond ? 0 : length;
}

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
    const size_t length = sequence_length(value);
    const char c = value[0];
    if (length == 0) {
      out_ += kReplacement;
    } else if (const size_t i = kEscaped.find(c); i != std::string_view::npos) {
      out_ += '\\';
      out_ += kLetters[i];
    } else if (static_cast<unsigned char>(c) < ' ') {
      out_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out_ += value.substr(0, length);
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
  out_ += '"';
}

}  // namespace pyc::capi
