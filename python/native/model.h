// Compiled models: what they declare, their runs, what they say of themselves.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "borrow.h"
#include "pyc/pyc.hpp"
#include "values.h"

namespace pyc::python {

// An input or an output as the model declares it.
struct Port {
  std::string name;
  std::string type;  // "f32[batch,3]"
  int32_t kind = PYC_TYPE_UNKNOWN;
  pyc_dtype dtype = PYC_DTYPE_ANY;
  nb::object shape;  // a tuple of int, str (a symbol) or None; None when the rank is not known
};

// pyc_run_stats; copies made before the run entered PyC count as staged too.
using RunStats = pyc_run_stats;

class CompiledModel {
 public:
  using Owner = Handle<pyc_model, pyc_destroy_model>;
  explicit CompiledModel(Owner model);

  // One object per input; `outputs` is None or one object or None per output, each to be filled.
  nb::list run(const nb::list& inputs, nb::handle outputs, RunStats* stats, Form form);

  // The nanoseconds of each step of one run; for models that are not open.
  std::vector<int64_t> profile(const nb::list& inputs);

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  pyc_model* get() const { return model_.get(); }
  bool is_open() const { return is_open_; }

 private:
  using Lent = std::vector<std::optional<Borrowed>>;

  std::vector<pyc_tensor_view> lend_inputs(const nb::list& inputs, Lent& lent) const;
  nb::list make_outputs(nb::handle given, Form form) const;
  nb::object make_output(const Port& port, Form form) const;
  void run_into(const std::vector<pyc_tensor_view>& inputs, const nb::list& outputs,
                RunStats& stats);
  nb::list run_dynamic(const nb::list& inputs, RunStats& stats, Form form);
  nb::list objects_of(pyc_results* results, Form form) const;

  Owner model_;
  bool is_open_ = false;
  bool tensors_only_ = true;  // of the inputs
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
};

Port port_of(const pyc_value_info& info);
nb::tuple port_tuple(const Port& port);
// A new array of numpy's, not filled.
nb::object new_array(const Port& port);
pyc_dtype dtype_named(const std::string& name);

void bind_model(nb::module_& module);
void bind_states(nb::class_<CompiledModel>& model);
void bind_report(nb::module_& module, nb::class_<CompiledModel>& model);
void bind_train(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_watch(nb::module_& module);

// Options as pairs of name and text; "contract" is the text of a contract, whose clauses are added.
using OptionList = std::vector<std::pair<std::string, std::string>>;
CompileOptions options_of(const OptionList& list);

}  // namespace pyc::python
