// The seed corpus of the fuzz targets, and damaged copies of it, through both targets. With
// PYC_CORPUS set the seeds are also written to that folder, where scripts/soak starts from.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/targets.h"
#include "onnx/seeds.h"

namespace pyc::onnx::test {
namespace {

TEST(FuzzReplay, Seeds) {
  for (const auto& [name, bytes] : seeds()) {
    SCOPED_TRACE(name);
    fuzz_reader(bytes);
    fuzz_run(bytes);
  }
}

TEST(FuzzReplay, DamagedSeeds) {
  std::mt19937_64 random(22);
  for (const auto& [name, bytes] : seeds()) {
    for (int i = 0; i < 300; ++i) {
      Bytes wrong = bytes;
      wrong[random() % wrong.size()] ^= static_cast<char>(1U << (random() % 8));
      if (i % 2 == 1) wrong[random() % wrong.size()] = static_cast<char>(random() % 256);
      fuzz_run(wrong);
    }
  }
}

// Files that once broke something.
TEST(FuzzReplay, Corpus) {
  const std::filesystem::path folder = PYC_SOURCE_DIR "/tests/fuzz/corpus";
  if (!std::filesystem::exists(folder)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    fuzz_reader(bytes);
    fuzz_run(bytes);
  }
}

TEST(FuzzReplay, WritesTheSeeds) {
  const char* folder = std::getenv("PYC_CORPUS");
  if (folder == nullptr) return;
  std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : seeds()) {
    std::ofstream(std::filesystem::path(folder) / (name + ".onnx"), std::ios::binary) << bytes;
  }
}

}  // namespace
}  // namespace pyc::onnx::test
