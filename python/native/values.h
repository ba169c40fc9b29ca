// Values of any kind between Python and PyC: arrays, strings, lists for sequences, None.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string_view>

#include "pyc/values.hpp"

namespace pyc::python {

namespace nb = nanobind;

// How outputs are handed out.
enum class Form {
  kArrays,  // numpy arrays of their own, which may be written to
  kViews,   // numpy arrays over the result where it has memory of its own
  kTensors  // pyc.Tensor, for which no numpy is needed
};

// Copies what the model declares as `type` ("f32[batch,3]", "sequence(string[?])").
AnyValue value_of(nb::handle object, std::string_view type);

// `owner` keeps the result's memory.
nb::object object_of(const pyc_result* result, const std::shared_ptr<const void>& owner, Form form);

}  // namespace pyc::python
