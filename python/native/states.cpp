// What a model keeps from one run to the next.

#include <nanobind/stl/string.h>

#include "model.h"
#include "tensor.h"

namespace pyc::python {
namespace {

// Each state as the input it is, and the name of the output behind it.
nb::list states_of(const CompiledModel& self) {
  nb::list out;
  for (size_t i = 0; i < pyc_model_state_count(self.get()); ++i) {
    auto info = sized<pyc_value_info>();
    const char* output = nullptr;
    check([&](pyc_error** e) { return pyc_model_state(self.get(), i, &info, &output, e); });
    out.append(nb::make_tuple(port_tuple(port_of(info)), output));
  }
  return out;
}

nb::object get_state(const CompiledModel& self, size_t index) {
  auto info = sized<pyc_value_info>();
  check([&](pyc_error** e) { return pyc_model_state(self.get(), index, &info, nullptr, e); });
  nb::object array = new_array(port_of(info));
  const Borrowed borrowed(array, info.dtype, Access::kWrite);
  {
    const nb::gil_scoped_release released;
    check(
        [&](pyc_error** e) { return pyc_model_state_get(self.get(), index, &borrowed.view(), e); });
  }
  return array;
}

void set_state(const CompiledModel& self, size_t index, nb::handle array) {
  auto info = sized<pyc_value_info>();
  check([&](pyc_error** e) { return pyc_model_state(self.get(), index, &info, nullptr, e); });
  const Borrowed borrowed(array, info.dtype, Access::kRead);
  const nb::gil_scoped_release released;
  check([&](pyc_error** e) { return pyc_model_state_set(self.get(), index, &borrowed.view(), e); });
}

void clear_state(const CompiledModel& self, size_t index) {
  check([&](pyc_error** e) { return pyc_model_state_clear(self.get(), index, e); });
}

}  // namespace

void bind_states(nb::class_<CompiledModel>& model) {
  model.def("states", states_of)
      .def("get_state", get_state)
      .def("set_state", set_state)
      .def("clear_state", clear_state);
}

}  // namespace pyc::python
