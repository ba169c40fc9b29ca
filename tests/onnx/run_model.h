#pragma once

// Models made by model_writer.h, read and run on the reference device.

#include <gtest/gtest.h>

#include <memory>

#include "import/onnx/import.h"
#include "onnx/model_writer.h"
#include "onnx/ran_operators.h"
#include "session/session.h"

namespace pyc::onnx::test {

inline SharedBytes shared(const Bytes& bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return SharedBytes(std::vector<std::byte>(data, data + bytes.size()));
}

inline Result<Imported> read(const Bytes& bytes) { return import_model(shared(bytes), "", false); }

inline Result<std::unique_ptr<session::Session>> session(const Bytes& bytes) {
  PYC_ASSIGN(const Imported imported, read(bytes));
  driver::CompileOptions options;
  options.device = "reference";
  options.threads = 1;
  options.cache = false;
  return session::Session::create(imported.graph, options);
}

inline Result<std::vector<DynValue>> run(const Bytes& bytes, const std::vector<DynValue>& inputs) {
  PYC_ASSIGN(const auto made, session(bytes));
  auto outputs = made->run(inputs);
  if (outputs.ok()) note_operators(bytes);
  return outputs;
}

inline DynValue f32(Ints shape, const std::vector<float>& values) {
  DynValue v;
  v.kind = DynValue::Kind::kTensor;
  v.dtype = DType::kF32;
  v.shape = std::move(shape);
  v.bytes = shared(raw_of(values));
  return v;
}
inline std::vector<double> numbers_of(const Result<std::vector<DynValue>>& outputs, size_t i = 0) {
  return outputs.ok() && i < outputs->size() ? to_doubles((*outputs)[i]) : std::vector<double>{};
}

template <class T>
void expect_refused(const Result<T>& result, Code code, const std::string& part) {
  ASSERT_FALSE(result.ok()) << part;
  EXPECT_EQ(result.status().code(), code) << result.status().to_string();
  EXPECT_NE(result.status().message().find(part), std::string::npos) << result.status().to_string();
}
inline void expect_read_refused(const Bytes& bytes, Code code, const std::string& part) {
  expect_refused(read(bytes), code, part);
}

// y = Relu(x·w + b), x f32[2,3].
inline Graph small_graph() {
  return {
      .inputs = {value("x", kF32, {2, 3})},
      .outputs = {value("y", kF32, {2, 2})},
      .initializers = {floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}), floats("b", {2}, {-1, 1})},
      .nodes = {node("MatMul", {"x", "w"}, {"p"}, {}, "product"),
                node("Add", {"p", "b"}, {"s"}, {}, "sum"), node("Relu", {"s"}, {"y"}, {}, "relu")}};
}

// One node y = op(x, constants…), x f32[2,3].
inline Bytes one_node(const std::string& op, const std::vector<std::pair<std::string, Ints>>& more,
                      const std::vector<Bytes>& attrs = {}, int64_t version = 18) {
  Graph g{.inputs = {value("x", kF32, {2, 3})}, .outputs = {unshaped("y", kF32)}};
  Names in{"x"};
  for (const auto& [name, values] : more) {
    in.push_back(name);
    g.initializers.push_back(ints(name, values));
  }
  g.nodes = {node(op, in, {"y"}, attrs, "bad_node")};
  return model(g, version);
}

}  // namespace pyc::onnx::test
