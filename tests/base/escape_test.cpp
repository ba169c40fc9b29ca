#include "base/escape.h"

#include <gtest/gtest.h>

namespace pyc {
namespace {

TEST(Escape, PrintableTextStaysAsItIs) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("layer/0:out \\x1b"), "layer/0:out \\x1b");
  EXPECT_EQ(printable("größe → 世界 😀\xc2\xa0"), "größe → 世界 😀\xc2\xa0");
}

TEST(Escape, ControlCharactersAndBytesThatAreNoUtf8StandAsNumbers) {
  EXPECT_EQ(printable("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x7f\r\n\t"), "\\x7f\\r\\n\\t");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");                    // CSI in one character
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");                    // never in UTF-8
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  EXPECT_EQ(printable("ab\xe4\xb8"), "ab\\xe4\\xb8");                // cut short
}

TEST(Escape, LinesOfATextMayStay) { EXPECT_EQ(printable("a\n\tb\r\x1b", true), "a\n\tb\\r\\x1b"); }

}  // namespace
}  // namespace pyc
