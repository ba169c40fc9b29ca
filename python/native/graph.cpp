// Graphs: built op by op, read from model files, compiled.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "borrow.h"
#include "model.h"
#include "pyc/pyc.hpp"

namespace pyc::python {
namespace {

using Name = std::optional<std::string>;
const char* text_or_null(const Name& name) { return name ? name->c_str() : nullptr; }
int64_t rank_of(const Shape& shape) { return static_cast<int64_t>(shape.size()); }

template <class Call>
pyc_value make_value(Call call) {
  pyc_value value = 0;
  check([&](pyc_error** e) { return call(&value, e); });
  return value;
}

pyc_value add_input(Graph& graph, const std::string& name, const std::string& dtype,
                    const Shape& shape) {
  return make_value([&](pyc_value* v, pyc_error** e) {
    return pyc_graph_input(graph.get(), name.c_str(), dtype_named(dtype), shape.data(),
                           rank_of(shape), v, e);
  });
}

pyc_value add_constant(Graph& graph, const Name& name, nb::handle array) {
  const Borrowed borrowed(array, PYC_DTYPE_ANY, Access::kRead);
  // A constant is row-major: a value of PyC's is, whatever strides it was made from.
  const AnyValue plain(borrowed.view());
  const pyc_tensor_view view = plain.tensor();
  return make_value([&](pyc_value* v, pyc_error** e) {
    return pyc_graph_constant(graph.get(), text_or_null(name), view.dtype, view.shape, view.rank,
                              static_cast<const char*>(view.data) + view.byte_offset,
                              static_cast<size_t>(view.bytes), v, e);
  });
}

bool is_row_major(const pyc_tensor_view& view) {
  int64_t expected = 1;
  for (int64_t i = view.rank; view.strides != nullptr && i-- > 0;) {
    if (view.shape[i] != 1 && view.strides[i] != expected) return false;
    expected *= view.shape[i];
  }
  return true;
}

// The array itself, as long as something reads the constant: it is row-major, or copied.
pyc_value borrow_constant(Graph& graph, const Name& name, nb::handle array) {
  auto held = std::make_unique<Borrowed>(array, PYC_DTYPE_ANY, Access::kRead);
  const pyc_tensor_view& view = held->view();
  if (!is_row_major(view)) return add_constant(graph, name, array);
  const auto release = [](void* user) {
    if (Py_IsInitialized() == 0) return;  // too late to let go of anything
    const nb::gil_scoped_acquire gil;
    delete static_cast<Borrowed*>(user);
  };
  size_t bytes = static_cast<size_t>(pyc_dtype_size(view.dtype));
  for (int64_t i = 0; i < view.rank; ++i) bytes *= static_cast<size_t>(view.shape[i]);
  Borrowed* const user = held.release();  // refused or not, it is released
  return make_value([&](pyc_value* v, pyc_error** e) {
    return pyc_graph_constant_borrowed(
        graph.get(), text_or_null(name), view.dtype, view.shape, view.rank,
        static_cast<const char*>(view.data) + view.byte_offset, bytes, user, release, v, e);
  });
}

pyc_value constant_of(Graph& graph, const Name& name, const Graph& other, pyc_value constant) {
  return make_value([&](pyc_value* v, pyc_error** e) {
    return pyc_graph_constant_of(graph.get(), text_or_null(name), other.get(), constant, v, e);
  });
}

pyc_value add_scalar(Graph& graph, const std::string& dtype, double number) {
  return make_value([&](pyc_value* v, pyc_error** e) {
    return pyc_graph_scalar(graph.get(), dtype_named(dtype), number, v, e);
  });
}

pyc_value add_random(Graph& graph, const Name& name, const std::string& dtype, const Shape& shape,
                     uint64_t seed, double lo, double hi) {
  return make_value([&](pyc_value* v, pyc_error** e) {
    return pyc_graph_random(graph.get(), text_or_null(name), dtype_named(dtype), shape.data(),
                            rank_of(shape), seed, lo, hi, v, e);
  });
}

// Sets an attribute as its kind in the table of ops asks for.
pyc_status set_attribute(pyc_attrs* attrs, const std::string& name, const std::string& kind,
                         nb::handle value, pyc_error** e) {
  const char* key = name.c_str();
  if (kind == "int") return pyc_attrs_set_int(attrs, key, nb::cast<int64_t>(value), e);
  if (kind == "float") return pyc_attrs_set_float(attrs, key, nb::cast<double>(value), e);
  if (kind == "bool") return pyc_attrs_set_bool(attrs, key, nb::cast<bool>(value) ? 1 : 0, e);
  if (kind == "dtype") {
    return pyc_attrs_set_dtype(attrs, key, dtype_named(nb::cast<std::string>(value)), e);
  }
  if (kind == "ints") {
    const auto list = nb::cast<std::vector<int64_t>>(value);
    return pyc_attrs_set_ints(attrs, key, list.data(), list.size(), e);
  }
  if (kind == "floats") {
    const auto list = nb::cast<std::vector<double>>(value);
    return pyc_attrs_set_floats(attrs, key, list.data(), list.size(), e);
  }
  return pyc_attrs_set_string(attrs, key, nb::cast<std::string>(value).c_str(), e);
}

using Attribute = std::tuple<std::string, std::string, nb::object>;  // name, kind, value

std::vector<pyc_value> add_op(Graph& graph, const std::string& op,
                              const std::vector<pyc_value>& inputs,
                              const std::vector<Attribute>& attributes, const Name& name) {
  Handle<pyc_attrs, pyc_attrs_destroy> attrs;
  check([&](pyc_error** e) { return pyc_attrs_create(attrs.put(), e); });
  for (const auto& [key, kind, value] : attributes) {
    try {
      check([&](pyc_error** e) { return set_attribute(attrs.get(), key, kind, value, e); });
    } catch (const nb::cast_error&) {
      throw nb::type_error((op + ": the attribute " + key + " is of the kind " + kind).c_str());
    }
  }
  const pyc_value first = make_value([&](pyc_value* v, pyc_error** e) {
    return pyc_graph_op(graph.get(), op.c_str(), inputs.data(), inputs.size(), attrs.get(),
                        text_or_null(name), v, e);
  });
  std::vector<pyc_value> out(graph.node(graph.node_count() - 1).output_count);
  for (pyc_value i = 0; i < out.size(); ++i) out[i] = first + i;
  return out;
}

nb::tuple value_type(const Graph& graph, pyc_value value) {
  const pyc_value_info info = graph.value(value);
  return nb::make_tuple(info.name, pyc_dtype_name(info.dtype),
                        nb::tuple(nb::cast(Shape(info.shape, info.shape + info.rank))));
}

// Options whose compiles share code.
struct SharedCode {
  explicit SharedCode(const OptionList& list) : options(options_of(list)) { options.share_code(); }
  CompileOptions options;
};

CompiledModel compile_with(const Graph& graph, const CompileOptions& options) {
  CompiledModel::Owner model;
  {
    const nb::gil_scoped_release released;
    check([&](pyc_error** e) {
      return pyc_compile_model(graph.get(), options.get(), model.put(), e);
    });
  }
  return CompiledModel(std::move(model));
}

CompiledModel compile_graph(const Graph& graph, const OptionList& list) {
  return compile_with(graph, options_of(list));
}

CompiledModel compile_shared(const Graph& graph, const SharedCode& shared) {
  return compile_with(graph, shared.options);
}

void compile_to_file(const Graph& graph, const std::string& path, const OptionList& list) {
  const CompileOptions options = options_of(list);
  const nb::gil_scoped_release released;
  graph.compile_to_file(path, options);
}

std::string dump(const Graph& graph, const std::string& stage, const OptionList& list) {
  const CompileOptions options = options_of(list);
  const nb::gil_scoped_release released;
  return graph.dump(stage, options);
}

ModelFile read_bytes(const nb::bytes& data) {
  return ModelFile::read(std::string_view(data.c_str(), data.size()));
}

Graph graph_of(const ModelFile& file, const OptionList& list) {
  const CompileOptions options = options_of(list);
  const nb::gil_scoped_release released;
  return file.graph(options);
}

nb::tuple op_info(const std::string& name) {
  size_t index = 0;
  check([&](pyc_error** e) { return pyc_op_find(name.c_str(), &index, e); });
  auto info = sized<pyc_op_info>();
  check([&](pyc_error** e) { return pyc_op(index, &info, e); });
  nb::list attributes;
  for (size_t i = 0; i < info.attribute_count; ++i) {
    auto attribute = sized<pyc_attribute_info>();
    check([&](pyc_error** e) { return pyc_op_attribute(index, i, &attribute, e); });
    attributes.append(nb::make_tuple(attribute.name, attribute.kind));
  }
  return nb::make_tuple(info.summary, attributes);
}

}  // namespace

pyc_dtype dtype_named(const std::string& name) {
  pyc_dtype dtype = PYC_DTYPE_ANY;
  check([&](pyc_error** e) { return pyc_dtype_from_name(name.c_str(), &dtype, e); });
  return dtype;
}

void bind_graph(nb::module_& module) {
  nb::class_<Graph>(module, "Graph")
      .def(nb::init<const std::string&>())
      .def_static("parse", [](const std::string& text) { return Graph::parse(text); })
      .def("input", add_input)
      .def("constant", add_constant, nb::arg("name").none(), nb::arg("array"))
      .def("borrow", borrow_constant, nb::arg("name").none(), nb::arg("array"))
      .def("constant_of", constant_of, nb::arg("name").none(), nb::arg("other"),
           nb::arg("constant"))
      .def("scalar", add_scalar)
      .def("random", add_random, nb::arg("name").none(), nb::arg("dtype"), nb::arg("shape"),
           nb::arg("seed"), nb::arg("lo"), nb::arg("hi"))
      .def("op", add_op, nb::arg("op"), nb::arg("inputs"), nb::arg("attributes"),
           nb::arg("name").none())
      .def("output", &Graph::output)
      .def("value_type", value_type)
      .def("text", &Graph::print)
      .def("fingerprint", &Graph::fingerprint)
      .def("dump", dump)
      .def("compile", compile_graph)
      .def("compile_shared", compile_shared)
      .def("compile_to_file", compile_to_file)
      .def("export_onnx", &Graph::export_onnx);
  nb::class_<SharedCode>(module, "SharedCode").def(nb::init<const OptionList&>());
  nb::class_<ModelFile>(module, "ModelFile")
      .def_static("load", &ModelFile::load)
      .def_static("read", read_bytes)
      .def("describe", &ModelFile::describe)
      .def("graph", graph_of);
  module.def("op_info", op_info);
}

}  // namespace pyc::python
