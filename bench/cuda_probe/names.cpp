#include "paths.h"

namespace probe {

bool is_fp8(Format format) { return format >= Format::kE4M3; }

const char* format_name(Format format) {
  switch (format) {
    case Format::kBF16:
      return "bf16";
    case Format::kF16:
      return "f16";
    case Format::kE4M3:
      return "e4m3";
    case Format::kE5M2:
      return "e5m2";
    case Format::kE4M3E5M2:
      return "e4m3*e5m2";
  }
  return "";
}

const char* path_name(Path path) {
  switch (path) {
    case Path::kN8:
      return "wgmma.n8";
    case Path::kN64:
      return "wgmma.n64";
    case Path::kN256:
      return "wgmma.n256";
    case Path::kRegN64:
      return "wgmma.reg.n64";
    case Path::kRegN256:
      return "wgmma.reg.n256";
    case Path::kMmaSync:
      return "mma.sync";
  }
  return "";
}

std::vector<Path> paths_of(Format format) {
  std::vector<Path> paths = {Path::kN64, Path::kN8, Path::kN256, Path::kRegN64, Path::kRegN256};
  if (!is_fp8(format)) paths.push_back(Path::kMmaSync);
  return paths;
}

}  // namespace probe
