// Reports on models, and what they measure.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "model.h"
#include "pyc/report.h"
#include "tensor.h"

namespace pyc::python {
namespace {

std::string report_on(const CompiledModel& self, const Graph* graph, const std::string& title,
                      const std::vector<int64_t>& step_ns, double flops_per_ns, double bytes_per_ns,
                      bool html) {
  auto facts = sized<pyc_report_facts>();
  facts.title = title.c_str();
  facts.step_ns = step_ns.data();
  facts.step_ns_count = step_ns.size();
  facts.flops_per_ns = flops_per_ns;
  facts.bytes_per_ns = bytes_per_ns;
  const nb::gil_scoped_release released;
  return take_text([&](char** text, pyc_error** e) {
    return pyc_model_report(self.get(), graph == nullptr ? nullptr : graph->get(), &facts,
                            html ? PYC_REPORT_HTML : PYC_REPORT_JSON, text, e);
  });
}

Tensor random_tensor(const std::string& dtype, const std::vector<int64_t>& shape, uint64_t seed) {
  Tensor out = make_tensor(dtype_named(dtype), shape);
  const pyc_tensor_view view = out.view();
  check([&](pyc_error** e) { return pyc_tensor_fill_random(&view, seed, e); });
  return out;
}

}  // namespace

void bind_report(nb::module_& module, nb::class_<CompiledModel>& model) {
  model.def("profile", &CompiledModel::profile)
      .def("report", report_on, nb::arg("graph").none(), nb::arg("title"), nb::arg("step_ns"),
           nb::arg("flops_per_ns"), nb::arg("bytes_per_ns"), nb::arg("html"));
  module.def("random_tensor", random_tensor);
}

}  // namespace pyc::python
