#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace pyc::ir {

enum class TokenKind : unsigned char {
  kWord,    // add, f32, true
  kNumber,  // -1, 0.5, 0x7fc00001, -inf: begins with a digit or a minus sign
  kString,  // "text"
  kValue,   // %name or %"name"
  kGlobal,  // @name or @"name"
  kPunct,   // ( ) [ ] { } , : = ? * and ->
  kEnd,
  kBad,  // no token begins like this, or it does not end
};

// A piece of the text, which must outlive it.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // as written, with % @ and quotes
  size_t line = 1;
  size_t line_begin = 0;  // offset of the line's first byte

  bool is(std::string_view punct_or_word) const {
    return (kind == TokenKind::kPunct || kind == TokenKind::kWord) && text == punct_or_word;
  }
  // For messages: 'add', end of text …; long ones are cut.
  std::string found() const;
  // The name of a kValue or kGlobal, the content of a kString.
  std::string decoded() const;
};

// Splits text into tokens, one at a time, in one pass. Blanks, line ends and comments (# to the end
// of the line) only separate.
class Lexer {
 public:
  explicit Lexer(std::string_view text);

  const Token& peek() const { return token_; }
  // Gives the token peek shows and moves on.
  Token next();

  // "line:column" of the token; columns count characters from 1.
  std::string position(const Token& token) const;

 private:
  void skip_blanks();
  void read_token();
  size_t string_end(size_t begin) const;
  size_t number_end(size_t begin) const;

  std::string_view text_;
  size_t at_ = 0;
  size_t line_ = 1;
  size_t line_begin_ = 0;
  Token token_;
};

}  // namespace pyc::ir
