#include "backends/cuda/disassemble.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"

namespace pyc::cuda {
namespace {

constexpr auto kPrograms = std::to_array({"nvdisasm", "/usr/local/cuda/bin/nvdisasm"});

// What a command prints; empty if it fails.
std::string printed_by(const std::string& command) {
  FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string out;
  std::array<char, 4096> piece{};
  for (size_t n = 0; (n = fread(piece.data(), 1, piece.size(), pipe)) > 0;) {
    out.append(piece.data(), n);
  }
  return pclose(pipe) == 0 ? out : "";
}

}  // namespace

Result<std::string> disassembled(const std::string& cubin) {
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "pyc_cubin_XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr) {
    return Status(Code::kIoError, "no folder for temporary files can be made");
  }
  const std::string file = folder + "/kernel.cubin";
  const Status written = write_file_atomic(file, std::string_view(cubin));
  std::string text;
  for (const char* program : kPrograms) {
    if (written.ok() && text.empty()) text = printed_by(fmt::format("{} -c '{}'", program, file));
  }
  std::filesystem::remove_all(folder, error);
  PYC_TRY(written);
  if (text.empty()) {
    return Status(Code::kUnsupported,
                  "no nvdisasm that can read the kernel was found in the path or in "
                  "/usr/local/cuda/bin; it comes with the CUDA toolkit");
  }
  return text;
}

}  // namespace pyc::cuda
