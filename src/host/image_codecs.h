#pragma once

// One decoder per format. Each reads hostile bytes: refused with kParseError when they are no such
// image, kBudgetExceeded when it has too many pixels, kUnsupported when PyC was built without the
// library or the image is of a kind that is not read.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace pyc::host {

struct Pixels {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> rgb;  // rows from the top
};
using Encoded = std::span<const uint8_t>;

// Memory for an image of this size; refused when it is empty or too large.
Result<Pixels> make_pixels(int64_t width, int64_t height);
Status bad_image(std::string_view format, std::string_view why);
Status missing_library(std::string_view format, std::string_view library);

Result<Pixels> decode_bmp(Encoded bytes);
Result<Pixels> decode_jpeg(Encoded bytes);
Result<Pixels> decode_jpeg2000(Encoded bytes);
Result<Pixels> decode_png(Encoded bytes);
Result<Pixels> decode_pnm(Encoded bytes);
Result<Pixels> decode_tiff(Encoded bytes);
Result<Pixels> decode_webp(Encoded bytes);

}  // namespace pyc::host
