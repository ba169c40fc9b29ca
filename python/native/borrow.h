// Arrays of other libraries, as the C ABI sees them.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "pyc/values.hpp"

namespace pyc::python {

namespace nb = nanobind;

enum class Access { kRead, kWrite };

// Borrows an object's elements for as long as it lives: by the buffer protocol, by DLPack, or
// through numpy when the object offers neither. Strides stay as they are.
class Borrowed {
 public:
  // `declared` is the dtype that numbers without one of their own (lists, int, float) get;
  // PYC_DTYPE_ANY leaves it to numpy. Raises a Python error for what is no array.
  Borrowed(nb::handle object, pyc_dtype declared, Access access);
  ~Borrowed();
  // Views point into it: it stays where it is.
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  const pyc_tensor_view& view() const { return view_; }
  // Whether the elements had to be copied, because no view can describe them as they are.
  bool copied() const { return copied_; }

 private:
  bool borrow_tensor(nb::handle object, Access access);
  bool borrow_buffer(nb::handle object, Access access, pyc_dtype dtype = PYC_DTYPE_ANY);
  bool borrow_extension(nb::handle object, Access access);
  bool borrow_dlpack(nb::handle object, Access access);
  void release();
  void set_extent(char* first, int64_t item_bytes);

  pyc_tensor_view view_ = sized<pyc_tensor_view>();
  Py_buffer buffer_{};
  std::vector<int64_t> strides_;
  nb::object kept_;     // what the buffer or capsule is of, when it was made here
  nb::object capsule_;  // DLPack's
  bool has_buffer_ = false;
  bool copied_ = false;
};

}  // namespace pyc::python
