#include "host/image_codecs.h"

#ifdef PYC_HAVE_WEBP
#include <webp/decode.h>
#endif

namespace pyc::host {

#ifdef PYC_HAVE_WEBP

Result<Pixels> decode_webp(Encoded bytes) {
  int width = 0;
  int height = 0;
  if (WebPGetInfo(bytes.data(), bytes.size(), &width, &height) == 0) {
    return bad_image("WebP", "the header is wrong");
  }
  PYC_ASSIGN(Pixels pixels, make_pixels(width, height));
  if (WebPDecodeRGBInto(bytes.data(), bytes.size(), pixels.rgb.data(), pixels.rgb.size(),
                        3 * width) == nullptr) {
    return bad_image("WebP", "the pixels cannot be decoded");
  }
  return pixels;
}

#else

Result<Pixels> decode_webp(Encoded /*bytes*/) { return missing_library("WebP", "libwebp"); }

#endif

}  // namespace pyc::host
