// safetensors files: what is written is read again; what contradicts itself is refused.

#include <gtest/gtest.h>

#include <cstring>

#include "io/named_tensors.h"

namespace pyc::io {
namespace {

std::string with_length(const std::string& header, const std::string& data) {
  std::string out;
  for (size_t i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + header + data;
}

void expect_refused(const std::string& header, const std::string& data, Code code,
                    const std::string& words) {
  const auto read = parse_safetensors(with_length(header, data));
  ASSERT_FALSE(read.ok()) << header;
  EXPECT_EQ(read.status().code(), code) << read.status().to_string();
  EXPECT_NE(read.status().message().find(words), std::string::npos) << read.status().to_string();
}

const std::string kEight(8, '\1');

TEST(Safetensors, AreReadAsTheyWereWritten) {
  const std::vector<float> w = {1, 2, 3};
  const std::vector<int64_t> n = {5};
  const std::byte flag{1};
  const std::vector<NamedBytes> tensors = {
      {"flag", {DType::kBool, {}}, std::span(&flag, 1)},
      {"w \"\\\n", {DType::kF32, {3, 1}}, std::as_bytes(std::span(w))},
      {"none", {DType::kF16, {0, 4}}, {}},
      {"n\xc3\xa9", {DType::kI64, {1}}, std::as_bytes(std::span(n))}};
  const std::map<std::string, std::string> metadata = {{"step", "12"},
                                                       {"a\tb", "\x01\xe2\x82\xac"}};
  const auto header = safetensors_header(tensors, metadata);
  ASSERT_TRUE(header.ok()) << header.status().to_string();
  EXPECT_EQ(header->bytes.size() % 8, 0U);
  EXPECT_EQ(header->order, (std::vector<size_t>{3, 1, 2, 0}));
  std::string file = header->bytes;
  for (const size_t i : header->order) {
    file.append(reinterpret_cast<const char*>(tensors[i].bytes.data()), tensors[i].bytes.size());
  }
  EXPECT_EQ(*header_part(file), header->bytes);
  const auto read = parse_safetensors(file);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->metadata, metadata);
  ASSERT_EQ(read->tensors.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const NamedBytes& given = tensors[header->order[i]];
    EXPECT_EQ(read->tensors[i].name, given.name);
    EXPECT_EQ(read->tensors[i].value.dtype, given.type.dtype);
    EXPECT_EQ(read->tensors[i].value.shape, given.type.shape);
    EXPECT_TRUE(std::equal(given.bytes.begin(), given.bytes.end(),
                           read->tensors[i].value.bytes.begin(),
                           read->tensors[i].value.bytes.end()));
  }
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(parse_safetensors(file.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(parse_safetensors(file + "x").ok());
}

TEST(Safetensors, AreReadAsOthersWriteThem) {
  const auto read = parse_safetensors(with_length(
      "{\"__metadata__\": {\"format\" : \"pt\"}, \"\\u00e9\\ud83d\\ude00\" : {\"shape\": [2],\n"
      "\"data_offsets\": [0, 8], \"dtype\":\"F32\"}}   ",
      kEight));
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->metadata.at("format"), "pt");
  EXPECT_EQ(read->tensors[0].name, "\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(read->tensors[0].value.to_string(), "f32[2]");
  EXPECT_TRUE(parse_safetensors(with_length("{}", ""))->tensors.empty());
}

TEST(Safetensors, RefuseElementsThatAreNotTheWholeRestOnce) {
  const auto entry = [](const std::string& name, int64_t n, const std::string& offsets) {
    return "\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(n) +
           "],\"data_offsets\":[" + offsets + "]}";
  };
  const auto both = [&](const std::string& a, const std::string& b) {
    return "{" + a + "," + b + "}";
  };
  ASSERT_TRUE(
      parse_safetensors(with_length(both(entry("b", 4, "4,8"), entry("a", 4, "0,4")), kEight))
          .ok());
  constexpr auto kBad = Code::kParseError;
  expect_refused(both(entry("a", 4, "0,4"), entry("b", 4, "5,8")), kEight, kBad, "'b' has the");
  expect_refused(both(entry("a", 4, "0,4"), entry("b", 5, "3,8")), kEight, kBad, "overlap");
  expect_refused("{" + entry("a", 4, "0,4") + "}", kEight, kBad, "last 4 bytes belong to no");
  expect_refused("{" + entry("a", 9, "0,9") + "}", kEight, kBad, "end beyond the file");
  expect_refused("{" + entry("a", 8, "8,0") + "}", kEight, kBad, "'a'");
  expect_refused("{" + entry("a", 8, "0,18446744073709551615") + "}", kEight, kBad, "'a'");
  expect_refused("{" + entry("a", 8, "0,18446744073709551616") + "}", kEight, kBad, "number");
  expect_refused("{" + entry("a", 7, "0,8") + "}", kEight, kBad, "expected 7 bytes");
  expect_refused("{" + entry("a", 1099511627777, "0,8") + "}", kEight, kBad, "dim");
  expect_refused("{" + entry("a", 4, "0,4") + "," + entry("a", 4, "4,8") + "}", kEight, kBad,
                 "'a' comes twice");
}

TEST(Safetensors, RefuseHeadersOfAnotherForm) {
  constexpr auto kBad = Code::kParseError;
  const std::string good = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}";
  ASSERT_TRUE(parse_safetensors(with_length(good + "}", kEight)).ok());
  expect_refused("", "", kBad, "begin with {");
  expect_refused(" " + good + "}", kEight, kBad, "begin with {");
  expect_refused(good, kEight, kBad, "expected '}'");
  expect_refused(good + ",}", kEight, kBad, "expected '\"'");
  expect_refused(good + "} x", kEight, kBad, "after its header");
  expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", kEight, kBad, "lacks");
  expect_refused("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", kEight, kBad, "comes twice");
  expect_refused("{\"a\":{\"type\":\"F32\"}}", kEight, kBad, "'type'");
  expect_refused("{\"a\":{\"shape\":[02]}}", kEight, kBad, "whole number");
  expect_refused("{\"a\":{\"shape\":[-2]}}", kEight, kBad, "whole number");
  expect_refused("{\"a\":{\"shape\":[2.0]}}", kEight, kBad, "expected ']'");
  expect_refused("{\"a\":{\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}", "", kBad, "16 dims");
  expect_refused("{\"a\":{\"data_offsets\":[0]}}", "", kBad, "two numbers");
  expect_refused("{\"\xff\":{}}", "", kBad, "UTF-8");
  expect_refused("{\"\n\":{}}", "", kBad, "control");
  expect_refused("{\"\\q\":{}}", "", kBad, "escape");
  expect_refused("{\"\\ud800\":{}}", "", kBad, "escape");
  expect_refused("{\"\\ud800\\u0041\":{}}", "", kBad, "half");
  expect_refused("{\"\\u12g4\":{}}", "", kBad, "escape");
  expect_refused("{\"a", "", kBad, "no end");
  expect_refused("{\"__metadata__\":{\"a\":1}}", "", kBad, "expected '\"'");
  expect_refused("{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", "", kBad, "metadata 'a'");
  expect_refused("{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,8]}}", kEight,
                 Code::kUnsupported, "'F4'");
  const std::string huge("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
  EXPECT_NE(parse_safetensors(huge).status().message().find("over the"), std::string::npos);
}

TEST(Safetensors, AreNotWrittenWithNamesNobodyCouldRead) {
  const std::vector<NamedBytes> wrong = {{"\xff", {DType::kF32, {0}}, {}}};
  EXPECT_EQ(safetensors_header(wrong, {}).status().code(), Code::kInvalidArgument);
  const std::vector<NamedBytes> twice = {{"a", {DType::kF32, {0}}, {}},
                                         {"a", {DType::kF32, {0}}, {}}};
  EXPECT_EQ(safetensors_header(twice, {}).status().code(), Code::kInvalidArgument);
  const std::vector<NamedBytes> narrow = {{"a", {DType::kI4, {0}}, {}}};
  EXPECT_EQ(safetensors_header(narrow, {}).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace pyc::io
