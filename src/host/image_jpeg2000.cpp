#include "host/image_codecs.h"

#ifdef PYC_HAVE_OPENJPEG
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>
#endif

namespace pyc::host {

#ifdef PYC_HAVE_OPENJPEG

namespace {

struct Memory {
  Encoded bytes;
  size_t at = 0;
};

OPJ_SIZE_T read(void* to, OPJ_SIZE_T size, void* data) {
  auto& memory = *static_cast<Memory*>(data);
  const size_t count = std::min<size_t>(size, memory.bytes.size() - memory.at);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, memory.bytes.data() + memory.at, count);
  memory.at += count;
  return count;
}

OPJ_OFF_T skip(OPJ_OFF_T size, void* data) {
  auto& memory = *static_cast<Memory*>(data);
  if (size < 0) return -1;
  const size_t count = std::min<size_t>(static_cast<size_t>(size), memory.bytes.size() - memory.at);
  memory.at += count;
  return static_cast<OPJ_OFF_T>(count);
}

OPJ_BOOL seek(OPJ_OFF_T to, void* data) {
  auto& memory = *static_cast<Memory*>(data);
  if (to < 0 || static_cast<size_t>(to) > memory.bytes.size()) return OPJ_FALSE;
  memory.at = static_cast<size_t>(to);
  return OPJ_TRUE;
}

using Codec = std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)>;
void destroy_codec(opj_codec_t* codec) { opj_destroy_codec(codec); }

// A sample as 8 bits.
uint8_t to_byte(const opj_image_comp_t& component, size_t at) {
  int64_t value = component.data[at];
  if (component.sgnd != 0) value += int64_t{1} << (component.prec - 1);
  if (component.prec > 8) value >>= component.prec - 8;
  if (component.prec < 8) value = value * 255 / ((int64_t{1} << component.prec) - 1);
  return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255));
}

Status check_components(const opj_image_t& image) {
  const bool color = image.numcomps >= 3;
  if (image.numcomps < 1 || image.numcomps > 4 || image.color_space == OPJ_CLRSPC_SYCC) {
    return {Code::kUnsupported, "JPEG 2000 image: only grey and RGB"};
  }
  for (uint32_t c = 0; c < (color ? 3U : 1U); ++c) {
    const opj_image_comp_t& component = image.comps[c];
    if (component.dx != 1 || component.dy != 1 || component.w != image.comps[0].w ||
        component.h != image.comps[0].h || component.prec < 1 || component.prec > 31) {
      return {Code::kUnsupported, "JPEG 2000 image: components of several sizes"};
    }
  }
  return {};
}

}  // namespace

Result<Pixels> decode_jpeg2000(Encoded bytes) {
  const bool boxed = bytes[0] == 0;
  const Codec codec(opj_create_decompress(boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K), destroy_codec);
  const std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)> stream(
      opj_stream_default_create(OPJ_TRUE), [](opj_stream_t* s) { opj_stream_destroy(s); });
  if (codec == nullptr || stream == nullptr) {
    return Status(Code::kOutOfMemory, "JPEG 2000 image: no memory for a decoder");
  }
  Memory memory{.bytes = bytes};
  opj_stream_set_user_data(stream.get(), &memory, nullptr);
  opj_stream_set_user_data_length(stream.get(), bytes.size());
  opj_stream_set_read_function(stream.get(), read);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* header = nullptr;
  const bool started = opj_setup_decoder(codec.get(), &parameters) != 0 &&
                       opj_read_header(stream.get(), codec.get(), &header) != 0;
  const std::unique_ptr<opj_image_t, void (*)(opj_image_t*)> image(
      header, [](opj_image_t* i) { opj_image_destroy(i); });
  if (!started || image == nullptr) return bad_image("JPEG 2000", "the header is wrong");
  PYC_ASSIGN(Pixels pixels,
             make_pixels(int64_t{image->x1} - image->x0, int64_t{image->y1} - image->y0));
  PYC_TRY(check_components(*image));
  if (opj_decode(codec.get(), stream.get(), image.get()) == 0) {
    return bad_image("JPEG 2000", "the pixels cannot be decoded");
  }
  const bool color = image->numcomps >= 3;
  const size_t count = pixels.rgb.size() / 3;
  for (size_t c = 0; c < 3; ++c) {
    const opj_image_comp_t& component = image->comps[color ? c : 0];
    if (component.data == nullptr || size_t{component.w} * component.h != count) {
      return bad_image("JPEG 2000", "a component is missing");
    }
    for (size_t i = 0; i < count; ++i) pixels.rgb[3 * i + c] = to_byte(component, i);
  }
  return pixels;
}

#else

Result<Pixels> decode_jpeg2000(Encoded /*bytes*/) {
  return missing_library("JPEG 2000", "OpenJPEG");
}

#endif

}  // namespace pyc::host
