#include "io/tensor_file.h"

#include <fmt/format.h>

#include <utility>

#include "base/files.h"

namespace pyc::io {
namespace {

using Kind = open::OpenType::Kind;

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 40;

// The tensor in bytes that may hold something else. The file of a tensor reads as an empty sequence
// or optional, whose fields have other numbers.
std::optional<DynValue> tensor_in(std::string_view bytes) {
  open::OpenType any;
  auto value = parse_value_proto(bytes, any);
  const bool there = value.ok() && !value->absent() && value->elements() > 0;
  return there ? std::optional(std::move(*value)) : std::nullopt;
}

Result<DynValue> parse_sequence(std::string_view bytes, const open::OpenType& declared) {
  PYC_ASSIGN(DynValue value, parse_value_proto(bytes, declared));
  if (!value.items->empty()) return value;
  const auto tensor = tensor_in(bytes);
  if (!tensor) return value;
  return Status(Code::kDtypeMismatch,
                fmt::format("expected {}, found {}", declared.to_string(), tensor->to_string()));
}

Result<DynValue> parse_optional(std::string_view bytes, const open::OpenType& declared) {
  const open::OpenType held = declared.element == nullptr ? open::OpenType() : *declared.element;
  if (is_npy(bytes)) return parse_value(bytes, held);
  PYC_ASSIGN(DynValue value, parse_value_proto(bytes, declared));
  if (!value.absent() || !tensor_in(bytes)) return value;
  return parse_value(bytes, held);
}

Result<DynValue> parse_strings(std::string_view bytes, const open::OpenType& declared) {
  PYC_ASSIGN(DynValue value, parse_value_proto(bytes, declared));
  if (value.kind == DynValue::Kind::kStrings) return value;
  return Status(Code::kDtypeMismatch,
                fmt::format("expected {}, found {}", declared.to_string(), value.to_string()));
}

}  // namespace

Result<NewTensor> make_tensor(DType dtype, ir::Shape shape, uint64_t room) {
  ir::TensorType type{dtype, std::move(shape)};
  const Status accepted = ir::check_value_type(type);
  if (!accepted.ok()) return Status(Code::kParseError, accepted.message());
  if (static_cast<uint64_t>(type.bytes()) > room) {
    return Status(Code::kParseError, fmt::format("expected {} bytes of elements for {}, found {}",
                                                 type.bytes(), type.to_string(), room));
  }
  return new_tensor(type.dtype, std::move(type.shape));
}

Result<NewTensor> parse_tensor(std::string_view bytes, std::optional<DType> expected) {
  auto tensor = is_npy(bytes) ? parse_npy(bytes, expected) : parse_tensor_proto(bytes);
  if (!tensor.ok()) return tensor;
  if (expected && tensor->value.dtype != *expected) {
    return Status(Code::kDtypeMismatch,
                  fmt::format("expected elements of type {}, found {}", dtype_name(*expected),
                              tensor->value.to_string()));
  }
  return tensor;
}

Result<NewTensor> read_tensor(const std::string& path, std::optional<DType> expected) {
  PYC_ASSIGN(const std::string bytes, read_file(path, kMaxFileBytes));
  auto tensor = parse_tensor(bytes, expected);
  if (!tensor.ok()) return std::move(tensor).status().with_context(path);
  return tensor;
}

Result<DynValue> parse_value(std::string_view bytes, const open::OpenType& declared) {
  if (declared.kind == Kind::kOptional) return parse_optional(bytes, declared);
  if (declared.kind == Kind::kTensor || is_npy(bytes)) {
    if (declared.kind == Kind::kStrings || declared.kind == Kind::kSequence) {
      return Status(Code::kDtypeMismatch,
                    fmt::format("expected {} from an ONNX file (.pb), found a .npy file",
                                declared.to_string()));
    }
    PYC_ASSIGN(NewTensor tensor, parse_tensor(bytes, declared.dtype));
    return std::move(tensor.value);
  }
  if (declared.kind == Kind::kStrings) return parse_strings(bytes, declared);
  if (declared.kind == Kind::kSequence) return parse_sequence(bytes, declared);
  return parse_value_proto(bytes, declared);
}

Result<DynValue> read_value(const std::string& path, const open::OpenType& declared) {
  PYC_ASSIGN(const std::string bytes, read_file(path, kMaxFileBytes));
  auto value = parse_value(bytes, declared);
  if (!value.ok()) return std::move(value).status().with_context(path);
  return value;
}

Status write_npy(const std::string& path, const ir::TensorType& type,
                 std::span<const std::byte> data) {
  return write_file_atomic(path, npy_bytes(type, data));
}

}  // namespace pyc::io
