// What reading an ONNX file costs: the time of pyc_model_file_load with the file in the page cache,
// and the private memory it takes beyond the mapping. Usage: pyc_bench_onnx_import FILE. Exits 1
// when it takes 150 ms or more, or 20 MB or more.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <pyc/pyc.hpp>
#include <string>
#include <vector>

namespace {

constexpr double kLimitMs = 150.0;
constexpr double kLimitMb = 20.0;
constexpr int kRuns = 9;

// Private pages of this process in MB, as the kernel counts them, without those of mappings of
// `file`.
double private_mb(const std::string& file) {
  std::ifstream smaps("/proc/self/smaps");
  int64_t kib = 0;
  bool counted = true;
  for (std::string line; std::getline(smaps, line);) {
    // A mapping begins with its addresses; the lines about it begin with a capital letter.
    if (std::islower(static_cast<unsigned char>(line[0])) != 0 ||
        std::isdigit(static_cast<unsigned char>(line[0])) != 0) {
      counted = !line.ends_with(file);
    } else if (counted && line.starts_with("Private_")) {
      kib += std::stoll(line.substr(line.find(':') + 1));
    }
  }
  return static_cast<double>(kib) * 1024.0 / 1e6;
}

void read_through(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> chunk(1 << 20);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()))) {
  }
}

// A hundred matrix products one after the other.
std::string written_model() {
  constexpr int64_t kWidth = 1024;
  constexpr uint64_t kLayers = 100;
  pyc::ModelBuilder builder("layers");
  pyc::Value x = builder.input("x", PYC_DTYPE_F32, {1, kWidth});
  for (uint64_t i = 0; i < kLayers; ++i) {
    x = builder.matmul(
        x, builder.random("w" + std::to_string(i), PYC_DTYPE_F32, {kWidth, kWidth}, i, -0.1, 0.1));
  }
  builder.output(x);
  const std::string path = std::filesystem::temp_directory_path() / "pyc_bench_onnx_import.onnx";
  builder.graph().export_onnx(path);
  return path;
}

double load_ms(const std::string& path) {
  const auto start = std::chrono::steady_clock::now();
  const pyc::ModelFile file = pyc::ModelFile::load(path);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  return took.count();
}

// Whether both limits are kept.
bool measure(const std::string& path) {
  read_through(path);
  const std::string file_name = std::filesystem::canonical(path);
  const double before = private_mb(file_name);
  const double first_ms = load_ms(path);
  const pyc::ModelFile kept = pyc::ModelFile::load(path);
  const double used = private_mb(file_name) - before;
  std::vector<double> ms;
  for (int i = 0; i < kRuns; ++i) {
    ms.push_back(load_ms(path));
  }
  std::sort(ms.begin(), ms.end());
  fmt::print(
      "{{\"bench\": \"onnx_import\", \"file_bytes\": {}, \"first_ms\": {:.2f}, \"ms\": {:.2f}, "
      "\"limit_ms\": {:.0f}, "
      "\"private_mb\": {:.2f}, \"limit_mb\": {:.0f}}}\n",
      std::filesystem::file_size(path), first_ms, ms[kRuns / 2], kLimitMs, used, kLimitMb);
  return std::max(first_ms, ms[kRuns / 2]) < kLimitMs && used < kLimitMb;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1) return measure(argv[1]) ? 0 : 1;
    const std::string path = written_model();
    const bool kept = measure(path);
    std::filesystem::remove(path);
    return kept ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  }
}
