#pragma once

// ONNX tensors as values. Raw data of the file's own byte order is used where it lies; everything
// else is decoded.

#include <map>
#include <optional>
#include <string>

#include "base/dyn_value.h"
#include "import/onnx/proto.h"
#include "open/open_graph.h"

namespace pyc::onnx {

// The files of external data mapped so far, by their path beneath the folder, and the ranges of
// them that tensors use.
struct ExternalFiles {
  struct File {
    SharedBytes bytes;
    std::map<int64_t, int64_t> ranges;  // length by offset; none overlap
  };
  std::map<std::string, File> files;
};

// Where a tensor's bytes may lie: in the model file, or in files of its folder.
struct Source {
  SharedBytes file;
  std::string folder;  // "" : the current one
  bool external_allowed = true;
  MemoryBudget* budget = nullptr;  // null: no limit
  ExternalFiles* files = nullptr;  // null: each tensor maps its file anew
};

// The dtype of TensorProto.DataType; nothing for strings and unknown ones.
std::optional<DType> dtype_of(int32_t onnx_type);
// The same for what can be computed with: nothing for complex numbers either.
std::optional<DType> real_dtype_of(int32_t onnx_type);
inline constexpr int32_t kOnnxString = 8;
// "float", "string", "complex64", or the number.
std::string onnx_type_name(int32_t onnx_type);

Result<DynValue> decode_tensor(const TensorProto& tensor, const Source& source);
// A sparse tensor written out.
Result<DynValue> decode_sparse(const SparseTensorProto& sparse, const Source& source);
Result<open::OpenType> decode_type(const TypeProto& type);

// The content of a data-set file (*.pb), by the type the model declares.
Result<DynValue> decode_value(const SharedBytes& bytes, const open::OpenType& declared);

}  // namespace pyc::onnx
