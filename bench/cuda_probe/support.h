#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/matrix_unit.h"
#include "paths.h"

namespace probe {

inline std::string text(const char* format, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

inline uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
inline float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// work(begin, end) over [0, n) on all cores.
inline void parallel(size_t n, const std::function<void(size_t, size_t)>& work) {
  const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 16);
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; ++i)
    running.emplace_back([&, i] { work(n * i / threads, n * (i + 1) / threads); });
  for (std::thread& thread : running) thread.join();
}

// The numbers of a part, one flat JSON object.
class Report {
 public:
  void number(const std::string& key, double value) { member(key, text("%.9g", value)); }
  void string(const std::string& key, const std::string& value) {
    std::string quoted = "\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c == '\n' ? ' ' : c;
    }
    member(key, quoted + "\"");
  }
  bool write(const std::string& path) const {
    FILE* file = std::fopen(path.c_str(), "w");
    if (file == nullptr) return false;
    std::fprintf(file, "{%s\n}\n", members_.c_str());
    return std::fclose(file) == 0;
  }

 private:
  void member(const std::string& key, const std::string& value) {
    members_ += (members_.empty() ? "\n \"" : ",\n \"") + key + "\": " + value;
  }
  std::string members_;
};
Report& report();

// What ends up in the table at the end of the log: one line per question.
void conclude(const std::string& line);

pyc::DType a_type(Format format);
pyc::DType b_type(Format format);
// A row of `tiles` taken apart.
std::vector<pyc::Factor> factors(pyc::DType type, const uint8_t* row, size_t bytes);

void probe_smoke();
void probe_blocks(double seconds);
void probe_edges();
void probe_chains();
void probe_fp8();

}  // namespace probe
