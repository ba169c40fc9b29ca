// .npz files: what numpy writes, what PyC writes, and what neither should.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "io/named_tensors.h"
#include "support/temp_folder.h"

namespace pyc::io {
namespace {

const std::vector<float> kX = {1, 2, 3, 4, 5, 6};
const std::vector<int64_t> kY = {7, -8};

std::string two_arrays() {
  const std::vector<NamedBytes> tensors = {
      {"x", {DType::kF32, {3, 2}}, std::as_bytes(std::span(kX))},
      {"a/y", {DType::kI64, {2}}, std::as_bytes(std::span(kY))}};
  auto made = npz_bytes(tensors);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return *made;
}

void expect_npz_refused(const std::string& file, Code code, const std::string& words) {
  const auto read = parse_npz(file);
  ASSERT_FALSE(read.ok()) << words;
  EXPECT_EQ(read.status().code(), code) << read.status().to_string();
  EXPECT_NE(read.status().message().find(words), std::string::npos) << read.status().to_string();
}

// The place of the n-th record that begins like this.
size_t record(const std::string& file, std::string_view mark, int n = 0) {
  size_t at = file.find(mark);
  for (; n > 0; --n) at = file.find(mark, at + 1);
  EXPECT_NE(at, std::string::npos);
  return at;
}
constexpr std::string_view kEntry = "PK\x03\x04";
constexpr std::string_view kDirectory = "PK\x01\x02";
constexpr std::string_view kEnd = "PK\x05\x06";

TEST(Npz, IsReadAsItWasWritten) {
  const auto read = parse_npz(two_arrays());
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].name, "x");
  EXPECT_EQ((*read)[0].value.to_string(), "f32[3,2]");
  EXPECT_EQ(std::memcmp((*read)[0].value.bytes.data(), kX.data(), 24), 0);
  EXPECT_EQ((*read)[1].name, "a/y");
  EXPECT_EQ(to_ints((*read)[1].value), kY);
  EXPECT_TRUE(parse_npz(*npz_bytes({}))->empty());
}

// numpy.savez says the sizes of an entry in a wide field of its own header.
TEST(Npz, IsReadAsNumpyWritesIt) {
  const TempFolder folder;
  const std::string path = folder.path() + "/numpy.npz";
  const std::string command = "python3 -c \"import numpy as n; n.savez('" + path +
                              "', x=n.arange(6, dtype=n.float32).reshape(2, 3), y=n.array(True)); "
                              "n.savez_compressed('" +
                              path + ".z.npz', x=n.zeros(9))\" 2>/dev/null";
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "numpy is not installed";
  const auto read = read_named_tensors(path);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ((*read)[0].value.to_string(), "f32[2,3]");
  EXPECT_EQ(to_doubles((*read)[0].value), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ((*read)[1].value.to_string(), "bool[]");
  const auto packed = read_named_tensors(path + ".z.npz");
  ASSERT_FALSE(packed.ok());
  EXPECT_EQ(packed.status().code(), Code::kUnsupported);
  EXPECT_NE(packed.status().message().find("entry 'x.npy'"), std::string::npos);
  EXPECT_NE(packed.status().message().find("numpy.savez"), std::string::npos);
}

TEST(Npz, RefusesEveryCutAndEveryFlippedElement) {
  const std::string file = two_arrays();
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(parse_npz(file.substr(0, size)).ok()) << size;
  }
  std::string wrong = file;
  wrong[file.find('\n') + 1] ^= 1;
  expect_npz_refused(wrong, Code::kParseError, "entry 'x.npy': its checksum is wrong");
}

TEST(Npz, RefusesWhatContradictsItself) {
  const std::string file = two_arrays();
  const auto changed = [&](size_t at, const std::string& bytes) {
    std::string out = file;
    out.replace(at, bytes.size(), bytes);
    return out;
  };
  const size_t first = record(file, kDirectory);
  const size_t second = record(file, kDirectory, 1);
  const size_t end = record(file, kEnd);
  const std::string all("\xff\xff\xff\x7f", 4);
  const std::string full("\xff\xff\xff\xff", 4);
  expect_npz_refused("PK", Code::kParseError, "too short");
  expect_npz_refused(changed(end, "pk"), Code::kParseError, "no end record");
  expect_npz_refused(changed(end + 4, std::string("\1\0", 2)), Code::kUnsupported, "several parts");
  expect_npz_refused(changed(end + 16, all), Code::kParseError, "beyond its end");
  expect_npz_refused(changed(end + 16, full), Code::kParseError, "wide one that is not there");
  expect_npz_refused(changed(end + 10, std::string("\x09\0", 2)), Code::kParseError, "cut off");
  expect_npz_refused(changed(end + 10, std::string("\1\0", 2)), Code::kParseError, "more in its");
  expect_npz_refused(changed(first + 20, all), Code::kParseError, "ends beyond the file");
  expect_npz_refused(changed(first + 20, full), Code::kParseError, "wide size is missing");
  expect_npz_refused(changed(first + 24, all), Code::kParseError, "two sizes");
  expect_npz_refused(changed(first + 42, all), Code::kParseError, "not where the directory says");
  expect_npz_refused(changed(first + 8, "\x01"), Code::kUnsupported, "encrypted");
  expect_npz_refused(changed(first + 10, "\x0c"), Code::kParseError, "differ");
  expect_npz_refused(changed(second + 46, "b"), Code::kParseError, "differ");
  std::string other = changed(second + 46 + 3, ".txt");
  other.replace(record(file, kEntry, 1) + 30 + 3, 4, ".txt");
  expect_npz_refused(other, Code::kParseError, "NAME.npy and nothing else");
}

// One entry listed twice, under one name and under two.
TEST(Npz, RefusesNamesThatComeTwiceAndEntriesThatOverlap) {
  const std::vector<NamedBytes> twins = {{"x", {DType::kF32, {6}}, std::as_bytes(std::span(kX))},
                                         {"z", {DType::kF32, {6}}, std::as_bytes(std::span(kX))}};
  std::string file = *npz_bytes(twins);
  const size_t first = record(file, kDirectory);
  const size_t second = record(file, kDirectory, 1);
  std::string twice = file;
  twice.replace(second, 46 + 5, file.substr(first, 46 + 5));
  expect_npz_refused(twice, Code::kParseError, "the name comes twice");
  const std::vector<NamedBytes> same = {twins[0], twins[0]};
  EXPECT_EQ(npz_bytes(same).status().code(), Code::kInvalidArgument);
  // The first entry is said to reach into the second.
  std::string overlap = file;
  const auto longer = static_cast<char>(overlap[first + 20] + 8);
  overlap[first + 20] = longer;
  overlap[first + 24] = longer;
  expect_npz_refused(overlap, Code::kParseError, "overlaps");
}

TEST(Npz, NamesTheFileItCouldNotRead) {
  const auto missing = read_named_tensors("/nowhere/at/all.npz");
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_NE(missing.status().message().find("/nowhere/at/all.npz"), std::string::npos);
}

}  // namespace
}  // namespace pyc::io
