// A model opens nothing but itself and the data in its folder, seen from outside with strace.

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "cli/program.h"
#include "onnx/model_writer.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

using namespace onnx::test;  // NOLINT: the writer's short names

// Whether strace is there and may trace; says so when not.
bool can_trace() {
  if (shell("strace -o /dev/null true 2>&1").exit == 0) return true;
  std::puts("NOT RUN: strace is missing or may not trace here");
  return false;
}

bool allowed(const std::string& opened, const std::string& folder) {
  const std::string path = std::filesystem::path(opened).lexically_normal();
  for (const std::string& start :
       {folder, std::string("/proc/"), std::string("/sys/"), std::string("/etc/"),
        std::string("/lib"), std::string("/usr/lib"), std::string("/usr/local/lib"),
        std::string("/usr/share/"), std::string("/dev/"),
        std::string(PYC_BINARY_DIR) + "/libpyc_llvm.so"}) {
    if (path.starts_with(start)) return true;
  }
  return false;
}

// The paths the program opened, or tried to.
std::vector<std::string> opened(const std::string& command, const std::string& log) {
  // The leak checker cannot work under strace.
  shell("ASAN_OPTIONS=detect_leaks=0 strace -f -qq -e trace=open,openat,openat2 -o " + log + " " +
        std::string(PYC_CLI) + " " + command + " > /dev/null 2>&1");
  std::ifstream file(log);
  std::vector<std::string> paths;
  const std::regex call(R"re(open(?:at2?)?\((?:(AT_FDCWD|\d+), )?"([^"]*)")re");
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, call)) continue;
    // A path below an opened folder cannot leave it when it has no slash.
    const bool below = found[1].matched && found[1] != "AT_FDCWD";
    if (below && found[2].str().find('/') == std::string::npos && found[2] != "..") continue;
    paths.push_back(found[2]);
  }
  return paths;
}

void write_onnx(const std::string& path, const std::string& location) {
  const Bytes w = external("w", kF32, {3, 2}, {{"location", location}});
  std::ofstream(path, std::ios::binary) << model({.inputs = {value("x", kF32, {2, 3})},
                                                  .outputs = {value("y", kF32, {2, 2})},
                                                  .initializers = {w},
                                                  .nodes = {node("MatMul", {"x", "w"}, {"y"})}});
}

TEST(OnnxFiles, NothingOutsideTheFolderIsOpened) {
  if (!can_trace()) GTEST_SKIP();
  const TempFolder temp;
  const std::string folder = std::filesystem::path(temp.file("model")).lexically_normal();
  std::filesystem::create_directories(folder);
  const Bytes weights = raw_of(std::vector<float>{1, 2, 3, 4, 5, 6});
  std::ofstream(folder + "/w.bin", std::ios::binary) << weights;
  std::ofstream(temp.file("secret.bin"), std::ios::binary) << weights;
  std::filesystem::create_symlink(temp.file("secret.bin"), folder + "/link.bin");
  for (const std::string& location :
       {std::string("w.bin"), std::string("../secret.bin"), temp.file("secret.bin"),
        std::string("link.bin"), std::string("./../model/../secret.bin")}) {
    write_onnx(folder + "/m.onnx", location);
    for (const std::string command : {"run ", "inspect "}) {
      const auto paths = opened(command + folder + "/m.onnx", temp.file("trace"));
      EXPECT_FALSE(paths.empty());
      for (const std::string& path : paths) {
        EXPECT_TRUE(allowed(path, folder)) << command << location << " opened " << path;
        EXPECT_EQ(path.find("secret"), std::string::npos) << path;
      }
    }
    const Outcome ran = pyc("run " + folder + "/m.onnx");
    EXPECT_EQ(ran.exit == 0, location == "w.bin") << ran.text;
  }
}

}  // namespace
}  // namespace pyc::test
