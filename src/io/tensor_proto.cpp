// ONNX TensorProto: a protobuf message whose elements stand in raw_data or in the list that belongs
// to the data type.

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <protozero/exception.hpp>
#include <protozero/pbf_message.hpp>
#include <utility>

#include "base/convert.h"
#include "io/tensor_file.h"

namespace pyc::io {
namespace {

enum class Field : protozero::pbf_tag_type {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kDataLocation = 14,
};
using Message = protozero::pbf_message<Field>;

// The numbers of TensorProto.DataType, and the list that holds elements of the type.
struct TypeRow {
  int32_t number;
  DType dtype;
  Field list;
};
constexpr std::array<TypeRow, kDTypeCount> kTypes = {{
    {1, DType::kF32, Field::kFloatData},
    {2, DType::kU8, Field::kInt32Data},
    {3, DType::kI8, Field::kInt32Data},
    {4, DType::kU16, Field::kInt32Data},
    {5, DType::kI16, Field::kInt32Data},
    {6, DType::kI32, Field::kInt32Data},
    {7, DType::kI64, Field::kInt64Data},
    {9, DType::kBool, Field::kInt32Data},
    {10, DType::kF16, Field::kInt32Data},
    {11, DType::kF64, Field::kDoubleData},
    {12, DType::kU32, Field::kUint64Data},
    {13, DType::kU64, Field::kUint64Data},
    {16, DType::kBF16, Field::kInt32Data},
    {17, DType::kF8E4M3FN, Field::kInt32Data},
    {19, DType::kF8E5M2, Field::kInt32Data},
}};

// All that is kept of a message before its elements are looked at. Views into the file's bytes.
struct Parts {
  ir::Shape dims;
  int32_t type = 0;
  std::string name;
  protozero::data_view raw;
  bool has_raw = false;
  std::vector<Word> words;  // of the list, as 64-bit words
  Field list = Field::kRawData;
};

Status malformed(std::string_view what) {
  return {Code::kParseError, fmt::format("not a tensor file (.npy or ONNX TensorProto): {}", what)};
}

constexpr size_t kMaxDims = ir::kMaxRank;

// The entries of a repeated field, packed or one by one; `Packed` and `Single` are the message's
// getters for it and `word` turns an entry into 64 bits.
template <class Packed, class Single, class ToWord>
void append(Message& message, Parts& parts, Packed packed, Single single, ToWord word) {
  parts.list = message.tag();
  if (message.has_wire_type(protozero::pbf_wire_type::length_delimited)) {
    for (const auto entry : (message.*packed)()) parts.words.push_back(word(entry));
  } else {
    parts.words.push_back(word((message.*single)()));
  }
}

Status read_dims(Message& message, ir::Shape& dims) {
  const auto add = [&](int64_t dim) {
    dims.push_back(dim);
    return dims.size() <= kMaxDims;
  };
  const Status too_many = malformed(fmt::format("more than {} dims", kMaxDims));
  if (message.has_wire_type(protozero::pbf_wire_type::varint)) {
    return add(message.get_int64()) ? Status() : too_many;
  }
  for (const int64_t dim : message.get_packed_int64()) {
    if (!add(dim)) return too_many;
  }
  return {};
}

// The wire type of one entry of the field; the message's getters do not check it. Repeated fields
// may be packed as well.
struct Wire {
  protozero::pbf_wire_type entry;
  bool repeated;
};
Wire wire_of(Field field) {
  using protozero::pbf_wire_type;
  switch (field) {
    case Field::kDims:
    case Field::kInt32Data:
    case Field::kInt64Data:
    case Field::kUint64Data:
      return {pbf_wire_type::varint, true};
    case Field::kFloatData:
      return {pbf_wire_type::fixed32, true};
    case Field::kDoubleData:
      return {pbf_wire_type::fixed64, true};
    case Field::kDataType:
    case Field::kDataLocation:
      return {pbf_wire_type::varint, false};
    default:
      return {pbf_wire_type::length_delimited, false};
  }
}

// doc_string and external_data, between the last two, are skipped whatever they hold.
bool is_read(Field field) { return field <= Field::kUint64Data || field == Field::kDataLocation; }

Status read_field(Message& message, Parts& parts) {
  const Wire wire = wire_of(message.tag());
  const bool packed =
      wire.repeated && message.has_wire_type(protozero::pbf_wire_type::length_delimited);
  if (is_read(message.tag()) && !packed && !message.has_wire_type(wire.entry)) {
    return malformed("a field has another wire type than its own");
  }
  switch (message.tag()) {
    case Field::kDims:
      return read_dims(message, parts.dims);
    case Field::kDataType:
      parts.type = message.get_int32();
      return {};
    case Field::kName:
      parts.name = message.get_string();
      return {};
    case Field::kRawData:
      parts.raw = message.get_view();
      parts.has_raw = true;
      return {};
    case Field::kFloatData:
      append(message, parts, &Message::get_packed_float, &Message::get_float,
             [](float x) -> Word { return std::bit_cast<uint32_t>(x); });
      return {};
    case Field::kInt32Data:
      append(message, parts, &Message::get_packed_int32, &Message::get_int32,
             [](int32_t x) { return static_cast<Word>(int64_t{x}); });
      return {};
    case Field::kInt64Data:
      append(message, parts, &Message::get_packed_int64, &Message::get_int64,
             [](int64_t x) { return static_cast<Word>(x); });
      return {};
    case Field::kDoubleData:
      append(message, parts, &Message::get_packed_double, &Message::get_double,
             [](double x) { return std::bit_cast<Word>(x); });
      return {};
    case Field::kUint64Data:
      append(message, parts, &Message::get_packed_uint64, &Message::get_uint64,
             [](uint64_t x) { return x; });
      return {};
    case Field::kStringData:
      return {Code::kUnsupported, "tensors of strings are not supported"};
    case Field::kSegment:
      return {Code::kUnsupported, "tensors in segments are not supported"};
    case Field::kDataLocation:
      if (message.get_int32() == 0) return {};
      return {Code::kUnsupported, "tensor files with external data are not supported"};
    default:
      message.skip();
      return {};
  }
}

Status fill(const Parts& parts, const TypeRow& row, Tensor& tensor) {
  const auto elements = static_cast<size_t>(tensor.type.elements());
  if (parts.has_raw) {
    if (parts.raw.size() != tensor.data.size()) {
      return malformed(fmt::format("expected {} bytes of elements for {}, found {}",
                                   tensor.data.size(), tensor.type.to_string(), parts.raw.size()));
    }
    if (!parts.words.empty()) return malformed("it has both raw_data and a list of elements");
    if (elements != 0) std::memcpy(tensor.data.data(), parts.raw.data(), parts.raw.size());
    return {};
  }
  if (parts.words.size() != elements || (elements != 0 && parts.list != row.list)) {
    return malformed(fmt::format("expected {} elements for {} in the list of its type, found {}",
                                 elements, tensor.type.to_string(), parts.words.size()));
  }
  const int64_t size = dtype_size(row.dtype);
  for (size_t i = 0; i < elements; ++i) {
    store_word(tensor.data.data() + static_cast<int64_t>(i) * size, row.dtype, parts.words[i]);
  }
  return {};
}

Result<Tensor> parse(std::string_view bytes) {
  Parts parts;
  Message message(bytes.data(), bytes.size());
  while (message.next()) PYC_TRY(read_field(message, parts));
  for (const TypeRow& row : kTypes) {
    if (row.number != parts.type) continue;
    const uint64_t room = parts.has_raw
                              ? parts.raw.size()
                              : parts.words.size() * static_cast<size_t>(dtype_size(row.dtype));
    PYC_ASSIGN(Tensor tensor, make_tensor(row.dtype, std::move(parts.dims), room));
    tensor.name = std::move(parts.name);
    PYC_TRY(fill(parts, row, tensor));
    return tensor;
  }
  if (parts.type == 0) return malformed("it names no data type");
  return Status(Code::kUnsupported, fmt::format("ONNX data type {} is not supported", parts.type));
}

}  // namespace

Result<Tensor> parse_tensor_proto(std::string_view bytes) {
  try {
    return parse(bytes);
  } catch (const protozero::exception& error) {
    return malformed(error.what());
  }
}

}  // namespace pyc::io
