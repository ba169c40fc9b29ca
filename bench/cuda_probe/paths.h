#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace probe {

// Ways to have the device add one block of 32 bytes a row (16 halves or 32 fp8) to an accumulator.
enum class Path : uint8_t { kN8, kN64, kN256, kRegN64, kRegN256, kMmaSync };
enum class Format : uint8_t { kBF16, kF16, kE4M3, kE5M2, kE4M3E5M2 };

inline constexpr int kRows = 64;      // of A in a tile
inline constexpr int kColumns = 256;  // of B in a tile
inline constexpr int kStepBytes = 32;

// Tiles t: D[t][i][j] = chain of blocks over A[t][i][·] and B[t][j][·], from C[t][i][j]. Rows are
// steps·32 bytes each.
struct Tiles {
  Format format = Format::kBF16;
  int tiles = 0;
  int steps = 1;
  std::vector<uint8_t> a;
  std::vector<uint8_t> b;
  std::vector<float> c;  // empty: the first block starts without accumulator

  size_t row_bytes() const { return static_cast<size_t>(steps) * kStepBytes; }
  size_t results() const { return static_cast<size_t>(tiles) * kRows * kColumns; }
  const uint8_t* a_row(size_t result) const { return &a[result / kColumns * row_bytes()]; }
  const uint8_t* b_row(size_t result) const {
    const size_t tile = result / (kRows * kColumns);
    return &b[(tile * kColumns + result % kColumns) * row_bytes()];
  }
};

bool is_fp8(Format format);
const char* format_name(Format format);
const char* path_name(Path path);
// The paths that exist for a format; the first is the base of comparisons.
std::vector<Path> paths_of(Format format);

// What computes, in words.
std::string device_name();
// Throws std::runtime_error with the cause.
std::vector<float> run_path(Path path, const Tiles& tiles);

// Time of segments, and samples compared with the named order.
void measure_segments(double seconds);

}  // namespace probe
