#include "import/onnx/proto.h"

#include <fmt/format.h>

#include <iterator>
#include <stdexcept>
#include <utility>

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

constexpr auto kVarint = protozero::pbf_wire_type::varint;
constexpr auto kFixed32 = protozero::pbf_wire_type::fixed32;
constexpr auto kFixed64 = protozero::pbf_wire_type::fixed64;

// Thrown when the file asks for more memory than it may.
class OverBudget : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Reader {
 public:
  explicit Reader(MemoryBudget& budget) : budget_(budget) {}

  ModelProto read_model(pbf_reader r);
  TensorProto read_tensor(pbf_reader r);
  ValueProto read_value(pbf_reader r, int depth);

 private:
  void charge(size_t bytes) {
    if (!budget_.take(bytes)) throw OverBudget("reading it takes too much memory for its size");
  }
  // Lists grow by doubling.
  template <class T>
  void add(std::vector<T>& out, T value) {
    charge(2 * sizeof(T));
    out.push_back(std::move(value));
  }
  template <class T>
  void only(std::vector<T>& out, T value) {
    charge(sizeof(T));
    out.clear();
    out.push_back(std::move(value));
  }
  template <class T, class One, class Packed>
  void append(pbf_reader& r, std::vector<T>& out, protozero::pbf_wire_type single, One one,
              Packed packed);
  void append_int64(pbf_reader& r, std::vector<int64_t>& out);
  void append_int32(pbf_reader& r, std::vector<int32_t>& out);
  void append_uint64(pbf_reader& r, std::vector<uint64_t>& out);
  void append_float(pbf_reader& r, std::vector<float>& out);
  void append_double(pbf_reader& r, std::vector<double>& out);
  SparseTensorProto read_sparse(pbf_reader r);
  void read_tensor_type(pbf_reader r, TypeProto& type);
  TypeProto read_type(pbf_reader r, int depth);
  AttributeProto read_attribute(pbf_reader r, int depth);
  NodeProto read_node(pbf_reader r, int depth);
  ValueInfo read_value_info(pbf_reader r);
  GraphProto read_graph(pbf_reader r, int depth);
  FunctionProto read_function(pbf_reader r);

  MemoryBudget& budget_;
};

// A repeated number, packed or not.
template <class T, class One, class Packed>
void Reader::append(pbf_reader& r, std::vector<T>& out, protozero::pbf_wire_type single, One one,
                    Packed packed) {
  if (r.wire_type() == single) {
    add(out, static_cast<T>(one()));
    return;
  }
  const auto values = packed();
  const auto count = static_cast<size_t>(std::distance(values.begin(), values.end()));
  charge(count * sizeof(T));
  out.reserve(out.size() + count);
  for (const auto v : values) out.push_back(static_cast<T>(v));
}

void Reader::append_int64(pbf_reader& r, std::vector<int64_t>& out) {
  append(
      r, out, kVarint, [&] { return r.get_int64(); }, [&] { return r.get_packed_int64(); });
}
void Reader::append_int32(pbf_reader& r, std::vector<int32_t>& out) {
  append(
      r, out, kVarint, [&] { return r.get_int32(); }, [&] { return r.get_packed_int32(); });
}
void Reader::append_uint64(pbf_reader& r, std::vector<uint64_t>& out) {
  append(
      r, out, kVarint, [&] { return r.get_uint64(); }, [&] { return r.get_packed_uint64(); });
}
void Reader::append_float(pbf_reader& r, std::vector<float>& out) {
  append(
      r, out, kFixed32, [&] { return r.get_float(); }, [&] { return r.get_packed_float(); });
}
void Reader::append_double(pbf_reader& r, std::vector<double>& out) {
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

TensorProto Reader::read_tensor(pbf_reader r) {
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
        add(t.strings, text(r));
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
        add(t.external_data, read_entry(r.get_message()));
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

SparseTensorProto Reader::read_sparse(pbf_reader r) {
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

void Reader::read_tensor_type(pbf_reader r, TypeProto& type) {
  while (r.next()) {
    if (r.tag() == 1) {
      type.elem_type = r.get_int32();
    } else if (r.tag() == 2) {
      type.has_shape = true;
      pbf_reader shape = r.get_message();
      while (shape.next()) {
        if (shape.tag() == 1) {
          add(type.shape, read_dim(shape.get_message()));
        } else {
          shape.skip();
        }
      }
    } else {
      r.skip();
    }
  }
}

TypeProto Reader::read_type(pbf_reader r, int depth) {
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
          only(type.element, read_type(inner.get_message(), depth + 1));
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

AttributeProto Reader::read_attribute(pbf_reader r, int depth) {
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
        only(a.t, read_tensor(r.get_message()));
        break;
      case 6:
        only(a.g, read_graph(r.get_message(), depth + 1));
        break;
      case 7:
        append_float(r, a.floats);
        break;
      case 8:
        append_int64(r, a.ints);
        break;
      case 9:
        add(a.strings, text(r));
        break;
      case 14:
        only(a.tp, read_type(r.get_message(), 0));
        break;
      case 20:
        a.type = r.get_int32();
        break;
      case 21:
        a.ref = text(r);
        break;
      case 22:
        only(a.sparse, read_sparse(r.get_message()));
        break;
      default:
        r.skip();
    }
  }
  return a;
}

NodeProto Reader::read_node(pbf_reader r, int depth) {
  NodeProto n;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        add(n.inputs, text(r));
        break;
      case 2:
        add(n.outputs, text(r));
        break;
      case 3:
        n.name = text(r);
        break;
      case 4:
        n.op = text(r);
        break;
      case 5:
        add(n.attributes, read_attribute(r.get_message(), depth));
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

ValueInfo Reader::read_value_info(pbf_reader r) {
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

GraphProto Reader::read_graph(pbf_reader r, int depth) {
  if (depth > kMaxDepth) throw std::invalid_argument("graphs nest too deep");
  GraphProto g;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        add(g.nodes, read_node(r.get_message(), depth));
        break;
      case 2:
        g.name = text(r);
        break;
      case 5:
        add(g.initializers, read_tensor(r.get_message()));
        break;
      case 11:
        add(g.inputs, read_value_info(r.get_message()));
        break;
      case 12:
        add(g.outputs, read_value_info(r.get_message()));
        break;
      case 13:
        add(g.values, read_value_info(r.get_message()));
        break;
      case 15:
        add(g.sparse_initializers, read_sparse(r.get_message()));
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

FunctionProto Reader::read_function(pbf_reader r) {
  FunctionProto f;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        f.name = text(r);
        break;
      case 4:
        add(f.inputs, text(r));
        break;
      case 5:
        add(f.outputs, text(r));
        break;
      case 6:
        add(f.attributes, text(r));
        break;
      case 7:
        add(f.nodes, read_node(r.get_message(), 0));
        break;
      case 9:
        add(f.opsets, read_opset(r.get_message()));
        break;
      case 10:
        f.domain = text(r);
        break;
      case 11:
        add(f.defaults, read_attribute(r.get_message(), 0));
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

MetadataEntry read_metadata(pbf_reader r) {
  MetadataEntry entry;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        entry.key = text(r);
        break;
      case 2:
        entry.value = text(r);
        break;
      default:
        r.skip();
    }
  }
  return entry;
}

ModelProto Reader::read_model(pbf_reader r) {
  ModelProto m;
  while (r.next()) {
    switch (r.tag()) {
      case 1:
        m.ir_version = r.get_int64();
        break;
      case 2:
        m.producer = text(r);
        break;
      case 4:
        m.domain = text(r);
        break;
      case 5:
        m.version = r.get_int64();
        break;
      case 6:
        m.description = text(r);
        break;
      case 14:
        add(m.metadata, read_metadata(r.get_message()));
        break;
      case 7:
        m.graph = read_graph(r.get_message(), 0);
        m.has_graph = true;
        break;
      case 8:
        add(m.opsets, read_opset(r.get_message()));
        break;
      case 25:
        add(m.functions, read_function(r.get_message()));
        break;
      default:
        r.skip();
    }
  }
  return m;
}

ValueProto Reader::read_value(pbf_reader r, int depth) {
  if (depth > kMaxDepth) throw std::invalid_argument("values nest too deep");
  ValueProto v;
  while (r.next()) {
    switch (r.tag()) {
      case 2:
        v.elem_type = r.get_int32();
        break;
      case 3:
        add(v.tensors, read_tensor(r.get_message()));
        break;
      case 5:
        add(v.values, read_value(r.get_message(), depth + 1));
        break;
      case 7:
        add(v.values, read_value(r.get_message(), depth + 1));
        break;
      default:
        r.skip();
    }
  }
  return v;
}

template <class Read>
auto guarded(std::span<const std::byte> bytes, std::string_view what, MemoryBudget& budget,
             Read read) -> Result<decltype(read(std::declval<Reader&>(), pbf_reader()))> {
  Reader reader(budget);
  try {
    return read(reader, pbf_reader(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  } catch (const protozero::exception& e) {
    return Status(Code::kParseError, fmt::format("malformed {}: {}", what, e.what()));
  } catch (const std::invalid_argument& e) {
    return Status(Code::kParseError, fmt::format("malformed {}: {}", what, e.what()));
  } catch (const OverBudget& e) {
    return Status(Code::kBudgetExceeded, fmt::format("{}: {}", what, e.what()));
  }
}

}  // namespace

Result<ModelProto> parse_model(std::span<const std::byte> bytes, MemoryBudget& budget) {
  return guarded(bytes, "ONNX model", budget,
                 [](Reader& reader, pbf_reader r) { return reader.read_model(r); });
}
Result<ModelProto> parse_model(std::span<const std::byte> bytes) {
  MemoryBudget budget(bytes.size());
  return parse_model(bytes, budget);
}
Result<TensorProto> parse_tensor(std::span<const std::byte> bytes) {
  MemoryBudget budget(bytes.size());
  return guarded(bytes, "tensor", budget,
                 [](Reader& reader, pbf_reader r) { return reader.read_tensor(r); });
}
Result<ValueProto> parse_sequence(std::span<const std::byte> bytes) {
  MemoryBudget budget(bytes.size());
  return guarded(bytes, "sequence", budget,
                 [](Reader& reader, pbf_reader r) { return reader.read_value(r, 0); });
}
Result<ValueProto> parse_optional(std::span<const std::byte> bytes) {
  MemoryBudget budget(bytes.size());
  return guarded(bytes, "optional", budget,
                 [](Reader& reader, pbf_reader r) { return reader.read_value(r, 0); });
}

}  // namespace pyc::onnx
