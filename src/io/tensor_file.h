#pragma once

// Tensors and other values as files.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/dyn_value.h"
#include "base/status.h"
#include "ir/types.h"
#include "open/open_graph.h"

namespace pyc::io {

// The tensor in `bytes`, in memory of its own: .npy, which begins with its magic, or else an ONNX
// TensorProto. With `expected` its dtype must be that (kDtypeMismatch), and .npy elements without a
// named type (numpy writes bf16 and fp8 so) are taken as it. kParseError: malformed, or of a size
// that does not fit the bytes; kUnsupported: valid, but of a kind PyC does not have.
Result<NewTensor> parse_tensor(std::string_view bytes, std::optional<DType> expected);
// The same for a file; messages start with its path.
Result<NewTensor> read_tensor(const std::string& path, std::optional<DType> expected);

// The value in `bytes`, as a model declares it: a tensor of numbers as above, strings from an ONNX
// TensorProto, a sequence from a SequenceProto, an optional from an OptionalProto or the bytes of
// what it may hold. kDtypeMismatch: they hold another kind of value.
Result<DynValue> parse_value(std::string_view bytes, const open::OpenType& declared);
Result<DynValue> read_value(const std::string& path, const open::OpenType& declared);

// One format each.
bool is_npy(std::string_view bytes);
Result<NewTensor> parse_npy(std::string_view bytes, std::optional<DType> expected);
Result<NewTensor> parse_tensor_proto(std::string_view bytes);
// An ONNX TensorProto, SequenceProto or OptionalProto, whichever is declared.
Result<DynValue> parse_value_proto(std::string_view bytes, const open::OpenType& declared);

// The .npy file of a tensor, and the same written to a path, all or nothing.
std::string npy_bytes(const ir::TensorType& type, std::span<const std::byte> data);
Status write_npy(const std::string& path, const ir::TensorType& type,
                 std::span<const std::byte> data);

// For the formats: memory for a tensor of an accepted type, and the type itself, checked. `room` is
// the most bytes of elements that the file can hold.
Result<NewTensor> make_tensor(DType dtype, ir::Shape shape, uint64_t room);

}  // namespace pyc::io
