#pragma once

// An ONNX file as plain structs whose texts and tensors point into the file's bytes. Only what PyC
// reads is kept. Field numbers are those of the public onnx.proto.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "import/onnx/budget.h"

namespace pyc::onnx {

struct TensorProto {
  std::vector<int64_t> dims;
  int32_t type = 0;
  std::string_view name;
  bool has_raw = false;
  std::string_view raw;  // raw_data
  std::vector<float> floats;
  std::vector<int32_t> int32s;
  std::vector<int64_t> int64s;
  std::vector<double> doubles;
  std::vector<uint64_t> uint64s;
  std::vector<std::string_view> strings;
  bool external = false;
  std::vector<std::pair<std::string_view, std::string_view>> external_data;
};

struct SparseTensorProto {
  TensorProto values;
  TensorProto indices;
  std::vector<int64_t> dims;
};

struct TypeProto {
  enum class Kind : uint8_t { kNone, kTensor, kSequence, kOptional, kOther };
  struct Dim {
    int64_t value = -1;
    std::string_view param;
  };
  Kind kind = Kind::kNone;
  int32_t elem_type = 0;
  bool has_shape = false;
  std::vector<Dim> shape;
  std::vector<TypeProto> element;  // of a sequence or an optional: one
};

struct GraphProto;

struct AttributeProto {
  std::string_view name;
  std::string_view ref;  // ref_attr_name
  int32_t type = 0;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<TensorProto> t;             // at most one
  std::vector<GraphProto> g;              // at most one
  std::vector<TypeProto> tp;              // at most one
  std::vector<SparseTensorProto> sparse;  // at most one
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
};

struct NodeProto {
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::string_view name;
  std::string_view op;
  std::string_view domain;
  std::string_view overload;
  std::vector<AttributeProto> attributes;
};

struct ValueInfo {
  std::string_view name;
  TypeProto type;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> values;
};

struct OpsetId {
  std::string_view domain;
  int64_t version = 0;
};

struct FunctionProto {
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<std::string_view> attributes;
  std::vector<AttributeProto> defaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetId> opsets;
};

// A line of what a model says of itself.
struct MetadataEntry {
  std::string_view key;
  std::string_view value;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer;
  std::string_view domain;
  int64_t version = 0;
  std::string_view description;
  std::vector<MetadataEntry> metadata;
  std::vector<OpsetId> opsets;
  bool has_graph = false;
  GraphProto graph;
  std::vector<FunctionProto> functions;
};

// SequenceProto and OptionalProto: what data sets hold beside tensors.
struct ValueProto {
  int32_t elem_type = 0;  // 1 tensor, 3 sequence, 5 optional
  std::vector<TensorProto> tensors;
  std::vector<ValueProto> values;
};

// Refuses malformed bytes with kParseError, and with kBudgetExceeded those that ask for more memory
// than `bytes` may (budget.h). Graphs inside attributes nest 64 deep at most.
Result<ModelProto> parse_model(std::span<const std::byte> bytes);
Result<ModelProto> parse_model(std::span<const std::byte> bytes, MemoryBudget& budget);
Result<TensorProto> parse_tensor(std::span<const std::byte> bytes);
Result<ValueProto> parse_sequence(std::span<const std::byte> bytes);
Result<ValueProto> parse_optional(std::span<const std::byte> bytes);

}  // namespace pyc::onnx
