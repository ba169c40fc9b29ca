// JSON as the C ABI hands it out.

#include "capi/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace pyc::capi {
namespace {

std::string quoted(std::string_view text) {
  JsonWriter json;
  json.text(text);
  return std::move(json).take();
}

std::string numbered(double value) {
  JsonWriter json;
  json.number(value);
  return std::move(json).take();
}

TEST(Json, ValuesNestOnOneLine) {
  JsonWriter json;
  json.begin_object();
  json.key("a").integer(-3);
  json.key("b").begin_array().boolean(true).null().begin_object().end_object().end_array();
  json.key("c").begin_array().end_array();
  json.end_object();
  EXPECT_EQ(std::move(json).take(), R"({"a":-3,"b":[true,null,{}],"c":[]})");
}

TEST(Json, IndentedValuesHaveLines) {
  JsonWriter json(2);
  json.begin_object();
  json.key("a").begin_array().integer(1).integer(2).end_array();
  json.key("b").begin_object().end_object();
  json.end_object();
  EXPECT_EQ(std::move(json).take(), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
}

TEST(Json, TextIsEscapedAndAlwaysUtf8) {
  EXPECT_EQ(quoted("a\"b\\c\n\t\x01"), R"("a\"b\\c\n\t\u0001")");
  EXPECT_EQ(quoted("\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "\"\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80\"");
  for (const char* broken : {"\xC3", "\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80"}) {
    const std::string text = quoted(broken);
    EXPECT_EQ(text.find("\xEF\xBF\xBD"), 1u) << text;
    EXPECT_EQ(text.size() % 3, 2u) << text;  // replacements and quotes, nothing else
  }
}

TEST(Json, NumbersKeepTheirBitsAndAreNumbers) {
  EXPECT_EQ(numbered(0.1), "0.1");
  EXPECT_EQ(numbered(2000), "2000.0");
  EXPECT_EQ(numbered(1e300), "1e+300");
  EXPECT_EQ(numbered(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(numbered(std::numeric_limits<double>::quiet_NaN()), "null");
}

}  // namespace
}  // namespace pyc::capi
