#include "borrow.h"

#include <nanobind/stl/string.h>

#include <cstring>

#include "dtypes.h"
#include "tensor.h"

namespace pyc::python {
namespace {

// Whole elements from one to the next in every dim; otherwise no view can say it.
bool to_elements(const Py_buffer& buffer, std::vector<int64_t>& strides) {
  for (int i = 0; i < buffer.ndim; ++i) {
    if (buffer.strides[i] % buffer.itemsize != 0) return false;
    strides.push_back(buffer.strides[i] / buffer.itemsize);
  }
  return true;
}

nb::object ask_dlpack(nb::handle object) {
  const nb::object method = object.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 1));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method();  // from before version 1
}

// The tensor of a capsule that was not taken yet; `read_only` becomes its flag.
const dlpack::Tensor& tensor_of(nb::handle capsule, bool& read_only) {
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::kVersionedName) != 0) {
    const auto* managed = static_cast<dlpack::ManagedVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), dlpack::kVersionedName));
    read_only = (managed->flags & dlpack::kReadOnly) != 0;
    if (managed->major == 1) return managed->tensor;
    throw nb::buffer_error("a DLPack tensor of another version than 1");
  }
  auto* managed =
      static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::kPlainName));
  if (managed == nullptr) throw nb::python_error();
  read_only = false;
  return managed->tensor;
}

// Taken: from here on the deleter is ours to call.
void rename(nb::handle capsule) {
  const bool versioned = PyCapsule_IsValid(capsule.ptr(), dlpack::kVersionedName) != 0;
  PyCapsule_SetName(capsule.ptr(), versioned ? dlpack::kUsedVersionedName : dlpack::kUsedPlainName);
}

template <class Managed>
void call_deleter(nb::handle capsule, const char* name) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

}  // namespace

Borrowed::Borrowed(nb::handle object, pyc_dtype declared, Access access) {
  if (nb::isinstance<Tensor>(object)) {
    if (borrow_tensor(object, access)) return;
  } else if (PyObject_CheckBuffer(object.ptr()) != 0) {
    if (borrow_buffer(object, access) || borrow_extension(object, access)) return;
  } else if (nb::hasattr(object, "__dlpack__")) {
    if (borrow_dlpack(object, access)) return;
  }
  if (access == Access::kWrite) {
    throw nb::type_error("an output needs an array that can be written to, of a dtype PyC has");
  }
  const char* name = declared == PYC_DTYPE_ANY ? nullptr : names_of(declared)->numpy;
  kept_ = nb::module_::import_("pyc._arrays").attr("plain")(object, name);
  copied_ = true;
  if (!borrow_buffer(kept_, access) && !borrow_extension(kept_, access)) {
    const auto dtype = nb::cast<std::string>(nb::str(nb::object(kept_.attr("dtype"))));
    const auto kind = nb::cast<std::string>(object.type().attr("__name__"));
    throw nb::type_error(("expected a tensor, found " + kind + " (numpy's dtype " + dtype +
                          "), which PyC has no type for")
                             .c_str());
  }
}

Borrowed::~Borrowed() { release(); }

bool Borrowed::borrow_tensor(nb::handle object, Access access) {
  const auto& tensor = nb::cast<const Tensor&>(object);
  if (access == Access::kWrite && !tensor.writable) return false;
  view_ = tensor.view();
  kept_ = nb::borrow(object);
  return true;
}

bool Borrowed::borrow_buffer(nb::handle object, Access access, pyc_dtype dtype) {
  const int flags = access == Access::kWrite ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
  if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) {
    PyErr_Clear();
    return false;
  }
  has_buffer_ = true;
  if (dtype == PYC_DTYPE_ANY) dtype = dtype_of_format(buffer_.format, buffer_.itemsize);
  const bool row_major = PyBuffer_IsContiguous(&buffer_, 'C') != 0;
  if (dtype == PYC_DTYPE_ANY || (!row_major && !to_elements(buffer_, strides_))) {
    release();
    return false;
  }
  view_.dtype = dtype;
  view_.shape = reinterpret_cast<const int64_t*>(buffer_.shape);
  view_.rank = buffer_.ndim;
  view_.data = buffer_.buf;
  view_.bytes = buffer_.len;
  if (!row_major) set_extent(static_cast<char*>(buffer_.buf), buffer_.itemsize);
  return true;
}

// numpy hands out no buffer of ml_dtypes' elements, but one of integers of their size.
bool Borrowed::borrow_extension(nb::handle object, Access access) {
  if (!nb::hasattr(object, "dtype")) return false;
  const nb::object type = object.attr("dtype");
  const auto name = nb::cast<std::string>(nb::str(type.attr("name")));
  const pyc_dtype dtype = dtype_of_extension(name);
  if (dtype == PYC_DTYPE_ANY) return false;
  nb::object integers = object.attr("view")(pyc_dtype_size(dtype) == 2 ? "uint16" : "uint8");
  if (!borrow_buffer(integers, access, dtype)) return false;
  kept_ = std::move(integers);
  return true;
}

bool Borrowed::borrow_dlpack(nb::handle object, Access access) {
  nb::object capsule = ask_dlpack(object);
  bool read_only = false;
  const dlpack::Tensor& tensor = tensor_of(capsule, read_only);
  const pyc_dtype dtype = dtype_of_dlpack(tensor.dtype);
  if (dtype == PYC_DTYPE_ANY) throw nb::type_error("a DLPack tensor of a dtype PyC has none for");
  if (read_only && access == Access::kWrite) return false;
  rename(capsule);
  capsule_ = std::move(capsule);
  view_.dtype = dtype;
  view_.rank = tensor.rank;
  view_.shape = tensor.shape;
  view_.device_type = tensor.device_type;
  view_.device_id = tensor.device_id;
  view_.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  view_.bytes = pyc_dtype_size(dtype);
  for (int64_t i = 0; i < view_.rank; ++i) view_.bytes *= tensor.shape[i];
  if (tensor.strides == nullptr) return true;
  strides_.assign(tensor.strides, tensor.strides + tensor.rank);
  set_extent(static_cast<char*>(view_.data), pyc_dtype_size(dtype));
  return true;
}

// The bytes from the lowest to the highest element, and where among them the first one is.
void Borrowed::set_extent(char* first, int64_t item_bytes) {
  int64_t below = 0;
  int64_t above = 0;
  bool empty = false;
  for (size_t i = 0; i < strides_.size(); ++i) {
    empty = empty || view_.shape[i] == 0;
    const int64_t reach = (view_.shape[i] - 1) * strides_[i] * item_bytes;
    (reach < 0 ? below : above) += reach;
  }
  view_.strides = strides_.data();
  if (empty) {
    view_.bytes = 0;
    view_.strides = nullptr;
    return;
  }
  view_.data = first + below;
  view_.byte_offset = -below;
  view_.bytes = above - below + item_bytes;
}

void Borrowed::release() {
  strides_.clear();
  if (has_buffer_) PyBuffer_Release(&buffer_);
  has_buffer_ = false;
  if (!capsule_.is_valid()) return;
  if (std::strcmp(PyCapsule_GetName(capsule_.ptr()), dlpack::kUsedVersionedName) == 0) {
    call_deleter<dlpack::ManagedVersioned>(capsule_, dlpack::kUsedVersionedName);
  } else {
    call_deleter<dlpack::Managed>(capsule_, dlpack::kUsedPlainName);
  }
  capsule_.reset();
}

}  // namespace pyc::python
