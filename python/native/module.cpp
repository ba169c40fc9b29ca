// pyc._native: PyC's C ABI as Python sees it. Loading it starts no thread and touches no device.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "model.h"
#include "tensor.h"

namespace pyc::python {
namespace {

// Every error of the C ABI becomes the exception that pyc.errors has for its code.
void translate(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    try {
      const nb::object made =
          nb::module_::import_("pyc.errors")
              .attr("error_of_code")(error.code(), error.message(), error.node());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
    } catch (nb::python_error& raised) {
      raised.restore();
    }
  }
}

std::string printable(const nb::bytes& text) {
  return take_text([&](char** out, pyc_error** e) {
    return pyc_printable_text(text.c_str(), text.size(), 1, out, e);
  });
}

nb::list statuses() {
  nb::list out;
  for (pyc_status code = 1; *pyc_status_cause(code) != '\0'; ++code) {
    out.append(
        nb::make_tuple(code, pyc_status_name(code), pyc_status_cause(code), pyc_status_cure(code)));
  }
  return out;
}

nb::list devices() {
  nb::list out;
  for (size_t i = 0; i < pyc_device_count(); ++i) {
    auto info = sized<pyc_device_info>();
    check([&](pyc_error** e) { return pyc_device(i, &info, e); });
    out.append(nb::make_tuple(info.name, info.runs != 0));
  }
  return out;
}

nb::list options() {
  nb::list out;
  for (size_t i = 0; i < pyc_option_count(); ++i) {
    auto info = sized<pyc_option_info>();
    check([&](pyc_error** e) { return pyc_option(i, &info, e); });
    out.append(nb::make_tuple(info.name, info.help, info.initial));
  }
  return out;
}

nb::object closest_name(const std::string& name, const nb::list& candidates) {
  std::vector<std::string> texts;
  for (const nb::handle one : candidates) texts.push_back(nb::cast<std::string>(one));
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  const char* found = pyc_closest_name(name.c_str(), pointers.data(), pointers.size());
  return found == nullptr ? nb::none() : nb::object(nb::str(found));
}

nb::dict allocator_stats() {
  auto stats = sized<pyc_allocator_stats>();
  check([&](pyc_error** e) { return pyc_allocator_get_stats(&stats, e); });
  nb::dict out;
  out["live_tensors"] = stats.live_tensors;
  out["live_bytes"] = stats.live_bytes;
  return out;
}

}  // namespace
}  // namespace pyc::python

NB_MODULE(_native, module) {
  using namespace pyc::python;
  // Plans that torch keeps live as long as the process: nothing of it is a leak to tell users of.
  nb::set_leak_warnings(false);
  if (pyc_abi_version() < PYC_ABI_VERSION) {
    throw nb::import_error("libpyc.so is older than this module: build both from one checkout");
  }
  nb::register_exception_translator(translate);
  bind_tensor(module);
  bind_model(module);
  bind_graph(module);
  bind_train(module);
  bind_watch(module);
  module.attr("version") = pyc_version();
  module.attr("abi_version") = pyc_abi_version();
  module.def("printable", printable);
  module.def("statuses", statuses);
  module.def("devices", devices);
  module.def("options", options);
  module.def("closest_name", closest_name);
  module.def("allocator_stats", allocator_stats);
}
