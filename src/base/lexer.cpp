#include "base/lexer.h"

#include <fmt/format.h>

#include <algorithm>

namespace pyc {
namespace {

constexpr size_t kShownToken = 40;
constexpr size_t kNoEnd = std::string_view::npos;

// Whether the byte goes on with a UTF-8 character that began before it.
bool goes_on(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The length of the escape sequence that begins with the backslash at text[i]; 0 when it is none.
size_t escape_length(std::string_view text, size_t i) {
  if (i + 1 >= text.size()) return 0;
  const char c = text[i + 1];
  if (c == '"' || c == '\\' || c == 'n' || c == 't' || c == 'r') return 2;
  const bool hex =
      c == 'x' && i + 3 < text.size() && hex_digit(text[i + 2]) >= 0 && hex_digit(text[i + 3]) >= 0;
  return hex ? 4 : 0;
}

char unescaped(std::string_view escape) {
  switch (escape[1]) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'x':
      return static_cast<char>(hex_digit(escape[2]) * 16 + hex_digit(escape[3]));
    default:
      return escape[1];
  }
}

}  // namespace

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_start(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }

bool is_name_char(char c) { return is_name_start(c) || is_digit(c) || c == '.'; }

std::string cut_text(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  // Characters have at most three bytes that go on with them.
  for (int i = 0; i < 3 && bytes > 0 && goes_on(text[bytes]); ++i) --bytes;
  return std::string(text.substr(0, bytes)) + "…";
}

std::string Token::found() const {
  if (kind == TokenKind::kEnd) return "end of text";
  std::string shown = cut_text(text, kShownToken);
  for (char& c : shown) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) c = '?';
  }
  const bool open = kind == TokenKind::kBad && text.find('"') != std::string_view::npos;
  return fmt::format("{}'{}'", open ? "a string without end or with a bad escape: " : "", shown);
}

std::string Token::decoded() const {
  std::string_view body = text;
  if (kind == TokenKind::kValue || kind == TokenKind::kGlobal) body.remove_prefix(1);
  if (!body.starts_with('"')) return std::string(body);
  body = body.substr(1, body.size() - 2);
  std::string out;
  for (size_t i = 0; i < body.size();) {
    if (body[i] != '\\') {
      out += body[i++];
      continue;
    }
    const size_t length = escape_length(body, i);
    out += unescaped(body.substr(i, length));
    i += length;
  }
  return out;
}

Lexer::Lexer(std::string_view text, const LexerRules& rules) : text_(text), rules_(&rules) {
  read_token();
}

Token Lexer::next() {
  const Token current = token_;
  read_token();
  return current;
}

void Lexer::stop() {
  at_ = text_.size();
  token_ = {TokenKind::kEnd, text_.substr(at_), line_, line_begin_};
}

std::string Lexer::position(const Token& token) const {
  const auto offset = static_cast<size_t>(token.text.data() - text_.data());
  size_t column = 1;
  for (size_t i = token.line_begin; i < offset; ++i) {
    if (!goes_on(text_[i])) ++column;
  }
  return fmt::format("{}:{}", token.line, column);
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      const size_t end = text_.find('\n', at_);
      at_ = end == kNoEnd ? text_.size() : end;
    } else if (c == '\n') {
      ++at_;
      ++line_;
      line_begin_ = at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

// The offset after the closing quote of the string that opens at `begin`, or kNoEnd. Strings do not
// span lines.
size_t Lexer::string_end(size_t begin) const {
  size_t i = begin + 1;
  while (i < text_.size() && text_[i] != '\n') {
    if (text_[i] == '"') return i + 1;
    const size_t step = text_[i] == '\\' ? escape_length(text_, i) : 1;
    if (step == 0) return kNoEnd;
    i += step;
  }
  return kNoEnd;
}

size_t Lexer::number_end(size_t begin) const {
  const bool hex = text_.substr(begin + (text_[begin] == '-' ? 1 : 0)).starts_with("0x");
  size_t i = begin + 1;
  while (i < text_.size()) {
    const bool sign = text_[i] == '+' || text_[i] == '-';
    const bool exponent_sign = sign && !hex && (text_[i - 1] == 'e' || text_[i - 1] == 'E');
    if (!is_name_char(text_[i]) && !exponent_sign) break;
    ++i;
  }
  return i;
}

void Lexer::read_token() {
  skip_blanks();
  token_ = {TokenKind::kEnd, text_.substr(at_, 0), line_, line_begin_};
  if (at_ == text_.size()) return;
  const char c = text_[at_];
  const bool prefixed = rules_->values && (c == '%' || c == '@');
  const size_t name = at_ + (prefixed ? 1 : 0);
  const char first = name < text_.size() ? text_[name] : '\0';
  const TokenKind named = c == '%' ? TokenKind::kValue : TokenKind::kGlobal;
  const std::string_view two = text_.substr(at_, 2);
  size_t end = at_ + 1;
  if (first == '"') {
    token_.kind = prefixed ? named : TokenKind::kString;
    end = string_end(name);
    if (end == kNoEnd) {
      token_.kind = TokenKind::kBad;
      end = std::min(text_.find('\n', at_), text_.size());
    }
  } else if (is_name_start(first)) {
    token_.kind = prefixed ? named : TokenKind::kWord;
    end = name + 1;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
  } else if (std::find(rules_->pairs.begin(), rules_->pairs.end(), two) != rules_->pairs.end()) {
    token_.kind = TokenKind::kPunct;
    end = at_ + 2;
  } else if (is_digit(c) || (rules_->signs && c == '-')) {
    token_.kind = TokenKind::kNumber;
    end = number_end(at_);
  } else {
    const bool punct = rules_->punct.find(c) != kNoEnd;
    token_.kind = punct ? TokenKind::kPunct : TokenKind::kBad;
    while (!punct && end < text_.size() && goes_on(text_[end])) ++end;
  }
  token_.text = text_.substr(at_, end - at_);
  at_ = end;
}

}  // namespace pyc
