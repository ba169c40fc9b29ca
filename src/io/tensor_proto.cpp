// ONNX TensorProto, read as the importer reads the tensors of a model.

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/tensor.h"
#include "io/tensor_file.h"

namespace pyc::io {

Result<Tensor> parse_tensor_proto(std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const SharedBytes file(nullptr, {data, bytes.size()});
  auto proto = onnx::parse_tensor(file);
  if (!proto.ok() || proto->type == 0) {
    return Status(Code::kParseError,
                  fmt::format("not a tensor file (.npy or ONNX TensorProto): {}",
                              proto.ok() ? "it names no data type" : proto.status().message()));
  }
  auto decoded = onnx::decode_tensor(*proto, {file, "", false});
  if (!decoded.ok()) {
    const Code code = decoded.status().code();
    const bool bad = code == Code::kSizeMismatch || code == Code::kInvalidArgument ||
                     code == Code::kBudgetExceeded;
    return Status(bad ? Code::kParseError : code, decoded.status().message());
  }
  const DynValue& value = *decoded;
  if (!value.is_tensor()) {
    return Status(Code::kUnsupported, "a tensor of strings is not supported");
  }
  PYC_ASSIGN(Tensor tensor, make_tensor(value.dtype, value.shape, value.bytes.size()));
  tensor.name = std::string(proto->name);
  std::copy(value.bytes.begin(), value.bytes.end(), tensor.data.data());
  return tensor;
}

}  // namespace pyc::io
