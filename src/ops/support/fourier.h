#pragma once

// Discrete Fourier transforms as matrices.

#include <cstdint>
#include <vector>

namespace pyc::ops {

// What a transform of a signal of `points` values along one axis does.
struct Transform {
  int64_t length = 0;    // of the transform; a shorter signal is padded with 0, a longer one cut
  int64_t points = 0;    // of the signal that are used
  int64_t in_parts = 1;  // 1: real, 2: complex
  int64_t out_parts = 2;
  int64_t out_points = 0;
  bool inverse = false;
  bool mirrored = false;  // the signal is the first half of a spectrum, the other half its mirror
};

// The transform as a row-major matrix [points*in_parts, out_points*out_parts]. The inverse is not
// divided by the length. The same on every machine: only +, -, * and / of doubles.
std::vector<double> transform_matrix(const Transform& t);

}  // namespace pyc::ops
