// Row-major memory that PyC, or somebody it keeps alive, owns: what Python sees as pyc.Tensor.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "pyc/values.hpp"

namespace pyc::python {

namespace nb = nanobind;

struct Tensor {
  std::shared_ptr<const void> owner;  // keeps `data`
  void* data = nullptr;
  pyc_dtype dtype = PYC_DTYPE_ANY;
  bool writable = false;
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;  // in bytes

  // `view` is row-major.
  Tensor(std::shared_ptr<const void> owner, const pyc_tensor_view& view, bool writable);
  int64_t bytes() const;
  pyc_tensor_view view() const;
};

// Zeros.
Tensor make_tensor(pyc_dtype dtype, const std::vector<int64_t>& shape);
// A copy with memory of its own, which may be written to.
Tensor copy_tensor(const Tensor& from);

// The dtype as numpy knows it; that of ml_dtypes where numpy has none.
nb::object numpy_dtype(pyc_dtype dtype);
// An array of numpy's over the same memory; `tensor` is the Python object.
nb::object numpy_array(nb::handle tensor);

void bind_tensor(nb::module_& module);

}  // namespace pyc::python
