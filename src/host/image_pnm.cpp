#include <optional>

#include "host/image_codecs.h"

namespace pyc::host {
namespace {

class Reader {
 public:
  explicit Reader(Encoded bytes) : bytes_(bytes), at_(2) {}

  // A decimal number after white space and comments.
  std::optional<uint32_t> number() {
    skip();
    uint32_t value = 0;
    size_t digits = 0;
    for (; at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9'; ++at_, ++digits) {
      if (value > 99999999) return std::nullopt;
      value = value * 10 + (bytes_[at_] - uint32_t{'0'});
    }
    return digits == 0 ? std::nullopt : std::optional(value);
  }
  // A single 0 or 1 of a plain bitmap.
  std::optional<uint32_t> digit() {
    skip();
    if (at_ >= bytes_.size() || (bytes_[at_] != '0' && bytes_[at_] != '1')) return std::nullopt;
    return bytes_[at_++] - uint32_t{'0'};
  }
  std::optional<uint32_t> byte() {
    return at_ < bytes_.size() ? std::optional<uint32_t>(bytes_[at_++]) : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < bytes_.size()) {
      const uint8_t c = bytes_[at_];
      if (c == '#') {
        while (at_ < bytes_.size() && bytes_[at_] != '\n') ++at_;
      } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
        ++at_;
      } else {
        return;
      }
    }
  }

  Encoded bytes_;
  size_t at_;
};

std::optional<uint32_t> sample(Reader& reader, bool text, uint32_t most) {
  const auto first = text ? reader.number() : reader.byte();
  if (text || most < 256 || !first) return first;
  const auto second = reader.byte();
  return second ? std::optional(*first * 256 + *second) : std::nullopt;
}

// Rows of a bitmap, in which 1 is black.
Status read_bits(Reader& reader, bool text, Pixels& pixels) {
  uint8_t* to = pixels.rgb.data();
  for (int64_t y = 0; y < pixels.height; ++y) {
    uint32_t packed = 0;
    for (int64_t x = 0; x < pixels.width; ++x) {
      std::optional<uint32_t> bit;
      if (text) {
        bit = reader.digit();
      } else {
        const auto byte = x % 8 == 0 ? reader.byte() : std::optional(packed);
        if (byte) packed = *byte;
        if (byte) bit = (packed >> (7 - x % 8)) & 1;
      }
      if (!bit) return bad_image("PNM", "the pixels are cut off");
      for (int c = 0; c < 3; ++c) *to++ = *bit != 0 ? 0 : 255;
    }
  }
  return {};
}

}  // namespace

Result<Pixels> decode_pnm(Encoded bytes) {
  Reader reader(bytes);
  const char kind = static_cast<char>(bytes[1]);
  const bool text = kind <= '3';
  const bool bits = kind == '1' || kind == '4';
  const bool color = kind == '3' || kind == '6';
  const auto width = reader.number();
  const auto height = reader.number();
  const auto most = bits ? std::optional<uint32_t>(1) : reader.number();
  if (!width || !height || !most || *most < 1 || *most > 65535) {
    return bad_image("PNM", "the header is wrong");
  }
  if (!text) (void)reader.byte();  // the one white space that ends the header
  PYC_ASSIGN(Pixels pixels, make_pixels(*width, *height));
  if (bits) {
    PYC_TRY(read_bits(reader, text, pixels));
    return pixels;
  }
  for (size_t i = 0; i < pixels.rgb.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c) {
      if (c > 0 && !color) {
        pixels.rgb[i + c] = pixels.rgb[i];
        continue;
      }
      const auto value = sample(reader, text, *most);
      if (!value || *value > *most) return bad_image("PNM", "a sample is missing or too large");
      pixels.rgb[i + c] = static_cast<uint8_t>((*value * 255 + *most / 2) / *most);
    }
  }
  return pixels;
}

}  // namespace pyc::host
