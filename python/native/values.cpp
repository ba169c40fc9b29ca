#include "values.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "borrow.h"
#include "tensor.h"

namespace pyc::python {
namespace {

// What stands in the parentheses after `word`; nothing when `type` does not begin with it.
bool take_inner(std::string_view word, std::string_view& type) {
  if (!type.starts_with(word) || !type.ends_with(')')) return false;
  type.remove_prefix(word.size());
  type.remove_suffix(1);
  return true;
}

pyc_dtype declared_dtype(std::string_view type) {
  const std::string name(type.substr(0, type.find('[')));
  pyc_dtype dtype = PYC_DTYPE_ANY;
  return pyc_dtype_from_name(name.c_str(), &dtype, nullptr) == PYC_STATUS_OK ? dtype
                                                                             : PYC_DTYPE_ANY;
}

std::string bytes_of(nb::handle text) {
  if (nb::isinstance<nb::bytes>(text)) {
    const auto bytes = nb::cast<nb::bytes>(text);
    return {bytes.c_str(), bytes.size()};
  }
  return nb::cast<std::string>(nb::str(text));
}

AnyValue strings_of(nb::handle object) {
  const nb::object found = nb::module_::import_("pyc._arrays").attr("strings")(object);
  const auto pair = nb::cast<nb::tuple>(found);
  std::vector<std::string> strings;
  for (const nb::handle text : nb::cast<nb::list>(pair[0])) strings.push_back(bytes_of(text));
  return {strings, nb::cast<Shape>(pair[1])};
}

AnyValue sequence_of(nb::handle object, std::string_view item_type) {
  if (!nb::isinstance<nb::list>(object) && !nb::isinstance<nb::tuple>(object)) {
    throw nb::type_error("a sequence is passed as a list");
  }
  std::vector<AnyValue> items;
  for (const nb::handle item : nb::borrow<nb::iterable>(object)) {
    items.push_back(value_of(item, item_type));
  }
  return AnyValue::sequence(items);
}

nb::object strings_object(const pyc_result* result) {
  const int64_t* shape = nullptr;
  int64_t rank = 0;
  check([&](pyc_error** e) { return pyc_result_shape(result, &shape, &rank, e); });
  nb::list strings;
  for (size_t i = 0; i < pyc_result_count(result); ++i) {
    const char* text = nullptr;
    size_t size = 0;
    check([&](pyc_error** e) { return pyc_result_string(result, i, &text, &size, e); });
    // Bytes that are not UTF-8 come back as they went in.
    nb::object decoded =
        nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), "surrogateescape"));
    if (!decoded.is_valid()) throw nb::python_error();
    strings.append(decoded);
  }
  const nb::object make = nb::module_::import_("pyc._arrays").attr("object_array");
  return make(strings, nb::cast(std::vector<int64_t>(shape, shape + rank)));
}

nb::object tensor_object(const pyc_result* result, const std::shared_ptr<const void>& owner,
                         Form form) {
  auto view = sized<pyc_tensor_view>();
  check([&](pyc_error** e) { return pyc_result_tensor(result, &view, e); });
  nb::object tensor = nb::cast(Tensor(owner, view, false));
  if (form == Form::kTensors) return tensor;
  nb::object array = numpy_array(tensor);
  return form == Form::kViews ? array : nb::object(array.attr("copy")());
}

}  // namespace

AnyValue value_of(nb::handle object, std::string_view type) {
  if (take_inner("optional(", type) && object.is_none()) return AnyValue();
  if (take_inner("sequence(", type)) return sequence_of(object, type);
  if (type.starts_with("string")) return strings_of(object);
  const Borrowed borrowed(object, declared_dtype(type), Access::kRead);
  return AnyValue(borrowed.view());
}

nb::object object_of(const pyc_result* result, const std::shared_ptr<const void>& owner,
                     Form form) {
  switch (pyc_result_type(result)) {
    case PYC_TYPE_TENSOR:
      return tensor_object(result, owner, form);
    case PYC_TYPE_STRINGS:
      return strings_object(result);
    case PYC_TYPE_SEQUENCE:
      break;
    default:
      return nb::none();
  }
  nb::list items;
  for (size_t i = 0; i < pyc_result_count(result); ++i) {
    const pyc_result* item = nullptr;
    check([&](pyc_error** e) { return pyc_result_item(result, i, &item, e); });
    items.append(object_of(item, owner, form));
  }
  return items;
}

}  // namespace pyc::python
