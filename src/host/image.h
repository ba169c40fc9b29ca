#pragma once

// Encoded images as pixels: BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP.

#include <cstdint>
#include <span>
#include <vector>

#include "base/dyn_value.h"
#include "base/status.h"

namespace pyc::host {

enum class PixelFormat : uint8_t { kRgb, kBgr, kGray };

// A u8 vector to u8[height, width, 3], or with one channel for grey. The file says which format it
// is. Images over kMaxPixels are refused before memory is taken for them.
inline constexpr int64_t kMaxPixels = int64_t{1} << 26;
Result<DynValue> decode_image(const DynValue& encoded, PixelFormat format);

}  // namespace pyc::host
