#include "tensor.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstring>

#include "dtypes.h"

namespace pyc::python {
namespace {

// The buffer protocol, for what has a format in it.
int get_buffer(PyObject* object, Py_buffer* buffer, int flags) noexcept {
  const Tensor* tensor = nb::inst_ptr<Tensor>(nb::handle(object));
  const char* format = names_of(tensor->dtype)->format;
  buffer->obj = nullptr;
  if (format == nullptr) {
    PyErr_Format(PyExc_BufferError,
                 "%s has no format in the buffer protocol: use numpy() or DLPack",
                 pyc_dtype_name(tensor->dtype));
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) != 0 && !tensor->writable) {
    PyErr_SetString(PyExc_BufferError, "this tensor is a result and not to be written to");
    return -1;
  }
  buffer->buf = tensor->data;
  buffer->len = tensor->bytes();
  buffer->itemsize = pyc_dtype_size(tensor->dtype);
  buffer->readonly = tensor->writable ? 0 : 1;
  buffer->ndim = static_cast<int>(tensor->shape.size());
  buffer->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
  buffer->shape = const_cast<Py_ssize_t*>(tensor->shape.data());
  buffer->strides = const_cast<Py_ssize_t*>(tensor->strides.data());
  buffer->suboffsets = nullptr;
  buffer->internal = nullptr;
  buffer->obj = object;
  Py_INCREF(object);
  return 0;
}

PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

// What a DLPack capsule owns: the tensor's memory, and its dims in DLPack's form.
template <class Managed>
struct Exported {
  Managed managed{};
  std::shared_ptr<const void> owner;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

template <class Managed>
void destroy_exported(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->context);
}

template <class Managed>
Exported<Managed>* export_tensor(const Tensor& tensor) {
  const int64_t item_bytes = pyc_dtype_size(tensor.dtype);
  auto exported = std::make_unique<Exported<Managed>>();
  exported->owner = tensor.owner;
  exported->shape.assign(tensor.shape.begin(), tensor.shape.end());
  for (const Py_ssize_t stride : tensor.strides) exported->strides.push_back(stride / item_bytes);
  dlpack::Tensor& out = exported->managed.tensor;
  out.data = tensor.data;
  out.device_type = PYC_DEVICE_HOST;
  out.rank = static_cast<int32_t>(tensor.shape.size());
  out.dtype = names_of(tensor.dtype)->dl;
  out.shape = exported->shape.data();
  out.strides = exported->strides.data();
  exported->managed.context = exported.get();
  exported->managed.deleter = destroy_exported<Managed>;
  return exported.release();
}

// Runs when a capsule dies that nobody took.
template <class Managed>
void drop(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}
void drop_plain(PyObject* capsule) { drop<dlpack::Managed>(capsule, dlpack::kPlainName); }
void drop_versioned(PyObject* capsule) {
  drop<dlpack::ManagedVersioned>(capsule, dlpack::kVersionedName);
}

nb::object plain_capsule(const Tensor& tensor) {
  auto* exported = export_tensor<dlpack::Managed>(tensor);
  return nb::steal(PyCapsule_New(&exported->managed, dlpack::kPlainName, drop_plain));
}

nb::object versioned_capsule(const Tensor& tensor, bool copied) {
  auto* exported = export_tensor<dlpack::ManagedVersioned>(tensor);
  exported->managed.major = 1;
  exported->managed.flags =
      (tensor.writable ? 0 : dlpack::kReadOnly) | (copied ? dlpack::kCopied : 0);
  return nb::steal(PyCapsule_New(&exported->managed, dlpack::kVersionedName, drop_versioned));
}

bool is_on_host(nb::handle device) {
  return device.is_none() ||
         nb::cast<int>(nb::cast<nb::tuple>(device)[0]) == static_cast<int>(PYC_DEVICE_HOST);
}

nb::object to_dlpack(const Tensor& tensor, nb::handle /*stream*/, nb::handle max_version,
                     nb::handle device, nb::handle copy) {
  if (names_of(tensor.dtype)->dl.bits == 0) {
    throw nb::buffer_error("this element type lies one to a byte, which DLPack cannot say");
  }
  if (!is_on_host(device)) throw nb::buffer_error("this tensor is on the host");
  const bool versioned =
      !max_version.is_none() && nb::cast<int>(nb::cast<nb::tuple>(max_version)[0]) >= 1;
  const bool copied = !copy.is_none() && nb::cast<bool>(copy);
  const Tensor source = copied ? copy_tensor(tensor) : tensor;
  if (versioned) return versioned_capsule(source, copied);
  if (!source.writable) {
    throw nb::buffer_error(
        "this tensor is not to be written to, which DLPack before version 1 "
        "cannot say: ask for a copy");
  }
  return plain_capsule(source);
}

nb::tuple shape_tuple(const Tensor& tensor) {
  nb::list dims;
  for (const Py_ssize_t dim : tensor.shape) dims.append(dim);
  return nb::tuple(dims);
}

nb::object to_array(nb::handle self, nb::handle dtype, nb::handle copy) {
  nb::object array = numpy_array(self);
  if (!dtype.is_none()) return array.attr("astype")(dtype, nb::arg("copy") = copy.is(Py_True));
  return copy.is(Py_True) ? nb::object(array.attr("copy")()) : array;
}

pyc_dtype dtype_named(const std::string& name) {
  pyc_dtype dtype = PYC_DTYPE_ANY;
  check([&](pyc_error** e) { return pyc_dtype_from_name(name.c_str(), &dtype, e); });
  return dtype;
}

}  // namespace

Tensor::Tensor(std::shared_ptr<const void> memory, const pyc_tensor_view& view, bool may_write)
    : owner(std::move(memory)),
      data(static_cast<char*>(view.data) + view.byte_offset),
      dtype(view.dtype),
      writable(may_write),
      shape(view.shape, view.shape + view.rank),
      strides(shape.size()) {
  Py_ssize_t stride = pyc_dtype_size(dtype);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
}

int64_t Tensor::bytes() const {
  int64_t bytes = pyc_dtype_size(dtype);
  for (const Py_ssize_t dim : shape) bytes *= dim;
  return bytes;
}

pyc_tensor_view Tensor::view() const {
  auto view = sized<pyc_tensor_view>();
  view.data = data;
  view.bytes = bytes();
  view.shape = reinterpret_cast<const int64_t*>(shape.data());
  view.rank = static_cast<int64_t>(shape.size());
  view.dtype = dtype;
  return view;
}

Tensor make_tensor(pyc_dtype dtype, const std::vector<int64_t>& shape) {
  auto made = std::make_shared<pyc::Tensor>(dtype, shape);
  const pyc_tensor_view view = made->view();
  return {std::move(made), view, true};
}

Tensor copy_tensor(const Tensor& from) {
  Tensor out = make_tensor(from.dtype, {from.shape.begin(), from.shape.end()});
  if (from.bytes() != 0) std::memcpy(out.data, from.data, static_cast<size_t>(from.bytes()));
  return out;
}

nb::object numpy_dtype(pyc_dtype dtype) {
  // Kept for the life of the process, like the modules they are of.
  static std::array<PyObject*, 32> known{};
  PyObject*& slot = known.at(static_cast<size_t>(dtype));
  if (slot == nullptr) {
    slot = nb::module_::import_("pyc._arrays")
               .attr("dtype")(names_of(dtype)->numpy, names_of(dtype)->format != nullptr)
               .release()
               .ptr();
  }
  return nb::borrow(slot);
}

nb::object numpy_array(nb::handle tensor) {
  const auto& self = nb::cast<const Tensor&>(tensor);
  const nb::object as_array = nb::module_::import_("numpy").attr("asarray");
  if (names_of(self.dtype)->format != nullptr) return as_array(tensor);
  nb::object dtype = numpy_dtype(self.dtype);
  Tensor integers = self;
  integers.dtype = pyc_dtype_size(self.dtype) == 2 ? PYC_DTYPE_U16 : PYC_DTYPE_U8;
  return as_array(nb::cast(std::move(integers))).attr("view")(dtype);
}

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor>(module, "Tensor", nb::type_slots(kSlots))
      .def_prop_ro("dtype", [](const Tensor& self) { return pyc_dtype_name(self.dtype); })
      .def_prop_ro("shape", shape_tuple)
      .def_prop_ro("nbytes", &Tensor::bytes)
      .def_prop_ro("data_ptr",
                   [](const Tensor& self) { return reinterpret_cast<uintptr_t>(self.data); })
      .def_prop_ro("writable", [](const Tensor& self) { return self.writable; })
      .def("numpy", [](nb::handle self) { return numpy_array(self); })
      .def("copy", [](const Tensor& self) { return copy_tensor(self); })
      .def("__array__", to_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__",
           [](const Tensor&) { return nb::make_tuple(static_cast<int>(PYC_DEVICE_HOST), 0); })
      .def("__dlpack__", to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none());
  module.def("tensor", [](const std::string& dtype, const std::vector<int64_t>& shape) {
    return make_tensor(dtype_named(dtype), shape);
  });
  module.def("dtype_names", [](const std::string& dtype) {
    const DtypeNames* names = names_of(dtype_named(dtype));
    return nb::make_tuple(names->numpy, names->format != nullptr);
  });
  // Over memory that the caller keeps for as long as the tensor is used.
  module.def("tensor_at",
             [](uintptr_t address, const std::string& dtype, const std::vector<int64_t>& shape) {
               auto view = sized<pyc_tensor_view>();
               view.data = reinterpret_cast<void*>(address);
               view.dtype = dtype_named(dtype);
               view.shape = shape.data();
               view.rank = static_cast<int64_t>(shape.size());
               return Tensor(nullptr, view, true);
             });
}

}  // namespace pyc::python
