// Training: steps over arrays or the rows of a file, checkpoints, the trained graph.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <mutex>

#include "borrow.h"
#include "model.h"
#include "pyc/train.hpp"

namespace pyc::python {
namespace {

// Trainers and data are used by one thread at a time: others wait, without the GIL.
struct NativeTrainer {
  NativeTrainer(const Graph& graph, const TrainOptions& train, const CompileOptions& compile)
      : trainer(graph, train, compile), batch(trainer.batch()) {}
  Trainer trainer;
  std::vector<pyc_value_info> batch;
  mutable std::mutex mutex;
};
struct NativeData {
  explicit NativeData(TrainData rows) : data(std::move(rows)) {}
  TrainData data;
  std::mutex mutex;
};

std::unique_ptr<NativeTrainer> make_trainer(const Graph& graph, const OptionList& train,
                                            const OptionList& compile) {
  TrainOptions options;
  for (const auto& [name, value] : train) options.set(name, value);
  const CompileOptions compile_options = options_of(compile);
  const nb::gil_scoped_release released;
  return std::make_unique<NativeTrainer>(graph, options, compile_options);
}

// The arrays of one batch, borrowed.
struct Batch {
  Batch(const NativeTrainer& trainer, const nb::list& arrays) : lent(arrays.size()) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      const pyc_dtype declared = i < trainer.batch.size() ? trainer.batch[i].dtype : PYC_DTYPE_ANY;
      lent[i].emplace(arrays[i], declared, Access::kRead);
      views.push_back(lent[i]->view());
    }
  }
  std::vector<std::optional<Borrowed>> lent;
  std::vector<pyc_tensor_view> views;
};

nb::tuple tuple_of(const pyc_train_result& result) {
  return nb::make_tuple(result.loss, result.norm, result.step, result.skipped != 0);
}

nb::tuple step(NativeTrainer& self, const nb::list& arrays) {
  const Batch batch(self, arrays);
  pyc_train_result result;
  {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(self.mutex);
    result = self.trainer.step(batch.views);
  }
  return tuple_of(result);
}

nb::tuple step_data(NativeTrainer& self, NativeData& data) {
  pyc_train_result result;
  {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(self.mutex, data.mutex);
    result = self.trainer.step(data.data);
  }
  return tuple_of(result);
}

double evaluate(NativeTrainer& self, const nb::list& arrays) {
  const Batch batch(self, arrays);
  const nb::gil_scoped_release released;
  const std::scoped_lock lock(self.mutex);
  return self.trainer.evaluate(batch.views);
}

double evaluate_data(NativeTrainer& self, NativeData& data) {
  const nb::gil_scoped_release released;
  const std::scoped_lock lock(self.mutex, data.mutex);
  return self.trainer.evaluate(data.data);
}

int64_t steps_done(const NativeTrainer& self) {
  const nb::gil_scoped_release released;
  const std::scoped_lock lock(self.mutex);
  return self.trainer.steps_done();
}

nb::list batch_of(const NativeTrainer& self) {
  nb::list out;
  for (const pyc_value_info& info : self.batch) out.append(port_tuple(port_of(info)));
  return out;
}

pyc_value_info state_at(const NativeTrainer& self, size_t index, int32_t* role) {
  auto info = sized<pyc_value_info>();
  check([&](pyc_error** e) { return pyc_train_state(self.trainer.get(), index, &info, role, e); });
  return info;
}

// Each value of the state, and whether it is a parameter.
nb::list state_of(const NativeTrainer& self) {
  nb::list out;
  for (size_t i = 0; i < pyc_train_state_count(self.trainer.get()); ++i) {
    int32_t role = PYC_TRAIN_STEP;
    const Port port = port_of(state_at(self, i, &role));
    out.append(nb::make_tuple(port_tuple(port), role == PYC_TRAIN_PARAMETER));
  }
  return out;
}

nb::object get_state(const NativeTrainer& self, size_t index) {
  const pyc_value_info info = state_at(self, index, nullptr);
  nb::object array = new_array(port_of(info));
  const Borrowed borrowed(array, info.dtype, Access::kWrite);
  const pyc_tensor_view& view = borrowed.view();
  {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(self.mutex);
    check([&](pyc_error** e) {
      return pyc_train_get_state(self.trainer.get(), index, view.data,
                                 static_cast<size_t>(view.bytes), e);
    });
  }
  return array;
}

void refuse_other_type(const pyc_value_info& expected, const pyc_tensor_view& found) {
  const std::string name = expected.name;
  if (found.dtype != expected.dtype) {
    throw Error(PYC_STATUS_DTYPE_MISMATCH,
                "'" + name + "': expected " + pyc_dtype_name(expected.dtype) + ", found " +
                    pyc_dtype_name(found.dtype),
                name);
  }
  const Shape needed(expected.shape, expected.shape + expected.rank);
  const Shape given(found.shape, found.shape + found.rank);
  if (needed == given) return;
  const auto text = [](const Shape& shape) {
    return nb::cast<std::string>(nb::str(nb::tuple(nb::cast(shape))));
  };
  throw Error(PYC_STATUS_SHAPE_MISMATCH,
              "'" + name + "': expected the shape " + text(needed) + ", found " + text(given),
              name);
}

void set_state(NativeTrainer& self, size_t index, nb::handle array) {
  const pyc_value_info info = state_at(self, index, nullptr);
  const Borrowed borrowed(array, info.dtype, Access::kRead);
  refuse_other_type(info, borrowed.view());
  const AnyValue plain(borrowed.view());  // row-major, whatever strides it was made from
  const pyc_tensor_view view = plain.tensor();
  const nb::gil_scoped_release released;
  const std::scoped_lock lock(self.mutex);
  check([&](pyc_error** e) {
    return pyc_train_set_state(self.trainer.get(), index,
                               static_cast<const char*>(view.data) + view.byte_offset,
                               static_cast<size_t>(view.bytes), e);
  });
}

Graph graph_of(const NativeTrainer& self) {
  const nb::gil_scoped_release released;
  const std::scoped_lock lock(self.mutex);
  return self.trainer.graph();
}

std::string digest_of(const NativeTrainer& self) {
  const nb::gil_scoped_release released;
  const std::scoped_lock lock(self.mutex);
  return self.trainer.digest();
}

std::string save(const NativeTrainer& self, const std::string& folder, int64_t keep,
                 NativeData* data) {
  const nb::gil_scoped_release released;
  const std::scoped_lock lock(self.mutex);
  if (data == nullptr) return self.trainer.save(folder, keep);
  const std::scoped_lock data_lock(data->mutex);
  return self.trainer.save(folder, keep, &data->data);
}

std::string resume(NativeTrainer& self, const std::string& folder, NativeData* data) {
  const nb::gil_scoped_release released;
  const std::scoped_lock lock(self.mutex);
  if (data == nullptr) return self.trainer.resume(folder);
  const std::scoped_lock data_lock(data->mutex);
  return self.trainer.resume(folder, &data->data);
}

std::unique_ptr<NativeData> load_data(const NativeTrainer& trainer, const std::string& path,
                                      const std::optional<uint64_t>& seed) {
  const nb::gil_scoped_release released;
  return std::make_unique<NativeData>(seed ? TrainData(trainer.trainer, path, *seed)
                                           : TrainData(trainer.trainer, path));
}

nb::dict data_info(NativeData& self) {
  pyc_train_data_info info;
  {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(self.mutex);
    info = self.data.info();
  }
  nb::dict out;
  out["rows"] = info.rows;
  out["batch_rows"] = info.batch_rows;
  out["batches"] = info.batches;
  out["position"] = info.position;
  out["digest"] = info.digest;
  return out;
}

nb::list train_options() {
  nb::list out;
  for (size_t i = 0; i < pyc_train_option_count(); ++i) {
    auto info = sized<pyc_option_info>();
    check([&](pyc_error** e) { return pyc_train_option(i, &info, e); });
    out.append(nb::make_tuple(info.name, info.help, info.initial));
  }
  return out;
}

}  // namespace

void bind_train(nb::module_& module) {
  nb::class_<NativeData>(module, "TrainData").def("info", data_info);
  nb::class_<NativeTrainer>(module, "Trainer")
      .def("batch", batch_of)
      .def("step", step)
      .def("step_data", step_data)
      .def("evaluate", evaluate)
      .def("evaluate_data", evaluate_data)
      .def("steps_done", steps_done)
      .def("state", state_of)
      .def("get_state", get_state)
      .def("set_state", set_state)
      .def("graph", graph_of)
      .def("digest", digest_of)
      .def("save", save, nb::arg("folder"), nb::arg("keep"), nb::arg("data").none())
      .def("resume", resume, nb::arg("folder"), nb::arg("data").none())
      .def("load_data", load_data, nb::arg("path"), nb::arg("seed").none());
  module.def("make_trainer", make_trainer);
  module.def("train_options", train_options);
}

}  // namespace pyc::python
