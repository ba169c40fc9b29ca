#include "base/escape.h"

#include <fmt/format.h>

#include <algorithm>

namespace pyc {
namespace {

std::string escaped_byte(char c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  if (c == '\r') return "\\r";
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

}  // namespace

size_t utf8_length(std::string_view text) {
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

bool is_unprintable(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = utf8_length(text);
  if (length == 2) return first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
  return length == 0 || first < ' ' || first == 0x7F;
}

std::string printable(std::string_view text, bool keep_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = std::max<size_t>(utf8_length(text), 1);
    if (!is_unprintable(text) || (keep_lines && (text[0] == '\n' || text[0] == '\t'))) {
      out += text.substr(0, length);
    } else {
      for (const char c : text.substr(0, length)) out += escaped_byte(c);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace pyc
