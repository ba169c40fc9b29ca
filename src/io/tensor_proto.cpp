// ONNX TensorProto and what holds several, read as the importer reads the tensors of a model.

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/tensor.h"
#include "io/tensor_file.h"

namespace pyc::io {
namespace {

// What contradicts itself in a file is malformed.
Status as_file_error(const Status& status) {
  const Code code = status.code();
  const bool bad = code == Code::kSizeMismatch || code == Code::kInvalidArgument ||
                   code == Code::kBudgetExceeded;
  return {bad ? Code::kParseError : code, status.message()};
}

// Tensors in memory of their own, which is aligned as that of a file need not be.
Result<DynValue> own_tensors(const DynValue& value) {
  if (value.is_tensor()) {
    PYC_ASSIGN(NewTensor tensor, new_tensor(value.dtype, value.shape));
    std::copy(value.bytes.begin(), value.bytes.end(), tensor.data);
    return std::move(tensor.value);
  }
  if (value.kind != DynValue::Kind::kSequence) return value;
  std::vector<DynValue> items;
  for (const DynValue& item : *value.items) {
    PYC_ASSIGN(DynValue owned, own_tensors(item));
    items.push_back(std::move(owned));
  }
  return DynValue::of_items(std::move(items));
}

}  // namespace

Result<NewTensor> parse_tensor_proto(std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const SharedBytes file(nullptr, {data, bytes.size()});
  auto proto = onnx::parse_tensor(file);
  if (!proto.ok() || proto->type == 0) {
    return Status(Code::kParseError,
                  fmt::format("not a tensor file (.npy or ONNX TensorProto): {}",
                              proto.ok() ? "it names no data type" : proto.status().message()));
  }
  auto decoded = onnx::decode_tensor(*proto, {file, "", false});
  if (!decoded.ok()) return as_file_error(decoded.status());
  const DynValue& value = *decoded;
  if (!value.is_tensor()) {
    return Status(Code::kUnsupported, "a tensor of strings is not supported");
  }
  PYC_ASSIGN(NewTensor tensor, make_tensor(value.dtype, value.shape, value.bytes.size()));
  std::copy(value.bytes.begin(), value.bytes.end(), tensor.data);
  return tensor;
}

Result<DynValue> parse_value_proto(std::string_view bytes, const open::OpenType& declared) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const auto decoded = onnx::decode_value(SharedBytes(nullptr, {data, bytes.size()}), declared);
  if (!decoded.ok()) return as_file_error(decoded.status());
  return own_tensors(*decoded);
}

}  // namespace pyc::io
