#include "host/image.h"

#include <string>

#include "host/image_codecs.h"
#include "host/values.h"

namespace pyc::host {
namespace {

DynValue encoded(const std::string& bytes) {
  Ints values;
  for (const char c : bytes) values.push_back(static_cast<uint8_t>(c));
  return *tensor_of(DType::kU8, {static_cast<int64_t>(values.size())}, values);
}

DynValue pixels(Ints shape, const Ints& values) {
  return *tensor_of(DType::kU8, std::move(shape), values);
}

TEST(Image, PnmInAllKinds) {
  const DynValue color = encoded(std::string("P6 # two\n2 1 255\n\x01\x02\x03\xFF\xFE\xFD", 23));
  expect_value(decode_image(color, PixelFormat::kRgb), pixels({1, 2, 3}, {1, 2, 3, 255, 254, 253}));
  expect_value(decode_image(color, PixelFormat::kBgr), pixels({1, 2, 3}, {3, 2, 1, 253, 254, 255}));
  expect_value(decode_image(encoded("P2 2 1 15 0 15"), PixelFormat::kGray),
               pixels({1, 2, 1}, {0, 255}));
  expect_value(decode_image(encoded("P1 3 1 101"), PixelFormat::kGray),
               pixels({1, 3, 1}, {0, 255, 0}));
}

std::string word(uint32_t v) {
  std::string out;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(v >> shift));
  return out;
}

// One red pixel above a blue one, stored from the bottom.
std::string small_bmp(uint32_t width, uint32_t height) {
  std::string bmp = "BM" + word(62) + word(0) + word(54) + word(40) + word(width) + word(height) +
                    word(1 | 24U << 16) + word(0) + word(8) + word(0) + word(0) + word(0) + word(0);
  return bmp + std::string("\xFF\0\0\0\0\0\xFF\0", 8);
}

TEST(Image, Bmp) {
  expect_value(decode_image(encoded(small_bmp(1, 2)), PixelFormat::kRgb),
               pixels({2, 1, 3}, {255, 0, 0, 0, 0, 255}));
  expect_refused(decode_image(encoded(small_bmp(1, 3)), PixelFormat::kRgb), Code::kParseError);
  expect_refused(decode_image(encoded(small_bmp(0, 2)), PixelFormat::kRgb), Code::kParseError);
  expect_refused(decode_image(encoded(small_bmp(1U << 30, 1U << 30)), PixelFormat::kRgb),
                 Code::kBudgetExceeded);
}

TEST(Image, CutOffFilesOfEveryFormatAreRefused) {
  const std::string starts[] = {std::string("\xFF\xD8\xFF\xE0"),
                                std::string("\x89PNG\r\n\x1A\n"),
                                std::string("BM"),
                                std::string("II*\0", 4),
                                std::string("RIFF\0\0\0\0WEBPVP8 ", 16),
                                std::string("\0\0\0\x0CjP  \r\n\x87\n", 12),
                                std::string("\xFF\x4F\xFF\x51"),
                                std::string("P6 99999999 99999999 255\n"),
                                std::string("P5 1 1 255\n")};
  for (const std::string& start : starts) {
    EXPECT_FALSE(decode_image(encoded(start), PixelFormat::kRgb).ok()) << start;
  }
}

TEST(Image, WhatIsNoImageIsRefused) {
  expect_refused(decode_image(encoded("hello"), PixelFormat::kRgb), Code::kParseError);
  expect_refused(decode_image(encoded(""), PixelFormat::kRgb), Code::kParseError);
  expect_refused(decode_image(ints({1}, {1}), PixelFormat::kRgb), Code::kDtypeMismatch);
}

}  // namespace
}  // namespace pyc::host
