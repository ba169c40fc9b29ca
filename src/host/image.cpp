#include "host/image.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/elements.h"
#include "host/image_codecs.h"

namespace pyc::host {
namespace {

struct Format {
  std::string_view start;  // of the file
  Result<Pixels> (*decode)(Encoded);
  std::string_view later = {};  // what follows at byte 8
};

constexpr Format kFormats[] = {
    {"\xFF\xD8\xFF", decode_jpeg},
    {"\x89PNG\r\n\x1A\n", decode_png},
    {"BM", decode_bmp},
    {std::string_view("II*\0", 4), decode_tiff},
    {std::string_view("MM\0*", 4), decode_tiff},
    {"RIFF", decode_webp, "WEBP"},
    {std::string_view("\0\0\0\x0CjP  ", 8), decode_jpeg2000},
    {"\xFF\x4F\xFF\x51", decode_jpeg2000},
    {"P1", decode_pnm},
    {"P2", decode_pnm},
    {"P3", decode_pnm},
    {"P4", decode_pnm},
    {"P5", decode_pnm},
    {"P6", decode_pnm},
};

// Rounded as the usual weights in 16 bits.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >> 16);
}

}  // namespace

Result<Pixels> make_pixels(int64_t width, int64_t height) {
  if (width < 1 || height < 1) {
    return Status(Code::kParseError, fmt::format("an image of {} x {} pixels", width, height));
  }
  if (width > kMaxPixels / height) {
    return Status(Code::kBudgetExceeded,
                  fmt::format("an image of {} x {} pixels is over the limit of {}", width, height,
                              kMaxPixels));
  }
  Pixels pixels{width, height, {}};
  pixels.rgb.resize(static_cast<size_t>(width * height * 3));
  return pixels;
}

Status bad_image(std::string_view format, std::string_view why) {
  return {Code::kParseError, fmt::format("{} image: {}", format, why)};
}

Status missing_library(std::string_view format, std::string_view library) {
  return {Code::kUnsupported, fmt::format("{} image: PyC was built without {}", format, library)};
}

Result<DynValue> decode_image(const DynValue& encoded, PixelFormat format) {
  PYC_TRY(check_numbers(encoded, "image"));
  PYC_TRY(check_rank(encoded, 1, "image"));
  if (encoded.dtype != DType::kU8) {
    return Status(Code::kDtypeMismatch,
                  fmt::format("image: expected u8, found {}", encoded.to_string()));
  }
  const auto* data = reinterpret_cast<const uint8_t*>(encoded.bytes.data());
  const std::string_view text(reinterpret_cast<const char*>(data), encoded.bytes.size());
  const auto fits = [&](const Format& f) {
    return text.starts_with(f.start) &&
           (f.later.empty() || (text.size() > 8 && text.substr(8).starts_with(f.later)));
  };
  const auto* const found = std::find_if(std::begin(kFormats), std::end(kFormats), fits);
  if (found == std::end(kFormats)) {
    return Status(Code::kParseError, "the bytes are no image of a known format");
  }
  PYC_ASSIGN(const Pixels pixels, found->decode({data, encoded.bytes.size()}));
  const int64_t channels = format == PixelFormat::kGray ? 1 : 3;
  PYC_ASSIGN(NewTensor made, new_tensor(DType::kU8, {pixels.height, pixels.width, channels}));
  auto* to = reinterpret_cast<uint8_t*>(made.data);
  for (size_t i = 0; i < pixels.rgb.size(); i += 3) {
    const uint8_t* from = pixels.rgb.data() + i;
    if (format == PixelFormat::kGray) {
      *to++ = luma(from);
    } else {
      const bool swap = format == PixelFormat::kBgr;
      *to++ = from[swap ? 2 : 0];
      *to++ = from[1];
      *to++ = from[swap ? 0 : 2];
    }
  }
  return made.value;
}

}  // namespace pyc::host
