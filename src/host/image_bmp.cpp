#include <algorithm>

#include "host/image_codecs.h"

namespace pyc::host {
namespace {

uint32_t read32(Encoded bytes, size_t at) {
  return static_cast<uint32_t>(bytes[at]) | static_cast<uint32_t>(bytes[at + 1]) << 8 |
         static_cast<uint32_t>(bytes[at + 2]) << 16 | static_cast<uint32_t>(bytes[at + 3]) << 24;
}

uint32_t read16(Encoded bytes, size_t at) {
  return static_cast<uint32_t>(bytes[at]) | static_cast<uint32_t>(bytes[at + 1]) << 8;
}

constexpr size_t kHeaderAt = 14;
constexpr size_t kHeaderSize = 40;

}  // namespace

// Uncompressed images of 8 (with a palette), 24 or 32 bits per pixel.
Result<Pixels> decode_bmp(Encoded bytes) {
  if (bytes.size() < kHeaderAt + kHeaderSize) return bad_image("BMP", "the header is cut off");
  const uint32_t data_at = read32(bytes, 10);
  const uint32_t header_size = read32(bytes, kHeaderAt);
  if (header_size < kHeaderSize) return Status(Code::kUnsupported, "BMP image: an old header");
  const auto width = static_cast<int32_t>(read32(bytes, 18));
  const auto signed_height = static_cast<int64_t>(static_cast<int32_t>(read32(bytes, 22)));
  const uint32_t bits = read16(bytes, 28);
  const uint32_t compression = read32(bytes, 30);
  const bool plain = compression == 0 || (compression == 3 && bits == 32);
  if (!plain || (bits != 8 && bits != 24 && bits != 32)) {
    return Status(Code::kUnsupported, "BMP image: only 8, 24 and 32 bits, not compressed");
  }
  const bool from_top = signed_height < 0;
  PYC_ASSIGN(Pixels pixels, make_pixels(width, from_top ? -signed_height : signed_height));
  const size_t step = bits / 8;
  const size_t row = (static_cast<size_t>(width) * step + 3) / 4 * 4;
  if (data_at > bytes.size() ||
      (bytes.size() - data_at) / row < static_cast<size_t>(pixels.height)) {
    return bad_image("BMP", "the pixels are cut off");
  }
  const size_t palette_at = kHeaderAt + header_size;
  if (bits == 8 && (palette_at > bytes.size() || bytes.size() - palette_at < 4 * 256)) {
    return bad_image("BMP", "the palette is cut off");
  }
  uint8_t* to = pixels.rgb.data();
  for (int64_t y = 0; y < pixels.height; ++y) {
    const int64_t line = from_top ? y : pixels.height - 1 - y;
    const uint8_t* from = bytes.data() + data_at + static_cast<size_t>(line) * row;
    for (int64_t x = 0; x < pixels.width; ++x, from += step) {
      const uint8_t* bgr = bits == 8 ? bytes.data() + palette_at + 4 * size_t{*from} : from;
      *to++ = bgr[2];
      *to++ = bgr[1];
      *to++ = bgr[0];
    }
  }
  return pixels;
}

}  // namespace pyc::host
