#include "host/image_codecs.h"

#ifdef PYC_HAVE_TIFF
#include <tiffio.h>
#if TIFFLIB_VERSION >= 20221213  // 4.5, which can bound what a hostile image allocates
#define PYC_USE_TIFF
#endif

#include <algorithm>
#include <cstring>
#include <memory>
#endif

namespace pyc::host {

#ifdef PYC_USE_TIFF

namespace {

constexpr tmsize_t kMaxBlock = tmsize_t{1} << 28;  // of one strip or tile

struct TiffMemory {
  Encoded bytes;
  toff_t at = 0;
};

tmsize_t read_tiff(thandle_t handle, void* to, tmsize_t size) {
  auto& memory = *static_cast<TiffMemory*>(handle);
  const toff_t left = memory.bytes.size() - std::min<toff_t>(memory.at, memory.bytes.size());
  const auto count = std::min<toff_t>(left, static_cast<toff_t>(std::max<tmsize_t>(size, 0)));
  if (count > 0) std::memcpy(to, memory.bytes.data() + memory.at, count);
  memory.at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t refuse_write(thandle_t /*handle*/, void* /*from*/, tmsize_t /*size*/) { return 0; }

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  auto& memory = *static_cast<TiffMemory*>(handle);
  const toff_t base = whence == SEEK_CUR ? memory.at : whence == SEEK_END ? memory.bytes.size() : 0;
  memory.at = base + offset;
  return memory.at;
}

int close(thandle_t /*handle*/) { return 0; }

toff_t size_of(thandle_t handle) { return static_cast<TiffMemory*>(handle)->bytes.size(); }

int quiet(TIFF* /*tiff*/, void* /*data*/, const char* /*module*/, const char* /*format*/,
          va_list /*arguments*/) {
  return 1;
}

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, Close>;

Tiff open(TiffMemory& memory) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMaxBlock);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), quiet, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), quiet, nullptr);
  return Tiff(TIFFClientOpenExt("memory", "rm", &memory, read_tiff, refuse_write, seek_tiff, close,
                                size_of, nullptr, nullptr, options.get()));
}

}  // namespace

Result<Pixels> decode_tiff(Encoded bytes) {
  TiffMemory memory{.bytes = bytes};
  const Tiff tiff = open(memory);
  uint32_t width = 0;
  uint32_t height = 0;
  if (tiff == nullptr || TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) == 0) {
    return bad_image("TIFF", "the header is wrong");
  }
  PYC_ASSIGN(Pixels pixels, make_pixels(width, height));
  char why[1024] = "";
  if (TIFFRGBAImageOK(tiff.get(), why) == 0) return bad_image("TIFF", why);
  std::vector<uint32_t> packed(pixels.rgb.size() / 3);
  if (TIFFReadRGBAImageOriented(tiff.get(), width, height, packed.data(), ORIENTATION_TOPLEFT, 1) ==
      0) {
    return bad_image("TIFF", "the pixels cannot be decoded");
  }
  for (size_t i = 0; i < packed.size(); ++i) {
    pixels.rgb[3 * i] = static_cast<uint8_t>(TIFFGetR(packed[i]));
    pixels.rgb[3 * i + 1] = static_cast<uint8_t>(TIFFGetG(packed[i]));
    pixels.rgb[3 * i + 2] = static_cast<uint8_t>(TIFFGetB(packed[i]));
  }
  return pixels;
}

#else

Result<Pixels> decode_tiff(Encoded /*bytes*/) { return missing_library("TIFF", "libtiff 4.5"); }

#endif

}  // namespace pyc::host
