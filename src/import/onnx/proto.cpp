#include "import/onnx/proto.h"

#include <fmt/format.h>

#include <stdexcept>

// A field of the wrong wire type is the file's fault: it must not end the process.
namespace pyc::onnx {
inline void require_field(bool ok) {
  if (!ok) throw std::invalid_argument("a field has the wrong wire type");
}
}  // namespace pyc::onnx
#define protozero_assert(x) ::pyc::onnx::require_field(x)
#include <protozero/pbf_reader.hpp>

namespace pyc::onnx {
namespace {

using protozero::pbf_reader;

constexpr int kMaxDepth = 64;

std::string_view text(pbf_reader& r) {
  const protozero::data_view v = r.get_view();
  return {v.data(), v.size()};
}

// A repeated number, packed or not.
template <class T, class One, class Packed>
void append(pbf_reader& r, std::vector<T>& out, protozero::pbf_wire_type single, One one,
            Packed packed) {
  if (r.wire_type() == single) {
    out.push_back(static_cast<T>(one()));
    return;
  }
  for (const auto v : packed()) out.push_back(static_cast<T>(v));
}

constexpr auto kVarint = protozero::pbf_wire_type::varint;
constexpr auto kFixed32 = protozero::pbf_wire_type::fixed32;
constexpr auto kFixed64 = protozero::pbf_wire_type::fixed64;

void append_int64(pbf_reader& r, std::vector<int64_t>& out) {
  append(
      r, out, kVarint, [&] { return r.get_int64(); }, [&] { return r.get_packed_int64(); });
}
void append_int32(pbf_reader& r, std::vector<int32_t>& out) {
  append(
      r, out, kVarint, [&] { return r.get_int32(); }, [&] { return r.get_packed_int32(); });
}
void append_uint64(pbf_reader& r, std::vector<uint64_t>& out) {
  append(
      r, out, kVarint, [&] { return r.get_uint64(); }, [&] { return r.get_packed_uint64(); });
}
void append_float(pbf_reader& r, std::vector<float>& out) {
  append(
      r, out, kFixed32, [&] { return r.get_float(); }, [&] { return r.get_packed_float(); });
}
void append_double(pbf_reader& r, std::vector<double>& out) {
  append(
      r, out, kFixed64, [&] { return r.get_double(); }, [&] { return r.get_packed_double(); });
}

std::pair<std::string_view, std::string_view> read_entry(pbf_reader r) {
  std::pair<std::string_view, std::string_view> entry;
  while (r.next()) {
    if (r.tag() == 1) {
      entry.first = text(r);
    } else if (r.tag() == 2) {
      entry.second = text(r);
    } else {
      r.skip();
    }
  }
  return entry;
}

TensorProto read_tensor(pbf_reader r) {
  TensorProto t;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        append_int64(r, t.dims);
        break;
      case 2:
        t.type = r.get_int32();
        break;
      case 4:
        append_float(r, t.floats);
        break;
      case 5:
        append_int32(r, t.int32s);
        break;
      case 6:
        t.strings.push_back(text(r));
        break;
      case 7:
        append_int64(r, t.int64s);
        break;
      case 8:
        t.name = text(r);
        break;
      case 9:
        t.raw = text(r);
        t.has_raw = true;
        break;
      case 10:
        append_double(r, t.doubles);
        break;
      case 11:
        append_uint64(r, t.uint64s);
        break;
      case 13:
        t.external_data.push_back(read_entry(r.get_message()));
        break;
      case 14:
        t.external = r.get_int32() == 1;
        break;
      default:
        r.skip();
    }
  }
  return t;
}

SparseTensorProto read_sparse(pbf_reader r) {
  SparseTensorProto s;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        s.values = read_tensor(r.get_message());
        break;
      case 2:
        s.indices = read_tensor(r.get_message());
        break;
      case 3:
        append_int64(r, s.dims);
        break;
      default:
        r.skip();
    }
  }
  return s;
}

TypeProto::Dim read_dim(pbf_reader r) {
  TypeProto::Dim d;
  while (r.next()) {
    if (r.tag() == 1) {
      d.value = r.get_int64();
    } else if (r.tag() == 2) {
      d.param = text(r);
    } else {
      r.skip();
    }
  }
  return d;
}

void read_tensor_type(pbf_reader r, TypeProto& type) {
  while (r.next()) {
    if (r.tag() == 1) {
      type.elem_type = r.get_int32();
    } else if (r.tag() == 2) {
      type.has_shape = true;
      pbf_reader shape = r.get_message();
      while (shape.next()) {
        if (shape.tag() == 1) {
          type.shape.push_back(read_dim(shape.get_message()));
        } else {
          shape.skip();
        }
      }
    } else {
      r.skip();
    }
  }
}

TypeProto read_type(pbf_reader r, int depth) {
  if (depth > kMaxDepth) throw std::invalid_argument("types nest too deep");
  TypeProto type;
  while (r.next()) {
    const auto tag = r.tag();
    if (tag == 1) {
      type.kind = TypeProto::Kind::kTensor;
      read_tensor_type(r.get_message(), type);
    } else if (tag == 4 || tag == 9) {
      type.kind = tag == 4 ? TypeProto::Kind::kSequence : TypeProto::Kind::kOptional;
      pbf_reader inner = r.get_message();
      while (inner.next()) {
        if (inner.tag() == 1) {
          type.element.assign(1, read_type(inner.get_message(), depth + 1));
        } else {
          inner.skip();
        }
      }
    } else {
      if (tag == 5 || tag == 7 || tag == 8) type.kind = TypeProto::Kind::kOther;
      r.skip();
    }
  }
  return type;
}

GraphProto read_graph(pbf_reader r, int depth);

AttributeProto read_attribute(pbf_reader r, int depth) {
  AttributeProto a;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        a.name = text(r);
        break;
      case 2:
        a.f = r.get_float();
        break;
      case 3:
        a.i = r.get_int64();
        break;
      case 4:
        a.s = text(r);
        break;
      case 5:
        a.t.assign(1, read_tensor(r.get_message()));
        break;
      case 6:
        a.g.assign(1, read_graph(r.get_message(), depth + 1));
        break;
      case 7:
        append_float(r, a.floats);
        break;
      case 8:
        append_int64(r, a.ints);
        break;
      case 9:
        a.strings.push_back(text(r));
        break;
      case 14:
        a.tp.assign(1, read_type(r.get_message(), 0));
        break;
      case 20:
        a.type = r.get_int32();
        break;
      case 21:
        a.ref = text(r);
        break;
      case 22:
        a.sparse.assign(1, read_sparse(r.get_message()));
        break;
      default:
        r.skip();
    }
  }
  return a;
}

NodeProto read_node(pbf_reader r, int depth) {
  NodeProto n;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        n.inputs.push_back(text(r));
        break;
      case 2:
        n.outputs.push_back(text(r));
        break;
      case 3:
        n.name = text(r);
        break;
      case 4:
        n.op = text(r);
        break;
      case 5:
        n.attributes.push_back(read_attribute(r.get_message(), depth));
        break;
      case 7:
        n.domain = text(r);
        break;
      case 8:
        n.overload = text(r);
        break;
      default:
        r.skip();
    }
  }
  return n;
}

ValueInfo read_value_info(pbf_reader r) {
  ValueInfo v;
  while (r.next()) {
    if (r.tag() == 1) {
      v.name = text(r);
    } else if (r.tag() == 2) {
      v.type = read_type(r.get_message(), 0);
    } else {
      r.skip();
    }
  }
  return v;
}

GraphProto read_graph(pbf_reader r, int depth) {
  if (depth > kMaxDepth) throw std::invalid_argument("graphs nest too deep");
  GraphProto g;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        g.nodes.push_back(read_node(r.get_message(), depth));
        break;
      case 2:
        g.name = text(r);
        break;
      case 5:
        g.initializers.push_back(read_tensor(r.get_message()));
        break;
      case 11:
        g.inputs.push_back(read_value_info(r.get_message()));
        break;
      case 12:
        g.outputs.push_back(read_value_info(r.get_message()));
        break;
      case 13:
        g.values.push_back(read_value_info(r.get_message()));
        break;
      case 15:
        g.sparse_initializers.push_back(read_sparse(r.get_message()));
        break;
      default:
        r.skip();
    }
  }
  return g;
}

OpsetId read_opset(pbf_reader r) {
  OpsetId o;
  while (r.next()) {
    if (r.tag() == 1) {
      o.domain = text(r);
    } else if (r.tag() == 2) {
      o.version = r.get_int64();
    } else {
      r.skip();
    }
  }
  return o;
}

FunctionProto read_function(pbf_reader r) {
  FunctionProto f;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        f.name = text(r);
        break;
      case 4:
        f.inputs.push_back(text(r));
        break;
      case 5:
        f.outputs.push_back(text(r));
        break;
      case 6:
        f.attributes.push_back(text(r));
        break;
      case 7:
        f.nodes.push_back(read_node(r.get_message(), 0));
        break;
      case 9:
        f.opsets.push_back(read_opset(r.get_message()));
        break;
      case 10:
        f.domain = text(r);
        break;
      case 11:
        f.defaults.push_back(read_attribute(r.get_message(), 0));
        break;
      case 13:
        f.overload = text(r);
        break;
      default:
        r.skip();
    }
  }
  return f;
}

ModelProto read_model(pbf_reader r) {
  ModelProto m;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        m.ir_version = r.get_int64();
        break;
      case 2:
        m.producer = text(r);
        break;
      case 7:
        m.graph = read_graph(r.get_message(), 0);
        m.has_graph = true;
        break;
      case 8:
        m.opsets.push_back(read_opset(r.get_message()));
        break;
      case 25:
        m.functions.push_back(read_function(r.get_message()));
        break;
      default:
        r.skip();
    }
  }
  return m;
}

ValueProto read_value(pbf_reader r, int depth) {
  if (depth > kMaxDepth) throw std::invalid_argument("values nest too deep");
  ValueProto v;
  while (r.next()) {
    switch (r.tag()) {
      case 2:
        v.elem_type = r.get_int32();
        break;
      case 3:
        v.tensors.push_back(read_tensor(r.get_message()));
        break;
      case 5:
        v.values.push_back(read_value(r.get_message(), depth + 1));
        break;
      case 7:
        v.values.push_back(read_value(r.get_message(), depth + 1));
        break;
      default:
        r.skip();
    }
  }
  return v;
}

template <class Read>
auto guarded(std::span<const std::byte> bytes, std::string_view what, Read read)
    -> Result<decltype(read(std::declval<pbf_reader>()))> {
  try {
    return read(pbf_reader(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  } catch (const protozero::exception& e) {
    return Status(Code::kParseError, fmt::format("malformed {}: {}", what, e.what()));
  } catch (const std::invalid_argument& e) {
    return Status(Code::kParseError, fmt::format("malformed {}: {}", what, e.what()));
  }
}

}  // namespace

Result<ModelProto> parse_model(std::span<const std::byte> bytes) {
  return guarded(bytes, "ONNX model", [](pbf_reader r) { return read_model(r); });
}
Result<TensorProto> parse_tensor(std::span<const std::byte> bytes) {
  return guarded(bytes, "tensor", [](pbf_reader r) { return read_tensor(r); });
}
Result<ValueProto> parse_sequence(std::span<const std::byte> bytes) {
  return guarded(bytes, "sequence", [](pbf_reader r) { return read_value(r, 0); });
}
Result<ValueProto> parse_optional(std::span<const std::byte> bytes) {
  return guarded(bytes, "optional", [](pbf_reader r) { return read_value(r, 0); });
}

}  // namespace pyc::onnx
