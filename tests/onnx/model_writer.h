#pragma once

// ONNX files written by hand, field by field, so that tests can write wrong ones too. Every message
// is the string of its bytes. Field numbers are those of the public onnx.proto.

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace pyc::onnx::test {

using Bytes = std::string;
using Names = std::vector<std::string>;
using Ints = std::vector<int64_t>;

inline Bytes varint(uint64_t v) {
  Bytes out;
  for (; v >= 0x80; v >>= 7) out += static_cast<char>((v & 0x7f) | 0x80);
  return out + static_cast<char>(v);
}
inline Bytes number(int field, int64_t v) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(v));
}
inline Bytes text(int field, const Bytes& content) {
  return varint((static_cast<uint64_t>(field) << 3) | 2) + varint(content.size()) + content;
}
inline Bytes single(int field, float v) {
  Bytes raw(4, '\0');
  std::memcpy(raw.data(), &v, 4);
  return varint((static_cast<uint64_t>(field) << 3) | 5) + raw;
}
inline Bytes texts(int field, const Names& all) {
  Bytes out;
  for (const std::string& s : all) out += text(field, s);
  return out;
}
inline Bytes numbers(int field, const Ints& all) {
  Bytes out;
  for (const int64_t v : all) out += number(field, v);
  return out;
}
inline Bytes joined(const std::vector<Bytes>& parts) {
  Bytes out;
  for (const Bytes& p : parts) out += p;
  return out;
}

constexpr int64_t kF32 = 1;
constexpr int64_t kI64 = 7;
constexpr int64_t kBool = 9;

// ---- tensors

template <class T>
Bytes raw_of(const std::vector<T>& values) {
  Bytes raw(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return raw;
}
inline Bytes header(const std::string& name, int64_t type, const Ints& dims) {
  return numbers(1, dims) + number(2, type) + text(8, name);
}
inline Bytes raw_tensor(const std::string& name, int64_t type, const Ints& dims, const Bytes& raw) {
  return header(name, type, dims) + text(9, raw);
}
inline Bytes floats(const std::string& name, const Ints& dims, const std::vector<float>& values) {
  return raw_tensor(name, kF32, dims, raw_of(values));
}
inline Bytes ints(const std::string& name, const Ints& values) {
  return raw_tensor(name, kI64, {static_cast<int64_t>(values.size())}, raw_of(values));
}
inline Bytes external(const std::string& name, int64_t type, const Ints& dims,
                      const std::vector<std::pair<std::string, std::string>>& entries) {
  Bytes out = header(name, type, dims) + number(14, 1);
  for (const auto& [key, value] : entries) out += text(13, text(1, key) + text(2, value));
  return out;
}

// ---- types: a dim is a number or a name

inline Bytes fixed(int64_t v) { return text(1, number(1, v)); }
inline Bytes named(const std::string& s) { return text(1, text(2, s)); }
inline Bytes tensor_type(int64_t type, const std::vector<Bytes>& dims) {
  return text(1, number(1, type) + text(2, joined(dims)));
}
inline Bytes value(const std::string& name, const Bytes& type) {
  return text(1, name) + text(2, type);
}
inline Bytes value(const std::string& name, int64_t type, const Ints& dims) {
  std::vector<Bytes> all;
  for (const int64_t d : dims) all.push_back(fixed(d));
  return value(name, tensor_type(type, all));
}
inline Bytes unshaped(const std::string& name, int64_t type) {
  return value(name, text(1, number(1, type)));
}

// ---- nodes

inline Bytes attr_int(const std::string& name, int64_t v) {
  return text(1, name) + number(3, v) + number(20, 2);
}
inline Bytes attr_float(const std::string& name, float v) {
  return text(1, name) + single(2, v) + number(20, 1);
}
inline Bytes attr_ints(const std::string& name, const Ints& v) {
  return text(1, name) + numbers(8, v) + number(20, 7);
}
inline Bytes attr_string(const std::string& name, const std::string& v) {
  return text(1, name) + text(4, v) + number(20, 3);
}
inline Bytes attr_tensor(const std::string& name, const Bytes& tensor) {
  return text(1, name) + text(5, tensor) + number(20, 4);
}
inline Bytes attr_graph(const std::string& name, const Bytes& graph) {
  return text(1, name) + text(6, graph) + number(20, 5);
}
inline Bytes attr_ref(const std::string& name, const std::string& of, int64_t kind) {
  return text(1, name) + text(21, of) + number(20, kind);
}
inline Bytes node(const std::string& op, const Names& in, const Names& out,
                  const std::vector<Bytes>& attrs = {}, const std::string& name = "n",
                  const std::string& domain = "") {
  Bytes n = texts(1, in) + texts(2, out) + text(3, name) + text(4, op);
  for (const Bytes& a : attrs) n += text(5, a);
  return n + (domain.empty() ? "" : text(7, domain));
}

// ---- graphs and models

struct Graph {
  std::vector<Bytes> inputs = {};
  std::vector<Bytes> outputs = {};
  std::vector<Bytes> initializers = {};
  std::vector<Bytes> nodes = {};
  Bytes more = {};
};
inline Bytes graph(const Graph& g) {
  Bytes out;
  for (const Bytes& n : g.nodes) out += text(1, n);
  out += text(2, "g");
  for (const Bytes& t : g.initializers) out += text(5, t);
  for (const Bytes& v : g.inputs) out += text(11, v);
  for (const Bytes& v : g.outputs) out += text(12, v);
  return out + g.more;
}
inline Bytes opset(int64_t version, const std::string& domain = "") {
  return text(1, domain) + number(2, version);
}
inline Bytes model(const Graph& g, int64_t version = 18, const Bytes& more = {}) {
  return number(1, 8) + text(7, graph(g)) + text(8, opset(version)) + more;
}
// A function of domain "f" over opset 18.
inline Bytes function(const std::string& name, const Names& in, const Names& out,
                      const std::vector<Bytes>& nodes, const Names& attrs = {}) {
  Bytes f = text(1, name) + texts(4, in) + texts(5, out) + texts(6, attrs);
  for (const Bytes& n : nodes) f += text(7, n);
  return f + text(9, opset(18)) + text(9, opset(1, "f")) + text(10, "f");
}
inline Bytes with_functions(const std::vector<Bytes>& functions) {
  Bytes out = text(8, opset(1, "f"));
  for (const Bytes& f : functions) out += text(25, f);
  return out;
}

}  // namespace pyc::onnx::test
