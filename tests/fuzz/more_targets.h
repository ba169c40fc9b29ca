#pragma once

// What the fuzz targets beside ONNX do with one input. Each returns or ends the process: a
// difference is a trap, which libFuzzer and the tests see.

#include <cstring>
#include <string>

#include "artifact/artifact.h"
#include "artifact/format.h"
#include "base/hash_pieces.h"
#include "fuzz/targets.h"
#include "import/onnx/rules.h"
#include "io/named_tensors.h"
#include "io/tensor_file.h"
#include "ir/graph.h"
#include "open/text.h"
#include "ops/registry.h"

namespace pyc::test {

using Bytes = std::string;

inline SharedBytes as_file(const Bytes& bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return SharedBytes(std::vector<std::byte>(data, data + bytes.size()));
}

// Gives every section and the header the checksums they should have, so that what is damaged
// reaches the reader behind them.
inline void seal_artifact(Bytes& file) {
  using namespace artifact;
  if (file.size() < kHeaderBytes) return;
  const auto put = [&](size_t at, const Digest& d) {
    std::memcpy(&file[at], &d.hi, sizeof(d.hi));
    std::memcpy(&file[at + sizeof(d.hi)], &d.lo, sizeof(d.lo));
  };
  const uint64_t all = file.size();
  std::memcpy(&file[kFileBytesAt], &all, sizeof(all));
  size_t from = kHeaderBytes;
  for (size_t s = 0; s < kSections; ++s) {
    const size_t entry = kTableAt + s * kTableEntryBytes;
    uint64_t size = 0;
    std::memcpy(&size, &file[entry + kSectionNameBytes], sizeof(size));
    if (size > file.size() - from) return;
    put(entry + kSectionNameBytes + sizeof(size),
        hash_pieces(std::as_bytes(std::span(file)).subspan(from, size)));
    from += size;
  }
  put(kHeaderDigestAt, hash128(std::as_bytes(std::span(file)).first(kHeaderDigestAt)));
}

// Reads a .pycm, as it is and with sound checksums. Its code is not run.
inline void fuzz_artifact(Bytes bytes) {
  (void)artifact::decode(as_file(bytes));
  seal_artifact(bytes);
  const auto read = artifact::decode(as_file(bytes));
  if (read.ok()) (void)artifact::encode(*read);
}

// Constants that are written in a few bytes may have so many.
constexpr int64_t kMaxTextConstants = 1 << 14;

// Reads text IR of both kinds; what is accepted prints to a text that means the same.
inline void fuzz_text(const Bytes& bytes) {
  (void)open::parse_open(bytes, onnx::open_ops(), kMaxTextConstants);
  const auto graph = ir::parse(bytes, ops::all_ops(), kMaxTextConstants);
  if (!graph.ok()) return;
  const std::string text = ir::print(*graph);
  const auto again = ir::parse(text, ops::all_ops(), kMaxTextConstants);
  if (!again.ok() || ir::print(*again) != text) __builtin_trap();
}

// Reads .npy; what is accepted is written and read again as the same tensor.
inline void fuzz_npy(const Bytes& bytes) {
  for (const auto expected : {std::optional<DType>(), std::optional(DType::kBF16)}) {
    const auto tensor = io::parse_npy(bytes, expected);
    if (!tensor.ok()) continue;
    const DynValue& v = tensor->value;
    const std::string file =
        io::npy_bytes({v.dtype, v.shape}, {tensor->data, static_cast<size_t>(v.bytes.size())});
    const auto again = io::parse_npy(file, v.dtype);
    if (!again.ok() || again->value.shape != v.shape || again->value.bytes != v.bytes) {
      __builtin_trap();
    }
  }
}

inline std::vector<io::NamedBytes> named_bytes(const std::vector<io::NamedTensor>& tensors) {
  std::vector<io::NamedBytes> out;
  for (const io::NamedTensor& t : tensors) {
    out.push_back({t.name, {t.value.dtype, t.value.shape}, t.value.bytes});
  }
  return out;
}

inline bool same_tensors(const std::vector<io::NamedTensor>& a,
                         const std::vector<io::NamedTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const io::NamedTensor& x, const io::NamedTensor& y) {
                      return x.name == y.name && x.value.dtype == y.value.dtype &&
                             x.value.shape == y.value.shape && x.value.bytes == y.value.bytes;
                    });
}

// Reads .npz; what is accepted is written and read again as the same tensors.
inline void fuzz_npz(const Bytes& bytes) {
  const auto tensors = io::parse_npz(bytes);
  if (!tensors.ok()) return;
  const auto file = io::npz_bytes(named_bytes(*tensors));
  if (!file.ok()) __builtin_trap();
  const auto again = io::parse_npz(*file);
  if (!again.ok() || !same_tensors(*tensors, *again)) __builtin_trap();
}

// The same for safetensors. Elements of several types may come in another order.
inline void fuzz_safetensors(const Bytes& bytes) {
  const auto read = io::parse_safetensors(bytes);
  if (!read.ok()) return;
  const std::vector<io::NamedBytes> tensors = named_bytes(read->tensors);
  const auto header = io::safetensors_header(tensors, read->metadata);
  if (!header.ok()) __builtin_trap();
  Bytes file = header->bytes;
  std::vector<io::NamedTensor> expected;
  for (const size_t i : header->order) {
    file.append(reinterpret_cast<const char*>(tensors[i].bytes.data()), tensors[i].bytes.size());
    expected.push_back(read->tensors[i]);
  }
  const auto again = io::parse_safetensors(file);
  if (!again.ok() || again->metadata != read->metadata || !same_tensors(expected, again->tensors)) {
    __builtin_trap();
  }
}

// The outputs of a small model on a device; nothing where it is refused.
inline std::optional<std::vector<DynValue>> outputs_on(const onnx::Imported& imported,
                                                       const std::vector<DynValue>& inputs,
                                                       const std::string& device) {
  driver::CompileOptions options;
  options.device = device;
  options.threads = 1;
  options.cache = false;
  options.memory_budget = onnx::test::kFuzzMemory;
  options.loop_limit = onnx::test::kFuzzIterations;
  const auto made = session::Session::create(imported.graph, options);
  if (!made.ok()) return std::nullopt;
  auto outputs = (*made)->run(inputs);
  if (!outputs.ok()) return std::nullopt;
  return std::move(*outputs);
}

inline bool same_value(const DynValue& a, const DynValue& b) {
  if (a.kind != b.kind || a.shape != b.shape || a.is_tensor() != b.is_tensor()) return false;
  if (a.is_tensor()) return a.dtype == b.dtype && a.bytes == b.bytes;
  if (a.strings != nullptr) return b.strings != nullptr && *a.strings == *b.strings;
  return true;
}

// Compiles a small ONNX graph for the CPU and compares every bit with the reference; whether it was
// compared.
inline bool fuzz_compiled(const Bytes& bytes) {
  const auto imported = onnx::test::read(bytes);
  if (!imported.ok() || imported->graph->nodes.size() > onnx::test::kMaxFuzzNodes) return false;
  std::vector<DynValue> inputs;
  for (const open::OpenId id : imported->graph->inputs) {
    auto input = onnx::test::fuzz_input(imported->graph->values[id].type);
    if (!input) return false;
    inputs.push_back(std::move(*input));
  }
  const auto expected = outputs_on(*imported, inputs, "reference");
  if (!expected) return false;
  const auto found = outputs_on(*imported, inputs, "cpu");
  // Programs of the CPU need more memory than the reference's, and may be over the budget alone.
  if (!found) return false;
  for (size_t i = 0; i < expected->size(); ++i) {
    if (!same_value((*expected)[i], (*found)[i])) __builtin_trap();
  }
  return true;
}

}  // namespace pyc::test
