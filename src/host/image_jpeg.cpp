#include "host/image_codecs.h"

#ifdef PYC_HAVE_JPEG
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>
#endif

namespace pyc::host {

#ifdef PYC_HAVE_JPEG

namespace {

constexpr int kMaxScans = 256;  // of a progressive image

// The library reports errors by a call that must not return.
struct Failure {
  jpeg_error_mgr manager;
  std::jmp_buf where;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  info->err->format_message(info, failure->message);
  std::longjmp(failure->where, 1);
}

void ignore(j_common_ptr /*info*/) {}

void check_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto* failure = reinterpret_cast<Failure*>(info->err);
  std::snprintf(failure->message, sizeof failure->message, "more than %d scans", kMaxScans);
  std::longjmp(failure->where, 1);
}

struct Decoder {
  jpeg_decompress_struct info = {};
  jpeg_progress_mgr progress = {};
  Failure failure = {};

  Decoder() {
    info.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = fail;
    failure.manager.output_message = ignore;
    progress.progress_monitor = check_progress;
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // The two halves hold nothing that a jump would leave behind.
  bool start(Encoded bytes) {
    if (setjmp(failure.where) != 0) return false;
    jpeg_create_decompress(&info);
    info.progress = &progress;
    jpeg_mem_src(&info, bytes.data(), static_cast<unsigned long>(bytes.size()));
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    jpeg_calc_output_dimensions(&info);
    return true;
  }
  bool read(uint8_t* rgb) {
    if (setjmp(failure.where) != 0) return false;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = rgb + size_t{info.output_scanline} * info.output_width * 3;
      jpeg_read_scanlines(&info, &row, 1);
    }
    return true;
  }
};

}  // namespace

Result<Pixels> decode_jpeg(Encoded bytes) {
  Decoder decoder;
  if (!decoder.start(bytes)) return bad_image("JPEG", decoder.failure.message);
  PYC_ASSIGN(Pixels pixels, make_pixels(decoder.info.output_width, decoder.info.output_height));
  if (decoder.info.output_components != 3) {
    return Status(Code::kUnsupported, "JPEG image: its colors cannot be made RGB");
  }
  if (!decoder.read(pixels.rgb.data())) return bad_image("JPEG", decoder.failure.message);
  return pixels;
}

#else

Result<Pixels> decode_jpeg(Encoded /*bytes*/) { return missing_library("JPEG", "libjpeg-turbo"); }

#endif

}  // namespace pyc::host
