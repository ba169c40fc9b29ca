// Named tensors by path: the same from every kind of file.

#include "io/named_tensors.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "io/tensor_file.h"
#include "support/temp_folder.h"

namespace pyc::io {
namespace {

const std::vector<float> kRowsOfX = {1, 2, 3, 4, 5, 6};
const std::vector<int64_t> kRowTargets = {7, -8, 9};
const std::vector<NamedBytes> kNamed = {
    {"target", {DType::kI64, {3}}, std::as_bytes(std::span(kRowTargets))},
    {"x", {DType::kF32, {3, 2}}, std::as_bytes(std::span(kRowsOfX))}};

std::string named_safetensors() {
  const SafetensorsHeader header = safetensors_header(kNamed, {}).value();
  std::string file = header.bytes;
  for (const size_t i : header.order) {
    const std::span<const std::byte> bytes = kNamed[i].bytes;
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return file;
}

std::string shown_at(const std::string& path) {
  const auto read = read_named_tensors(path);
  if (!read.ok()) return read.status().to_string();
  std::string text;
  for (const NamedTensor& t : *read) {
    text += t.name + " " + t.value.to_string();
    for (const double v : to_doubles(t.value)) text += " " + std::to_string(static_cast<int>(v));
    text += "; ";
  }
  return text;
}

TEST(NamedTensors, AreReadFromArchivesSafetensorsArraysAndFolders) {
  const TempFolder folder;
  const std::string path = folder.path();
  std::filesystem::create_directory(path + "/rows");
  ASSERT_TRUE(write_file_atomic(path + "/rows.npz", npz_bytes(kNamed).value()).ok());
  ASSERT_TRUE(write_file_atomic(path + "/rows.safetensors", named_safetensors()).ok());
  for (const NamedBytes& t : kNamed) {
    ASSERT_TRUE(write_npy(path + "/rows/" + t.name + ".npy", t.type, t.bytes).ok());
  }
  ASSERT_TRUE(write_file_atomic(path + "/rows/README", std::string_view("no array")).ok());
  const std::string all = "target i64[3] 7 -8 9; x f32[3,2] 1 2 3 4 5 6; ";
  EXPECT_EQ(shown_at(path + "/rows.npz"), all);
  EXPECT_EQ(shown_at(path + "/rows.safetensors"), all);
  EXPECT_EQ(shown_at(path + "/rows"), all);
  EXPECT_EQ(shown_at(path + "/rows/x.npy"), "x f32[3,2] 1 2 3 4 5 6; ");
}

TEST(NamedTensors, NameTheFileTheyCouldNotRead) {
  const TempFolder folder;
  const std::string path = folder.path();
  ASSERT_TRUE(write_file_atomic(path + "/cut.safetensors", named_safetensors().substr(0, 40)).ok());
  for (const std::string name : {"/cut.safetensors", "/no.npy", "/no.npz", "/no.safetensors"}) {
    const auto read = read_named_tensors(path + name);
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_NE(read.status().message().find(path + name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace pyc::io
