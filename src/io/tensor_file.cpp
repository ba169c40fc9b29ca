#include "io/tensor_file.h"

#include <fmt/format.h>

#include <utility>

#include "base/files.h"

namespace pyc::io {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 40;

}  // namespace

Result<Tensor> make_tensor(DType dtype, ir::Shape shape, uint64_t room) {
  ir::TensorType type{dtype, std::move(shape)};
  const Status accepted = ir::check_type(type);
  if (!accepted.ok()) return Status(Code::kParseError, accepted.message());
  if (static_cast<uint64_t>(type.bytes()) > room) {
    return Status(Code::kParseError, fmt::format("expected {} bytes of elements for {}, found {}",
                                                 type.bytes(), type.to_string(), room));
  }
  PYC_ASSIGN(AlignedBuffer data, AlignedBuffer::create(static_cast<size_t>(type.bytes())));
  return Tensor{"", std::move(type), std::move(data)};
}

Result<Tensor> parse_tensor(std::string_view bytes, std::optional<DType> expected) {
  auto tensor = is_npy(bytes) ? parse_npy(bytes, expected) : parse_tensor_proto(bytes);
  if (!tensor.ok()) return tensor;
  if (expected && tensor->type.dtype != *expected) {
    return Status(Code::kDtypeMismatch,
                  fmt::format("expected elements of type {}, found {}", dtype_name(*expected),
                              tensor->type.to_string()));
  }
  return tensor;
}

Result<Tensor> read_tensor(const std::string& path, std::optional<DType> expected) {
  PYC_ASSIGN(const std::string bytes, read_file(path, kMaxFileBytes));
  auto tensor = parse_tensor(bytes, expected);
  if (!tensor.ok()) return std::move(tensor).status().with_context(path);
  return tensor;
}

Status write_npy(const std::string& path, const ir::TensorType& type,
                 std::span<const std::byte> data) {
  return write_file_atomic(path, npy_bytes(type, data));
}

}  // namespace pyc::io
