#include "export/onnx/emitter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <protozero/pbf_writer.hpp>

// Field numbers are those of the public onnx.proto; the reader is import/onnx/proto.cpp.
namespace pyc::onnx::exporting {
namespace {

using protozero::pbf_writer;

// The IR version that came with an opset.
int64_t ir_version_of(int64_t opset) {
  if (opset <= 22) return 10;
  if (opset == 23) return 11;
  return opset == 24 ? 12 : 13;
}

constexpr std::string_view kTypes[] = {
    "",           "f32",    "u8",         "i8",  "u16", "i16",    "i32",    "i64",  "",
    "bool",       "f16",    "f64",        "u32", "u64", "",       "",       "bf16", "f8e4m3fn",
    "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4",  "i4",  "f4e2m1", "f8e8m0", "u2",   "i2"};

// Elements of fewer than 8 bits share bytes, lowest first.
std::string packed(std::span<const std::byte> bytes, int64_t bits) {
  const auto per_byte = static_cast<size_t>(8 / bits);
  std::string out((bytes.size() + per_byte - 1) / per_byte, '\0');
  const unsigned mask = (1U << bits) - 1;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const unsigned part = (static_cast<unsigned>(bytes[i]) & mask) << (i % per_byte * bits);
    out[i / per_byte] = static_cast<char>(static_cast<unsigned char>(out[i / per_byte]) | part);
  }
  return out;
}

enum {
  kFloatType = 1,
  kIntType = 2,
  kStringType = 3,
  kFloatsType = 6,
  kIntsType = 7,
  kStringsType = 8
};

void write_attribute(pbf_writer& node, const std::string& name, const NodeAttr& value) {
  pbf_writer a(node, 5);
  a.add_string(1, name);
  if (const auto* f = std::get_if<float>(&value)) {
    a.add_float(2, *f);
    a.add_int32(20, kFloatType);
  } else if (const auto* i = std::get_if<int64_t>(&value)) {
    a.add_int64(3, *i);
    a.add_int32(20, kIntType);
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    a.add_bytes(4, *s);
    a.add_int32(20, kStringType);
  } else if (const auto* fs = std::get_if<std::vector<float>>(&value)) {
    a.add_packed_float(7, fs->begin(), fs->end());
    a.add_int32(20, kFloatsType);
  } else if (const auto* is = std::get_if<Ints>(&value)) {
    a.add_packed_int64(8, is->begin(), is->end());
    a.add_int32(20, kIntsType);
  } else {
    for (const std::string& text : std::get<Names>(value)) a.add_bytes(9, text);
    a.add_int32(20, kStringsType);
  }
}

// A Graph IR attribute as ONNX has it; nothing when it is an empty list or text.
void append_attr(NodeAttrs& out, std::string name, const ir::Attr& attr) {
  const auto add = [&](NodeAttr value) { out.emplace_back(std::move(name), std::move(value)); };
  if (const auto* i = std::get_if<int64_t>(&attr)) return add(*i);
  if (const auto* f = std::get_if<double>(&attr)) return add(static_cast<float>(*f));
  if (const auto* b = std::get_if<bool>(&attr)) return add(int64_t{*b ? 1 : 0});
  if (const auto* t = std::get_if<DType>(&attr)) return add(onnx_type(*t));
  if (const auto* s = std::get_if<std::string>(&attr)) {
    if (!s->empty()) add(*s);
  } else if (const auto* is = std::get_if<Ints>(&attr)) {
    if (!is->empty()) add(*is);
  } else if (const auto* fs = std::get_if<std::vector<double>>(&attr)) {
    if (!fs->empty()) add(std::vector<float>(fs->begin(), fs->end()));
  }
}

}  // namespace

int64_t onnx_type(DType t) {
  const auto* const at = std::find(std::begin(kTypes), std::end(kTypes), dtype_name(t));
  return at - std::begin(kTypes);
}

Emitter::Emitter(const ir::Graph& graph) : graph_(graph), read_(graph.values.size(), false) {
  for (const ir::Value& v : graph.values) {
    names_.insert(v.name);
    need_dtype(v.type.dtype);
  }
  for (const ir::Node& n : graph.nodes) {
    for (const ir::ValueId id : n.inputs) read_[id] = true;
  }
  for (const ir::ValueId id : graph.outputs) read_[id] = true;
  pbf_writer(body_).add_string(2, graph.name.empty() ? "main" : graph.name);
  for (const ir::ValueId id : graph.inputs) {
    add_value_info(11, graph.value(id).name, graph.type(id));
  }
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const ir::Value& v = graph.values[id];
    if (v.kind == ir::ValueKind::kConstant && read_[id]) {
      add_initializer(v.name, v.type, v.constant->bytes.span());
    }
  }
}

void Emitter::add_initializer(const std::string& name, const ir::TensorType& type,
                              std::span<const std::byte> bytes) {
  need_dtype(type.dtype);
  pbf_writer graph(body_);
  pbf_writer t(graph, 5);
  t.add_packed_int64(1, type.shape.begin(), type.shape.end());
  t.add_int32(2, static_cast<int32_t>(onnx_type(type.dtype)));
  t.add_string(8, name);
  const int64_t bits = dtype_bits(type.dtype);
  if (bits < 8 && type.dtype != DType::kBool) {
    t.add_bytes(9, packed(bytes, bits));
  } else {
    t.add_bytes(9, reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}

void Emitter::need_dtype(DType t) {
  if (t == DType::kBF16) need(22);
  if (t == DType::kF4E2M1) need(23);
  if (t == DType::kF8E8M0) need(24);
  if (t == DType::kI2 || t == DType::kU2) need(25);
}

void Emitter::add_value_info(int field, const std::string& name, const ir::TensorType& type) {
  need_dtype(type.dtype);
  pbf_writer graph(body_);
  pbf_writer info(graph, static_cast<protozero::pbf_tag_type>(field));
  info.add_string(1, name);
  pbf_writer any(info, 2);
  pbf_writer tensor(any, 1);
  tensor.add_int32(1, static_cast<int32_t>(onnx_type(type.dtype)));
  std::string dims;  // an empty shape must be written too: it is that of a scalar
  pbf_writer shape(dims);
  for (const int64_t dim : type.shape) pbf_writer(shape, 1).add_int64(1, dim);
  tensor.add_message(2, dims);
}

// An ONNX graph may not name an output twice.
void Emitter::add_outputs() {
  std::set<ir::ValueId> named;
  for (const ir::ValueId id : graph_.outputs) {
    std::string name = graph_.value(id).name;
    if (!named.insert(id).second) {
      std::string copy = fresh();
      write("Identity", {name}, {copy});
      name = std::move(copy);
    }
    add_value_info(12, name, graph_.type(id));
  }
}

std::string Emitter::finish() {
  add_outputs();
  std::string model;
  pbf_writer m(model);
  m.add_int64(1, ir_version_of(opsets_.find("")->second));
  m.add_string(2, "pyc");
  m.add_message(7, body_);
  for (const auto& [domain, version] : opsets_) {
    pbf_writer opset(m, 8);
    opset.add_string(1, domain);
    opset.add_int64(2, version);
  }
  return model;
}

// ONNX rounds a product to the type of its operands. One that is left in f32 is that of operands
// converted to f32, which is exact.
void Emitter::begin(const ir::Node& node) {
  node_ = &node;
  in_.clear();
  for (const ir::ValueId id : node.inputs) in_.push_back({graph_.value(id).name, graph_.type(id)});
  if (!node.op->traits.product || !node.attrs.contains("to")) return;
  for (Input& x : in_) {
    if (!is_half(x.type.dtype)) continue;
    x.name = cast(x.name, x.type.dtype, dtype("to"));
    x.type.dtype = dtype("to");
  }
  if (read_outputs().size() > 1) refuse("in ONNX all of its results have one dtype");
}

Names Emitter::all_inputs() const {
  Names names;
  for (const Input& x : in_) names.push_back(x.name);
  return names;
}

Names Emitter::all_outputs() const {
  Names names;
  for (const ir::ValueId id : node_->outputs) names.push_back(graph_.value(id).name);
  return names;
}

Names Emitter::read_outputs() const {
  Names names = all_outputs();
  for (size_t i = 0; i < names.size(); ++i) {
    if (!read_[node_->outputs[i]]) names[i].clear();
  }
  while (names.size() > 1 && names.back().empty()) names.pop_back();
  return names;
}

Names Emitter::optional_inputs(size_t required, std::string_view names) const {
  const std::string with = "," + text("with") + ",";
  Names in = all_inputs();
  in.resize(required);
  size_t next = required;
  for (const ir::OnnxWord& name : ir::onnx_words(names)) {
    const bool there = with.find("," + std::string(name.own) + ",") != std::string::npos;
    in.push_back(there ? this->in(next++) : std::string());
  }
  while (in.back().empty()) in.pop_back();
  return in;
}

Names Emitter::onnx_inputs() const {
  const ir::OpDef& op = *node_->op;
  if (op.onnx.optional.empty()) return all_inputs();
  return optional_inputs(static_cast<size_t>(op.min_inputs), op.onnx.optional);
}

int64_t Emitter::axis(std::string_view name, int64_t rank) const {
  const int64_t axis = integer(name);
  return axis < 0 ? axis + rank : axis;
}

NodeAttrs Emitter::attrs(std::string_view spec) const {
  NodeAttrs out;
  for (const ir::OnnxWord& word : ir::onnx_words(spec)) {
    append_attr(out, std::string(word.onnx), node_->attrs.find(word.own)->second);
  }
  return out;
}

void Emitter::emit(std::string_view op, const Names& inputs, const NodeAttrs& attrs) {
  write(op, inputs, all_outputs(), attrs);
}

void Emitter::write(std::string_view op, const Names& inputs, const Names& outputs,
                    const NodeAttrs& attrs, std::string_view domain) {
  pbf_writer graph(body_);
  pbf_writer n(graph, 1);
  for (const std::string& name : inputs) n.add_string(1, name);
  for (const std::string& name : outputs) n.add_string(2, name);
  n.add_string(3, fmt::format("{}_{}", op, next_node_++));
  n.add_string(4, op.data(), op.size());
  for (const auto& [name, value] : attrs) write_attribute(n, name, value);
  if (!domain.empty()) {
    n.add_string(7, domain.data(), domain.size());
    need(1, domain);
  }
}

std::string Emitter::make(std::string_view op, const Names& inputs, const NodeAttrs& attrs) {
  std::string name = fresh();
  write(op, inputs, {name}, attrs);
  return name;
}

std::string Emitter::fresh() {
  std::string name;
  do {
    name = fmt::format("export.{}", next_name_++);
  } while (!names_.insert(name).second);
  return name;
}

std::string Emitter::int_list(const Ints& values) {
  std::string name = fresh();
  add_initializer(name, {DType::kI64, {static_cast<int64_t>(values.size())}},
                  std::as_bytes(std::span(values)));
  return name;
}

std::string Emitter::int_scalar(int64_t value) {
  std::string name = fresh();
  add_initializer(name, {DType::kI64, {}}, std::as_bytes(std::span(&value, 1)));
  return name;
}

std::string Emitter::splat(const ir::TensorType& type, double value) {
  std::string name = fresh();
  add_initializer(name, type, ir::splat_data(type, value)->bytes.span());
  return name;
}

std::string Emitter::scalar(DType t, double value) { return splat({t, {}}, value); }

std::string Emitter::floats(const std::vector<double>& values, bool exact) {
  const std::vector<float> narrow(values.begin(), values.end());
  const auto count = static_cast<int64_t>(values.size());
  std::string name = fresh();
  if (exact && !std::equal(values.begin(), values.end(), narrow.begin())) {
    add_initializer(name, {DType::kF64, {count}}, std::as_bytes(std::span(values)));
  } else {
    add_initializer(name, {DType::kF32, {count}}, std::as_bytes(std::span(narrow)));
  }
  return name;
}

std::string Emitter::cast(const std::string& x, DType from, DType to) {
  return from == to ? x : make("Cast", {x}, {{"to", onnx_type(to)}});
}

std::string Emitter::wide_in(size_t i) {
  const DType t = in_type(i).dtype;
  return cast(in(i), t, compute_dtype(t));
}

void Emitter::emit_rounded(std::string_view op, const Names& inputs, const NodeAttrs& attrs) {
  const DType t = out_type().dtype;
  if (compute_dtype(t) == t) return emit(op, inputs, attrs);
  NodeAttrs rounding{{"to", onnx_type(t)}};
  if (dtype_bits(t) == 8) rounding.emplace_back("saturate", int64_t{0});
  emit("Cast", {make(op, inputs, attrs)}, rounding);
}

void Emitter::need(int64_t opset, std::string_view domain) {
  int64_t& version = opsets_.try_emplace(std::string(domain), opset).first->second;
  version = std::max(version, opset);
}

void Emitter::refuse(std::string_view reason) {
  refused_.push_back(fmt::format("'{}' ({}): {}", out(), node_->op->name, reason));
}

}  // namespace pyc::onnx::exporting
