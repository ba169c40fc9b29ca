#include "model.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "tensor.h"

namespace pyc::python {
namespace {

nb::object shape_of(const pyc_value_info& info) {
  if (info.rank < 0) return nb::none();
  nb::list dims;
  for (int64_t i = 0; i < info.rank; ++i) {
    const char* symbol = info.symbols == nullptr ? "" : info.symbols[i];
    if (info.shape[i] >= 0) {
      dims.append(info.shape[i]);
    } else if (*symbol != '\0') {
      dims.append(symbol);
    } else {
      dims.append(nb::none());
    }
  }
  return nb::tuple(dims);
}

nb::list port_list(const std::vector<Port>& ports) {
  nb::list out;
  for (const Port& port : ports) out.append(port_tuple(port));
  return out;
}

RunStats add_copies(RunStats stats, const std::vector<std::optional<Borrowed>>& lent) {
  for (const auto& one : lent) {
    if (!one->copied()) continue;
    ++stats.staged_views;
    stats.staged_bytes += one->view().bytes;
  }
  return stats;
}

// numpy's `empty`, kept for the life of the process.
nb::handle numpy_empty() {
  static PyObject* empty = nullptr;
  if (empty == nullptr)
    empty = nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr();
  return empty;
}

// An array that a program could not fill in place gets what the run gave.
void copy_into(nb::handle target, nb::handle result, const Port& port) {
  const nb::object array = nb::module_::import_("numpy").attr("asarray")(target);
  if (!array.attr("shape").equal(result.attr("shape"))) {
    const std::string found = nb::cast<std::string>(nb::str(nb::object(array.attr("shape"))));
    const std::string needed = nb::cast<std::string>(nb::str(nb::object(result.attr("shape"))));
    throw Error(PYC_STATUS_SHAPE_MISMATCH,
                "output '" + port.name + "': the run gives " + needed + ", the array has " + found,
                port.name);
  }
  nb::module_::import_("numpy").attr("copyto")(array, result, nb::arg("casting") = "no");
}

}  // namespace

Port port_of(const pyc_value_info& info) {
  const char* type = info.type_text == nullptr ? "" : info.type_text;
  return {info.name, type, info.type, info.dtype, shape_of(info)};
}

nb::tuple port_tuple(const Port& port) {
  const char* dtype = port.dtype == PYC_DTYPE_ANY ? nullptr : pyc_dtype_name(port.dtype);
  return nb::make_tuple(port.name, port.type, dtype, port.shape);
}

nb::object new_array(const Port& port) {
  return numpy_empty()(port.shape, numpy_dtype(port.dtype));
}

CompiledModel::CompiledModel(Owner model)
    : model_(std::move(model)), is_open_(pyc_model_is_open(model_.get()) != 0) {
  auto info = sized<pyc_value_info>();
  for (size_t i = 0; i < pyc_model_input_count(get()); ++i) {
    check([&](pyc_error** e) { return pyc_model_input(get(), i, &info, e); });
    inputs_.push_back(port_of(info));
    tensors_only_ = tensors_only_ && info.type == PYC_TYPE_TENSOR;
  }
  for (size_t i = 0; i < pyc_model_output_count(get()); ++i) {
    check([&](pyc_error** e) { return pyc_model_output(get(), i, &info, e); });
    outputs_.push_back(port_of(info));
  }
}

std::vector<pyc_tensor_view> CompiledModel::lend_inputs(const nb::list& inputs, Lent& lent) const {
  std::vector<pyc_tensor_view> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const pyc_dtype declared = i < inputs_.size() ? inputs_[i].dtype : PYC_DTYPE_ANY;
    lent[i].emplace(inputs[i], declared, Access::kRead);
    views.push_back(lent[i]->view());
  }
  return views;
}

nb::object CompiledModel::make_output(const Port& port, Form form) const {
  if (form != Form::kTensors) return new_array(port);
  return nb::cast(make_tensor(port.dtype, nb::cast<std::vector<int64_t>>(port.shape)));
}

nb::list CompiledModel::make_outputs(nb::handle given, Form form) const {
  nb::list out;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const bool is_given = !given.is_none() && !given[i].is_none();
    out.append(is_given ? nb::object(given[i]) : make_output(outputs_[i], form));
  }
  return out;
}

void CompiledModel::run_into(const std::vector<pyc_tensor_view>& inputs, const nb::list& outputs,
                             RunStats& stats) {
  Lent lent(outputs.size());
  std::vector<pyc_tensor_view> views;
  for (size_t i = 0; i < outputs.size(); ++i) {
    lent[i].emplace(outputs[i], outputs_[i].dtype, Access::kWrite);
    views.push_back(lent[i]->view());
  }
  const nb::gil_scoped_release released;
  check([&](pyc_error** e) {
    return pyc_run_model(get(), inputs.data(), inputs.size(), views.data(), views.size(), &stats,
                         e);
  });
}

nb::list CompiledModel::objects_of(pyc_results* results, Form form) const {
  const std::shared_ptr<pyc_results> owner(results, pyc_results_destroy);
  nb::list out;
  for (size_t i = 0; i < pyc_results_count(results); ++i) {
    const pyc_result* result = nullptr;
    check([&](pyc_error** e) { return pyc_results_get(results, i, &result, e); });
    out.append(object_of(result, owner, form));
  }
  return out;
}

nb::list CompiledModel::run_dynamic(const nb::list& inputs, RunStats& stats, Form form) {
  pyc_results* results = nullptr;
  if (tensors_only_) {
    Lent lent(inputs.size());
    const auto views = lend_inputs(inputs, lent);
    {
      const nb::gil_scoped_release released;
      check([&](pyc_error** e) {
        return pyc_run_model_dynamic(get(), views.data(), views.size(), &results, &stats, e);
      });
    }
    stats = add_copies(stats, lent);
    return objects_of(results, form);
  }
  std::vector<AnyValue> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    values.push_back(value_of(inputs[i], i < inputs_.size() ? inputs_[i].type : ""));
  }
  const auto pointers = AnyValue::pointers(values);
  {
    const nb::gil_scoped_release released;
    check([&](pyc_error** e) {
      return pyc_run_model_values(get(), pointers.data(), pointers.size(), &results, &stats, e);
    });
  }
  return objects_of(results, form);
}

nb::list CompiledModel::run(const nb::list& inputs, nb::handle outputs, RunStats* stats,
                            Form form) {
  if (!outputs.is_none() && nb::len(outputs) != outputs_.size()) {
    throw Error(PYC_STATUS_INVALID_ARGUMENT,
                "the model has " + std::to_string(outputs_.size()) + " outputs, " +
                    std::to_string(nb::len(outputs)) + " arrays were given",
                "");
  }
  auto local = sized<RunStats>();
  nb::list out;
  if (!is_open_ && tensors_only_) {
    Lent lent(inputs.size());
    const auto views = lend_inputs(inputs, lent);
    out = make_outputs(outputs, form);
    run_into(views, out, local);
    local = add_copies(local, lent);
  } else {
    out = run_dynamic(inputs, local, form);
    for (size_t i = 0; !outputs.is_none() && i < outputs_.size(); ++i) {
      if (outputs[i].is_none()) continue;
      copy_into(outputs[i], out[i], outputs_[i]);
      out[i] = outputs[i];
    }
  }
  if (stats != nullptr) *stats = local;
  return out;
}

std::vector<int64_t> CompiledModel::profile(const nb::list& inputs) {
  Lent lent(inputs.size());
  const auto in = lend_inputs(inputs, lent);
  const nb::list arrays = make_outputs(nb::none(), Form::kTensors);
  Lent lent_outputs(arrays.size());
  std::vector<pyc_tensor_view> out;
  for (size_t i = 0; i < arrays.size(); ++i) {
    lent_outputs[i].emplace(arrays[i], outputs_[i].dtype, Access::kWrite);
    out.push_back(lent_outputs[i]->view());
  }
  std::vector<int64_t> step_ns(pyc_model_step_count(get()));
  const nb::gil_scoped_release released;
  check([&](pyc_error** e) {
    return pyc_profile_model(get(), in.data(), in.size(), out.data(), out.size(), step_ns.data(),
                             step_ns.size(), e);
  });
  return step_ns;
}

CompileOptions options_of(const OptionList& list) {
  CompileOptions options;
  for (const auto& [name, value] : list) {
    name == "contract" ? options.contract(value) : options.set(name, value);
  }
  return options;
}

namespace {

CompiledModel compile_file(const std::string& path, const OptionList& list) {
  const CompileOptions options = options_of(list);
  CompiledModel::Owner model;
  {
    const nb::gil_scoped_release released;
    check([&](pyc_error** e) {
      return pyc_compile_model_file(path.c_str(), options.get(), model.put(), e);
    });
  }
  return CompiledModel(std::move(model));
}

CompiledModel compile_bytes(const nb::bytes& data, const OptionList& list) {
  const CompileOptions options = options_of(list);
  CompiledModel::Owner model;
  {
    const char* bytes = data.c_str();
    const size_t size = data.size();
    const nb::gil_scoped_release released;
    check([&](pyc_error** e) {
      return pyc_compile_model_bytes(bytes, size, options.get(), model.put(), e);
    });
  }
  return CompiledModel(std::move(model));
}

nb::dict stats_of(const CompiledModel& self) {
  auto stats = sized<pyc_model_stats>();
  check([&](pyc_error** e) { return pyc_model_get_stats(self.get(), &stats, e); });
  nb::dict out;
  out["runs"] = stats.runs;
  out["failed_runs"] = stats.failed_runs;
  out["contexts"] = stats.contexts;
  out["compile_ns"] = stats.compile_ns;
  out["cache_hit"] = stats.cache_hit != 0;
  out["segments_compiled"] = stats.segments_compiled;
  out["segments_run"] = stats.segments_run;
  out["host_calls"] = stats.host_calls;
  out["fallback_count"] = stats.fallback_count;
  return out;
}

nb::dict memory_of(const CompiledModel& self) {
  auto report = sized<pyc_memory_report>();
  check([&](pyc_error** e) { return pyc_model_get_memory(self.get(), &report, e); });
  nb::dict out;
  out["peak_bytes"] = report.peak_bytes;
  out["input_bytes"] = report.input_bytes;
  out["parameter_bytes"] = report.parameter_bytes;
  out["output_bytes"] = report.output_bytes;
  out["arena_bytes"] = report.arena_bytes;
  out["scratch_bytes"] = report.scratch_bytes;
  out["staging_bytes"] = report.staging_bytes;
  out["state_bytes"] = report.state_bytes;
  out["mapped_bytes"] = report.mapped_bytes;
  return out;
}

std::string decision_log(const CompiledModel& self) {
  return take_text(
      [&](char** json, pyc_error** e) { return pyc_model_last_decision_log(self.get(), json, e); });
}

}  // namespace

void bind_model(nb::module_& module) {
  nb::enum_<Form>(module, "Form")
      .value("ARRAYS", Form::kArrays)
      .value("VIEWS", Form::kViews)
      .value("TENSORS", Form::kTensors);
  nb::class_<RunStats>(module, "RunStats")
      .def("__init__", [](RunStats* self) { new (self) RunStats(sized<RunStats>()); })
      .def_ro("wall_ns", &RunStats::wall_ns)
      .def_ro("steps", &RunStats::steps)
      .def_ro("allocations", &RunStats::allocations)
      .def_ro("value_bytes", &RunStats::value_bytes)
      .def_ro("value_peak_bytes", &RunStats::value_peak_bytes)
      .def_ro("staged_views", &RunStats::staged_views)
      .def_ro("staged_bytes", &RunStats::staged_bytes)
      .def_ro("copied_bytes", &RunStats::copied_bytes);
  nb::class_<CompiledModel> model(module, "CompiledModel");
  model
      .def("run", &CompiledModel::run, nb::arg("inputs"), nb::arg("outputs").none(),
           nb::arg("stats").none(), nb::arg("form"))
      .def("inputs", [](const CompiledModel& self) { return port_list(self.inputs()); })
      .def("outputs", [](const CompiledModel& self) { return port_list(self.outputs()); })
      .def_prop_ro("is_open", &CompiledModel::is_open)
      .def("stats", stats_of)
      .def("memory", memory_of)
      .def("decision_log", decision_log);
  bind_states(model);
  bind_report(module, model);
  module.def("compile_file", compile_file);
  module.def("compile_bytes", compile_bytes);
}

}  // namespace pyc::python
