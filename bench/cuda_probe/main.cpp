// The program of the probe: probe PART…, PART one of smoke blocks edges chains fp8 segments.
// Writes JSON to $PROBE_OUT/PART.json and lines "==> …" that scripts/gpu-probe repeats at the end.

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

#include "support.h"

namespace probe {

Report& report() {
  static Report the_report;
  return the_report;
}

void conclude(const std::string& line) {
  std::printf("==> %s\n", line.c_str());
  std::fflush(stdout);
}

pyc::DType a_type(Format format) {
  switch (format) {
    case Format::kBF16:
      return pyc::DType::kBF16;
    case Format::kF16:
      return pyc::DType::kF16;
    case Format::kE5M2:
      return pyc::DType::kF8E5M2;
    default:
      return pyc::DType::kF8E4M3FN;
  }
}

pyc::DType b_type(Format format) {
  return format == Format::kE4M3E5M2 ? pyc::DType::kF8E5M2 : a_type(format);
}

std::vector<pyc::Factor> factors(pyc::DType type, const uint8_t* row, size_t bytes) {
  const size_t size = static_cast<size_t>(pyc::dtype_size(type));
  std::vector<pyc::Factor> all(bytes / size);
  for (size_t i = 0; i < all.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, row + i * size, size);
    all[i] = pyc::Factor::from_bits(type, bits);
  }
  return all;
}

}  // namespace probe

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const char* seconds_text = std::getenv("PROBE_SECONDS");
  const double seconds = seconds_text != nullptr ? std::atof(seconds_text) : 20;
  const char* out = std::getenv("PROBE_OUT");
  int code = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view part = argv[i];
    const double start = probe::seconds_now();
    try {
      std::printf("# %s on %s\n", argv[i], probe::device_name().c_str());
      if (part == "smoke") probe::probe_smoke();
      if (part == "blocks") probe::probe_blocks(seconds);
      if (part == "edges") probe::probe_edges();
      if (part == "chains") probe::probe_chains();
      if (part == "fp8") probe::probe_fp8();
      if (part == "segments") probe::measure_segments(seconds);
    } catch (const std::exception& error) {
      probe::conclude(std::string(part) + " FAILED: " + error.what());
      probe::report().string(std::string(part) + ".failed", error.what());
      code = 1;
    }
    std::printf("# %s took %.1f s\n", argv[i], probe::seconds_now() - start);
    probe::report().number(std::string(part) + ".seconds", probe::seconds_now() - start);
    if (out != nullptr) probe::report().write(std::string(out) + "/" + argv[i] + ".json");
  }
  return code;
}
