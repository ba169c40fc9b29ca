#pragma once

// The words of PyC's text forms: Graph IR, open graphs and Loop IR.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace pyc {

enum class TokenKind : unsigned char {
  kWord,    // add, f32, true
  kNumber,  // 0.5, 1e-3, 0x7fc00001; with signs also -1, -inf
  kString,  // "text"
  kValue,   // %name or %"name"
  kGlobal,  // @name or @"name"
  kPunct,   // what the form has of these
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

bool is_digit(char c);       // [0-9]
bool is_name_start(char c);  // [A-Za-z_]
bool is_name_char(char c);   // [A-Za-z0-9_.]
// At most `bytes` of the text, cut between characters and then followed by "…": for messages.
std::string cut_text(std::string_view text, size_t bytes);

// In what the text forms differ.
struct LexerRules {
  std::string_view punct;                   // of one character
  std::span<const std::string_view> pairs;  // of two; they go first
  bool values;                              // % and @ begin names
  bool signs;                               // a minus sign belongs to the number behind it
};

// Splits text into tokens, one at a time, in one pass. Blanks, line ends and comments (# to the end
// of the line) only separate.
class Lexer {
 public:
  // The rules must outlive it. Copies go on independently.
  Lexer(std::string_view text, const LexerRules& rules);

  const Token& peek() const { return token_; }
  // Gives the token peek shows and moves on.
  Token next();
  // The rest of the text is not looked at: the next token is its end.
  void stop();

  // "line:column" of the token; columns count characters from 1.
  std::string position(const Token& token) const;

 private:
  void skip_blanks();
  void read_token();
  size_t string_end(size_t begin) const;
  size_t number_end(size_t begin) const;

  std::string_view text_;
  const LexerRules* rules_;
  size_t at_ = 0;
  size_t line_ = 1;
  size_t line_begin_ = 0;
  Token token_;
};

}  // namespace pyc
