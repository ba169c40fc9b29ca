#include "dtypes.h"

#include <array>

namespace pyc::python {
namespace {

constexpr dlpack::DataType kNone{0, 0, 0};

// In the order of the dtypes' numbers.
constexpr std::array kNames{
    DtypeNames{PYC_DTYPE_BOOL, "?", "bool", {dlpack::kBool, 8, 1}},
    DtypeNames{PYC_DTYPE_I2, nullptr, "int2", kNone},
    DtypeNames{PYC_DTYPE_I4, nullptr, "int4", kNone},
    DtypeNames{PYC_DTYPE_I8, "b", "int8", {dlpack::kInt, 8, 1}},
    DtypeNames{PYC_DTYPE_I16, "h", "int16", {dlpack::kInt, 16, 1}},
    DtypeNames{PYC_DTYPE_I32, "i", "int32", {dlpack::kInt, 32, 1}},
    DtypeNames{PYC_DTYPE_I64, "q", "int64", {dlpack::kInt, 64, 1}},
    DtypeNames{PYC_DTYPE_U2, nullptr, "uint2", kNone},
    DtypeNames{PYC_DTYPE_U4, nullptr, "uint4", kNone},
    DtypeNames{PYC_DTYPE_U8, "B", "uint8", {dlpack::kUInt, 8, 1}},
    DtypeNames{PYC_DTYPE_U16, "H", "uint16", {dlpack::kUInt, 16, 1}},
    DtypeNames{PYC_DTYPE_U32, "I", "uint32", {dlpack::kUInt, 32, 1}},
    DtypeNames{PYC_DTYPE_U64, "Q", "uint64", {dlpack::kUInt, 64, 1}},
    DtypeNames{PYC_DTYPE_F4E2M1, nullptr, "float4_e2m1fn", kNone},
    DtypeNames{PYC_DTYPE_F8E8M0, nullptr, "float8_e8m0fnu", {dlpack::kFloat8E8m0fnu, 8, 1}},
    DtypeNames{PYC_DTYPE_F8E4M3FN, nullptr, "float8_e4m3fn", {dlpack::kFloat8E4m3fn, 8, 1}},
    DtypeNames{PYC_DTYPE_F8E4M3FNUZ, nullptr, "float8_e4m3fnuz", {dlpack::kFloat8E4m3fnuz, 8, 1}},
    DtypeNames{PYC_DTYPE_F8E5M2, nullptr, "float8_e5m2", {dlpack::kFloat8E5m2, 8, 1}},
    DtypeNames{PYC_DTYPE_F8E5M2FNUZ, nullptr, "float8_e5m2fnuz", {dlpack::kFloat8E5m2fnuz, 8, 1}},
    DtypeNames{PYC_DTYPE_F16, "e", "float16", {dlpack::kFloat, 16, 1}},
    DtypeNames{PYC_DTYPE_BF16, nullptr, "bfloat16", {dlpack::kBfloat, 16, 1}},
    DtypeNames{PYC_DTYPE_F32, "f", "float32", {dlpack::kFloat, 32, 1}},
    DtypeNames{PYC_DTYPE_F64, "d", "float64", {dlpack::kFloat, 64, 1}},
    DtypeNames{PYC_DTYPE_C64, "Zf", "complex64", {dlpack::kComplex, 64, 1}},
    DtypeNames{PYC_DTYPE_C128, "Zd", "complex128", {dlpack::kComplex, 128, 1}},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i].dtype != static_cast<pyc_dtype>(i)) return false;
  }
  return true;
}
static_assert(in_order());

// The first is that of one byte.
pyc_dtype integer(pyc_dtype first, int64_t bytes) {
  switch (bytes) {
    case 1:
      return first;
    case 2:
      return first + 1;
    case 4:
      return first + 2;
    case 8:
      return first + 3;
    default:
      return PYC_DTYPE_ANY;
  }
}

}  // namespace

const DtypeNames* names_of(pyc_dtype dtype) {
  const bool known = dtype >= 0 && dtype < static_cast<pyc_dtype>(kNames.size());
  return known ? &kNames[static_cast<size_t>(dtype)] : nullptr;
}

pyc_dtype dtype_of_format(const char* format, int64_t item_bytes) {
  std::string_view text = format == nullptr ? "B" : format;
  // Both machines that PyC runs on are little-endian.
  if (!text.empty() && std::string_view("@=<").find(text[0]) != std::string_view::npos) {
    text.remove_prefix(1);
  }
  if (text == "Zf") return PYC_DTYPE_C64;
  if (text == "Zd") return PYC_DTYPE_C128;
  if (text.size() != 1) return PYC_DTYPE_ANY;
  switch (text[0]) {
    case '?':
      return PYC_DTYPE_BOOL;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return integer(PYC_DTYPE_I8, item_bytes);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return integer(PYC_DTYPE_U8, item_bytes);
    case 'e':
      return PYC_DTYPE_F16;
    case 'f':
      return PYC_DTYPE_F32;
    case 'd':
      return PYC_DTYPE_F64;
    default:
      return PYC_DTYPE_ANY;
  }
}

pyc_dtype dtype_of_extension(std::string_view name) {
  for (const DtypeNames& names : kNames) {
    if (names.format == nullptr && name == names.numpy) return names.dtype;
  }
  return PYC_DTYPE_ANY;
}

pyc_dtype dtype_of_dlpack(dlpack::DataType type) {
  for (const DtypeNames& names : kNames) {
    const dlpack::DataType& known = names.dl;
    if (known.bits != 0 && known.code == type.code && known.bits == type.bits &&
        known.lanes == type.lanes) {
      return names.dtype;
    }
  }
  return PYC_DTYPE_ANY;
}

}  // namespace pyc::python
