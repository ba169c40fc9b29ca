#include "host/image_codecs.h"

#ifdef PYC_HAVE_PNG
#include <png.h>
#endif

namespace pyc::host {

#ifdef PYC_HAVE_PNG

Result<Pixels> decode_png(Encoded bytes) {
  struct Image {
    png_image png = {};
    ~Image() { png_image_free(&png); }
  } image;
  image.png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image.png, bytes.data(), bytes.size()) == 0) {
    return bad_image("PNG", image.png.message);
  }
  PYC_ASSIGN(Pixels pixels, make_pixels(image.png.width, image.png.height));
  // With an alpha channel the colors stay as they are stored; it is left out afterwards.
  image.png.format = PNG_FORMAT_RGBA;
  std::vector<uint8_t> rgba(pixels.rgb.size() / 3 * 4);
  if (png_image_finish_read(&image.png, nullptr, rgba.data(), 0, nullptr) == 0) {
    return bad_image("PNG", image.png.message);
  }
  for (size_t i = 0; i < pixels.rgb.size(); ++i) pixels.rgb[i] = rgba[i / 3 * 4 + i % 3];
  return pixels;
}

#else

Result<Pixels> decode_png(Encoded /*bytes*/) { return missing_library("PNG", "libpng"); }

#endif

}  // namespace pyc::host
