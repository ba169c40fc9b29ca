#pragma once

// What the fuzz targets do with one input. Shared with the test that replays the seed corpus.

#include "onnx/run_model.h"

namespace pyc::onnx::test {

// Reads the bytes: a Status or a graph, nothing else.
inline void fuzz_reader(const Bytes& bytes) { (void)read(bytes); }

constexpr int64_t kMaxFuzzElements = 1 << 12;
constexpr size_t kMaxFuzzNodes = 64;
// A few bytes can ask for a lot of memory and for loops without an end.
constexpr int64_t kFuzzMemory = int64_t{1} << 24;
constexpr int64_t kFuzzIterations = 32;

// An input the model accepts, dims that are not fixed being 2; nothing for what is no small tensor.
inline std::optional<DynValue> fuzz_input(const open::OpenType& type) {
  if (type.kind != open::OpenType::Kind::kTensor || !type.dtype || !type.shape) return std::nullopt;
  Ints shape;
  int64_t elements = 1;
  for (const auto& dim : *type.shape) {
    shape.push_back(dim.value < 0 ? 2 : dim.value);
    if (shape.back() > kMaxFuzzElements) return std::nullopt;
    elements *= std::max<int64_t>(shape.back(), 1);
    if (elements > kMaxFuzzElements) return std::nullopt;
  }
  auto made = new_tensor(*type.dtype, shape);
  if (!made.ok()) return std::nullopt;
  std::fill_n(made->data, made->value.bytes.size(), std::byte{1});
  return made->value;
}

// Reads, compiles and runs small graphs on the reference device.
inline void fuzz_run(const Bytes& bytes) {
  const auto imported = read(bytes);
  if (!imported.ok() || imported->graph->nodes.size() > kMaxFuzzNodes) return;
  const open::OpenGraph& graph = *imported->graph;
  std::vector<DynValue> inputs;
  for (const open::OpenId id : graph.inputs) {
    auto input = fuzz_input(graph.values[id].type);
    if (!input) return;
    inputs.push_back(std::move(*input));
  }
  driver::CompileOptions options;
  options.device = "reference";
  options.threads = 1;
  options.cache = false;
  options.memory_budget = kFuzzMemory;
  options.loop_limit = kFuzzIterations;
  const auto made = session::Session::create(imported->graph, options);
  if (made.ok()) (void)(*made)->run(inputs);
}

}  // namespace pyc::onnx::test
