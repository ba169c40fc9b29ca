#pragma once

// The program as a user calls it.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include "support/temp_folder.h"

namespace pyc::test {

struct Outcome {
  int exit = -1;
  std::string text;
};

inline Outcome shell(const std::string& command) {
  Outcome out;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> chunk{};
  while (size_t n = fread(chunk.data(), 1, chunk.size(), pipe)) out.text.append(chunk.data(), n);
  const int status = pclose(pipe);
  out.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

// Standard output and error together.
inline Outcome pyc(const std::string& arguments) {
  return shell(std::string(PYC_CLI) + " " + arguments + " 2>&1");
}
// Standard output alone.
inline Outcome pyc_out(const std::string& arguments) {
  return shell(std::string(PYC_CLI) + " " + arguments + " 2>/dev/null");
}

inline const std::string kModels = std::string(PYC_SOURCE_DIR) + "/tests/models/";
inline const std::string kMlp = kModels + "mlp.ir";

// The model in a file that goes away with the process.
inline std::string write_model(const std::string& name, const std::string& text) {
  static const TempFolder folder;
  const std::string path = folder.file(name);
  std::ofstream(path) << text;
  return path;
}

inline bool has(const Outcome& o, const std::string& part) {
  return o.text.find(part) != std::string::npos;
}

}  // namespace pyc::test
