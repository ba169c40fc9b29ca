#include "base/lexer.h"

#include <gtest/gtest.h>

namespace pyc {
namespace {

constexpr std::string_view kArrow[] = {"->"};
constexpr LexerRules kNamed = {.punct = "(,)", .pairs = kArrow, .values = true, .signs = true};
constexpr std::string_view kOperators[] = {"<=", "//"};
constexpr LexerRules kSums = {
    .punct = "<%-+", .pairs = kOperators, .values = false, .signs = false};

// The tokens, each with a letter for its kind in front.
std::string tokens(std::string_view text, const LexerRules& rules) {
  constexpr std::string_view kLetters = "wnsvgp$?";
  std::string out;
  Lexer lexer(text, rules);
  while (lexer.peek().kind != TokenKind::kEnd) {
    const Token token = lexer.next();
    out += (out.empty() ? "" : " ") + std::string(1, kLetters[size_t(token.kind)]) +
           std::string(token.text);
  }
  return out;
}

TEST(Lexer, RulesDecideWhatAMinusAndAPercentSignAre) {
  EXPECT_EQ(tokens("%a-1 ->b", kNamed), "v%a n-1 p-> wb");
  EXPECT_EQ(tokens("a%b-1<=2//3<4", kSums), "wa p% wb p- n1 p<= n2 p// n3 p< n4");
  EXPECT_EQ(tokens("@g @\"a b\" \"s\\n\"", kNamed), "g@g g@\"a b\" s\"s\\n\"");
  EXPECT_EQ(tokens("@", kSums), "?@");
}

TEST(Lexer, ASignBehindAnExponentBelongsToItsNumber) {
  EXPECT_EQ(tokens("1e-3 1.5E+7", kSums), "n1e-3 n1.5E+7");
  EXPECT_EQ(tokens("0x1e-3", kSums), "n0x1e p- n3") << "e is a digit of it";
  EXPECT_EQ(tokens("-0x1e -1e-3", kNamed), "n-0x1e n-1e-3");
}

TEST(Lexer, PositionsCountCharacters) {
  Lexer lexer("# ä\n\"ä\" x", kNamed);
  EXPECT_EQ(lexer.position(lexer.next()), "2:1");
  EXPECT_EQ(lexer.position(lexer.peek()), "2:5");
  lexer.stop();
  EXPECT_EQ(lexer.peek().found(), "end of text");
}

TEST(Lexer, CopiesGoOnIndependently) {
  Lexer lexer("a b", kNamed);
  const Lexer before = lexer;
  lexer.next();
  EXPECT_EQ(lexer.peek().text, "b");
  EXPECT_EQ(before.peek().text, "a");
}

}  // namespace
}  // namespace pyc
