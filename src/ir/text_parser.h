#pragma once

// What the parsers of Graph IR and of open graphs share: tokens, lists, types and constants. Every
// refusal begins with line:column.

#include <memory>
#include <string_view>

#include "base/convert.h"
#include "base/lexer.h"
#include "base/status.h"
#include "ir/types.h"

namespace pyc::ir {

inline constexpr std::string_view kGraphPairs[] = {"->"};
inline constexpr LexerRules kGraphText = {
    .punct = "()[]{},:=?*", .pairs = kGraphPairs, .values = true, .signs = true};

class TextParser {
 protected:
  TextParser(std::string_view text, int64_t max_generated_bytes)
      : text_bytes_(text.size()), lexer_(text, kGraphText), generated_left_(max_generated_bytes) {}

  const Token& peek() const { return lexer_.peek(); }
  Token next() { return lexer_.next(); }

  Status fail(const Token& at, std::string_view message, Code code = Code::kParseError) const;
  Status expected(std::string_view what) const;

  bool accept(std::string_view punct_or_word);
  Status expect(std::string_view punct_or_word);
  Result<Token> take(TokenKind kind, std::string_view what);

  // The items up to `close`, with commas between them.
  template <class Item>
  Status items(std::string_view close, Item item) {
    if (accept(close)) return {};
    do {
      PYC_TRY(item());
    } while (accept(","));
    return accept(close) ? Status() : expected("',' or '" + std::string(close) + "'");
  }

  Result<DType> dtype(std::string_view what);
  // With fixed dims, of an accepted size.
  Result<TensorType> type();
  // A dim from 0 to kMaxElements.
  Result<int64_t> dim();
  // One literal of the type; words are true, false, nan and inf.
  Result<Word> element(DType dtype);
  // dense(…), splat(…) or random(…).
  Result<std::shared_ptr<const ConstData>> const_data(const TensorType& type);

 private:
  Status key(std::string_view name);
  Result<std::shared_ptr<const ConstData>> dense(const TensorType& type);
  Result<std::shared_ptr<const ConstData>> random(const Token& form, const TensorType& type);
  Status reserve_generated(const Token& form, const TensorType& type);

  const uint64_t text_bytes_;
  Lexer lexer_;
  int64_t generated_left_;
};

}  // namespace pyc::ir
