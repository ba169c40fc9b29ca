#include "import/onnx/tensor.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "base/convert.h"
#include "base/mapped_file.h"

namespace pyc::onnx {
namespace {

// By number of TensorProto.DataType; "" where PyC has no such dtype.
constexpr std::string_view kDtypes[] = {
    "",           "f32",    "u8",         "i8",  "u16", "i16",    "i32",    "i64",  "",
    "bool",       "f16",    "f64",        "u32", "u64", "c64",    "c128",   "bf16", "f8e4m3fn",
    "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4",  "i4",  "f4e2m1", "f8e8m0", "u2",   "i2"};
constexpr std::string_view kOnnxNames[] = {
    "undefined",      "float",    "uint8",        "int8",           "uint16",
    "int16",          "int32",    "int64",        "string",         "bool",
    "float16",        "double",   "uint32",       "uint64",         "complex64",
    "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
    "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
    "uint2",          "int2"};

// Bits of one element in raw data.
int raw_bits(int32_t type) {
  if (type == 21 || type == 22 || type == 23) return 4;
  if (type == 25 || type == 26) return 2;
  const auto t = dtype_of(type);
  return t ? static_cast<int>(8 * dtype_size(*t)) : 0;
}
bool is_packed(int32_t type) { return raw_bits(type) < 8; }
bool is_signed_packed(int32_t type) { return type == 22 || type == 26; }

std::string label(const TensorProto& t) {
  return t.name.empty() ? std::string("tensor") : fmt::format("tensor '{}'", t.name);
}

Status bad(const TensorProto& t, Code code, std::string message) {
  return {code, fmt::format("{}: {}", label(t), message)};
}

bool affordable(const Source& source, int64_t bytes) {
  return source.budget == nullptr || source.budget->take(static_cast<size_t>(bytes));
}
Status too_much(const TensorProto& t, int64_t bytes) {
  return bad(t, Code::kBudgetExceeded,
             fmt::format("its {} bytes are too many for a file of this size", bytes));
}

Result<int64_t> parse_number(const TensorProto& t, std::string_view key, std::string_view text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    return bad(t, Code::kParseError, fmt::format("external data: {} is '{}'", key, text));
  }
  return value;
}

Result<ExternalFiles::File*> external_file(std::string_view location, const Source& source,
                                           ExternalFiles& known) {
  const std::string path(location);
  const std::string key = std::filesystem::path(path).lexically_normal().string();
  const auto it = known.files.find(key);
  // A path that climbs and comes back is refused each time.
  if (it != known.files.end() && path.find("..") == std::string::npos) return &it->second;
  PYC_ASSIGN(SharedBytes bytes, map_file_beneath(source.folder, path));
  ExternalFiles::File& file = known.files[key];
  file.bytes = std::move(bytes);
  return &file;
}

// Several tensors may be the same bytes, but not parts of one another's. Whether it is so.
bool note_range(ExternalFiles::File& file, int64_t offset, int64_t length) {
  if (length == 0) return true;
  const auto next = file.ranges.lower_bound(offset);
  if (next != file.ranges.end() && next->first == offset) return next->second == length;
  if (next != file.ranges.end() && next->first < offset + length) return false;
  if (next != file.ranges.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second > offset) return false;
  }
  file.ranges.emplace(offset, length);
  return true;
}

Result<SharedBytes> external_bytes(const TensorProto& t, const Source& source, int64_t expected) {
  std::string_view location;
  int64_t offset = 0;
  int64_t length = -1;
  for (const auto& [key, value] : t.external_data) {
    if (key == "location") location = value;
    if (key == "offset") {
      PYC_ASSIGN(offset, parse_number(t, key, value));
    }
    if (key == "length") {
      PYC_ASSIGN(length, parse_number(t, key, value));
    }
  }
  if (!source.external_allowed) {
    return bad(t, Code::kUnsupported, "external data is only read for models loaded from a file");
  }
  ExternalFiles own;
  auto file = external_file(location, source, source.files == nullptr ? own : *source.files);
  if (!file.ok()) return bad(t, file.status().code(), file.status().message());
  const SharedBytes& mapped = (*file)->bytes;
  if (length >= 0 && length != expected) {
    return bad(t, Code::kSizeMismatch,
               fmt::format("external data has {} bytes, its type needs {}", length, expected));
  }
  const auto size = static_cast<int64_t>(mapped.size());
  if (offset > size || expected > size - offset) {
    return bad(t, Code::kSizeMismatch,
               fmt::format("external data has {} bytes from byte {} of '{}', which has {}",
                           expected, offset, location, size));
  }
  if (!note_range(**file, offset, expected)) {
    return bad(t, Code::kInvalidArgument,
               fmt::format("its {} bytes from byte {} of '{}' overlap those of another tensor",
                           expected, offset, location));
  }
  auto owner = std::make_shared<const SharedBytes>(mapped);
  return SharedBytes(
      owner, owner->span().subspan(static_cast<size_t>(offset), static_cast<size_t>(expected)),
      mapped.in_file());
}

// Elements of fewer than 8 bits, lowest first, one per byte.
std::vector<std::byte> unpack(std::span<const std::byte> packed, int64_t count, int bits,
                              bool sign_extend) {
  std::vector<std::byte> out(static_cast<size_t>(count));
  const int per_byte = 8 / bits;
  const int mask = (1 << bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = std::to_integer<int>(packed[static_cast<size_t>(i / per_byte)]);
    int v = (byte >> (bits * static_cast<int>(i % per_byte))) & mask;
    if (sign_extend && (v >> (bits - 1)) != 0) v -= 1 << bits;
    out[static_cast<size_t>(i)] = static_cast<std::byte>(v);
  }
  return out;
}

Result<SharedBytes> from_raw(const TensorProto& t, const Source& source, int64_t count) {
  const int bits = raw_bits(t.type);
  const int64_t expected = (count * bits + 7) / 8;
  SharedBytes raw;
  if (t.external) {
    PYC_ASSIGN(raw, external_bytes(t, source, expected));
  } else {
    if (static_cast<int64_t>(t.raw.size()) != expected) {
      return bad(t, Code::kSizeMismatch,
                 fmt::format("raw data has {} bytes, its type needs {}", t.raw.size(), expected));
    }
    auto owner = std::make_shared<const SharedBytes>(source.file);
    raw = SharedBytes(owner, {reinterpret_cast<const std::byte*>(t.raw.data()), t.raw.size()},
                      source.file.in_file());
  }
  if (is_packed(t.type) && !affordable(source, count)) return too_much(t, count);
  if (is_packed(t.type)) return SharedBytes(unpack(raw, count, bits, is_signed_packed(t.type)));
  return raw;
}

template <class T, class Store>
Result<SharedBytes> from_list(const TensorProto& t, const std::vector<T>& list, int64_t count,
                              int64_t size, Store store) {
  if (static_cast<int64_t>(list.size()) != count) {
    return bad(t, Code::kSizeMismatch,
               fmt::format("{} elements are given, its dims need {}", list.size(), count));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(count * size));
  for (size_t i = 0; i < list.size(); ++i)
    store(bytes.data() + i * static_cast<size_t>(size), list[i]);
  return SharedBytes(std::move(bytes));
}

template <class T>
void store_as_is(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

Result<SharedBytes> from_fields(const TensorProto& t, DType dtype, int64_t count) {
  const int64_t size = dtype_size(dtype);
  switch (t.type) {
    case 1:
      return from_list(t, t.floats, count, size, store_as_is<float>);
    case 7:
      return from_list(t, t.int64s, count, size, store_as_is<int64_t>);
    case 11:
      return from_list(t, t.doubles, count, size, store_as_is<double>);
    case 12:
      return from_list(t, t.uint64s, count, size, [](std::byte* to, uint64_t v) {
        store_as_is(to, static_cast<uint32_t>(v));
      });
    case 13:
      return from_list(t, t.uint64s, count, size, store_as_is<uint64_t>);
    case 14:  // two numbers an element
      return from_list(t, t.floats, 2 * count, size / 2, store_as_is<float>);
    case 15:
      return from_list(t, t.doubles, 2 * count, size / 2, store_as_is<double>);
    default:
      break;
  }
  if (is_packed(t.type)) {  // one packed byte per int32
    const int bits = raw_bits(t.type);
    const int64_t packed = (count * bits + 7) / 8;
    PYC_ASSIGN(const SharedBytes bytes,
               from_list(t, t.int32s, packed, 1,
                         [](std::byte* to, int32_t v) { *to = static_cast<std::byte>(v); }));
    return SharedBytes(unpack(bytes, count, bits, is_signed_packed(t.type)));
  }
  // Small integers, bool and the bit patterns of narrow floats: the low bytes of an int32.
  return from_list(t, t.int32s, count, size, [&](std::byte* to, int32_t v) {
    std::memcpy(to, &v, static_cast<size_t>(size));
  });
}

Result<DynValue> decode_strings(const TensorProto& t) {
  const auto needed = tensor_bytes(DType::kU8, t.dims);
  if (!needed.ok()) return bad(t, needed.status().code(), needed.status().message());
  const int64_t count = *needed;
  if (t.has_raw || t.external) return bad(t, Code::kParseError, "strings are no raw data");
  if (count != static_cast<int64_t>(t.strings.size())) {
    return bad(t, Code::kSizeMismatch,
               fmt::format("{} strings are given, its dims need {}", t.strings.size(), count));
  }
  return DynValue::of_strings(t.dims, {t.strings.begin(), t.strings.end()});
}

}  // namespace

std::optional<DType> dtype_of(int32_t type) {
  if (type < 0 || type >= static_cast<int32_t>(std::size(kDtypes))) return std::nullopt;
  return kDtypes[type].empty() ? std::nullopt : dtype_from_name(kDtypes[type]);
}

std::optional<DType> real_dtype_of(int32_t type) {
  const auto dtype = dtype_of(type);
  return dtype && is_complex(*dtype) ? std::nullopt : dtype;
}

std::string onnx_type_name(int32_t type) {
  if (type < 0 || type >= static_cast<int32_t>(std::size(kOnnxNames)))
    return fmt::format("#{}", type);
  return std::string(kOnnxNames[type]);
}

Result<DynValue> decode_tensor(const TensorProto& t, const Source& source) {
  if (t.type == kOnnxString) return decode_strings(t);
  const auto dtype = dtype_of(t.type);
  if (!dtype) {
    return bad(t, Code::kUnsupported,
               fmt::format("element type {} is not supported", onnx_type_name(t.type)));
  }
  const auto bytes_needed = tensor_bytes(*dtype, t.dims);
  if (!bytes_needed.ok())
    return bad(t, bytes_needed.status().code(), bytes_needed.status().message());
  const int64_t count = *bytes_needed / dtype_size(*dtype);
  DynValue value;
  value.kind = DynValue::Kind::kTensor;
  value.dtype = *dtype;
  value.shape = t.dims;
  const bool listed = !t.floats.empty() || !t.int32s.empty() || !t.int64s.empty() ||
                      !t.doubles.empty() || !t.uint64s.empty() || !t.strings.empty();
  if (listed && (t.has_raw || t.external)) {
    return bad(t, Code::kParseError, "its elements are given twice");
  }
  if (t.has_raw || t.external) {
    PYC_ASSIGN(value.bytes, from_raw(t, source, count));
  } else {
    if (!affordable(source, *bytes_needed)) return too_much(t, *bytes_needed);
    PYC_ASSIGN(value.bytes, from_fields(t, *dtype, count));
  }
  return value;
}

Result<DynValue> decode_sparse(const SparseTensorProto& sparse, const Source& source) {
  PYC_ASSIGN(const DynValue values, decode_tensor(sparse.values, source));
  PYC_ASSIGN(const DynValue indices, decode_tensor(sparse.indices, source));
  if (!values.is_tensor() || !indices.is_tensor() || indices.dtype != DType::kI64 ||
      values.shape.size() != 1) {
    return bad(sparse.values, Code::kUnsupported, "a sparse tensor of this kind is not supported");
  }
  const auto needed = tensor_bytes(values.dtype, sparse.dims);
  if (!needed.ok()) return bad(sparse.values, needed.status().code(), needed.status().message());
  if (!affordable(source, *needed)) return too_much(sparse.values, *needed);
  PYC_ASSIGN(NewTensor dense, new_tensor(values.dtype, sparse.dims));
  std::memset(dense.data, 0, dense.value.bytes.size());
  const auto size = static_cast<size_t>(dtype_size(values.dtype));
  const std::vector<int64_t> at = to_ints(indices);
  const size_t rank = indices.shape.size() == 2 ? sparse.dims.size() : 1;
  const ir::Shape strides = ir::strides_of(sparse.dims);
  const auto count = static_cast<size_t>(values.shape[0]);
  if (at.size() != count * rank) {
    return bad(sparse.values, Code::kSizeMismatch, "a sparse tensor needs an index per value");
  }
  for (size_t i = 0; i < count; ++i) {
    int64_t position = 0;
    bool inside = true;
    for (size_t d = 0; d < rank; ++d) {
      const bool flat = indices.shape.size() != 2;
      const int64_t index = at[i * rank + d];
      inside = inside && index >= 0 && index < (flat ? dense.value.elements() : sparse.dims[d]);
      if (inside) position += index * (flat ? 1 : strides[d]);
    }
    if (!inside || position >= dense.value.elements()) {
      return bad(sparse.values, Code::kInvalidArgument, "a sparse tensor's index is out of range");
    }
    std::memcpy(dense.data + static_cast<size_t>(position) * size, values.bytes.data() + i * size,
                size);
  }
  return dense.value;
}

Result<open::OpenType> decode_type(const TypeProto& type) {
  open::OpenType out;
  if (type.kind == TypeProto::Kind::kNone) return out;
  if (type.kind == TypeProto::Kind::kOther) {
    return Status(Code::kUnsupported, "maps, opaque and sparse tensor types are not supported");
  }
  if (type.kind != TypeProto::Kind::kTensor) {
    out.kind = type.kind == TypeProto::Kind::kSequence ? open::OpenType::Kind::kSequence
                                                       : open::OpenType::Kind::kOptional;
    if (!type.element.empty()) {
      PYC_ASSIGN(open::OpenType element, decode_type(type.element[0]));
      out.element = std::make_shared<const open::OpenType>(std::move(element));
    }
    return out;
  }
  if (type.elem_type == kOnnxString) {
    out.kind = open::OpenType::Kind::kStrings;
  } else {
    out.kind = open::OpenType::Kind::kTensor;
    out.dtype = dtype_of(type.elem_type);
    if (!out.dtype && type.elem_type != 0) {
      return Status(Code::kUnsupported, fmt::format("element type {} is not supported",
                                                    onnx_type_name(type.elem_type)));
    }
  }
  if (type.has_shape) {
    out.shape.emplace();
    for (const TypeProto::Dim& d : type.shape) {
      if (d.value < -1 || d.value > ir::kMaxElements) {  // -1 is how some write "not fixed"
        return Status(Code::kInvalidArgument, fmt::format("a dim of {} is declared", d.value));
      }
      out.shape->push_back({d.value, std::string(d.param)});
    }
  }
  return out;
}

namespace {

Result<DynValue> convert_value(const ValueProto& v, bool sequence, const Source& source) {
  std::vector<DynValue> items;
  for (const TensorProto& t : v.tensors) {
    PYC_ASSIGN(DynValue item, decode_tensor(t, source));
    items.push_back(std::move(item));
  }
  for (const ValueProto& inner : v.values) {
    PYC_ASSIGN(DynValue item, convert_value(inner, true, source));
    items.push_back(std::move(item));
  }
  if (sequence) return DynValue::of_items(std::move(items));
  return items.empty() ? DynValue() : items[0];
}

}  // namespace

Result<DynValue> decode_value(const SharedBytes& bytes, const open::OpenType& declared) {
  const Source source{.file = bytes, .folder = "", .external_allowed = false};
  if (declared.kind == open::OpenType::Kind::kSequence) {
    PYC_ASSIGN(const ValueProto v, parse_sequence(bytes));
    return convert_value(v, true, source);
  }
  if (declared.kind == open::OpenType::Kind::kOptional) {
    PYC_ASSIGN(const ValueProto v, parse_optional(bytes));
    return convert_value(v, false, source);
  }
  PYC_ASSIGN(const TensorProto t, parse_tensor(bytes));
  return decode_tensor(t, source);
}

}  // namespace pyc::onnx
