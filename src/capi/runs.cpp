// Runs of models: into the caller's memory, and into results of their own.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/views.h"
#include "pyc/results.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

struct ThreadViews {
  Views inputs;
  Views outputs;
};

Result<const ThreadViews*> take_views(const pyc_tensor_view* inputs, size_t input_count,
                                      const pyc_tensor_view* outputs, size_t output_count) {
  thread_local ThreadViews views;
  PYC_TRY(views.inputs.set(inputs, input_count, "inputs"));
  PYC_TRY(views.outputs.set(outputs, output_count, "outputs"));
  return &views;
}

// Of the first version of pyc_run_stats, which ended with `allocations`.
constexpr size_t kFirstRunStats = offsetof(pyc_run_stats, value_bytes);

Status write_stats(const runtime::RunStats& measured, pyc_run_stats* stats) {
  if (stats == nullptr) return {};
  pyc_run_stats out{};
  out.wall_ns = measured.wall_ns;
  out.steps = measured.steps;
  out.allocations = measured.allocations;
  out.value_bytes = measured.value_bytes;
  out.value_peak_bytes = measured.value_peak_bytes;
  out.staged_views = measured.staged_views;
  out.staged_bytes = measured.staged_bytes;
  out.copied_bytes = measured.copied_bytes;
  out.recomputed_steps = measured.recomputed_steps;
  out.sent_bytes = measured.sent_bytes;
  out.fetched_bytes = measured.fetched_bytes;
  write_struct(stats, out);
  return {};
}

// Zeros, also when the run is refused early.
Status clear_stats(pyc_run_stats* stats) {
  if (stats == nullptr) return {};
  PYC_TRY(check_struct_size(stats->struct_size, kFirstRunStats, "pyc_run_stats"));
  return write_stats({}, stats);
}

// What was copied because it was not row-major or not aligned.
void count_staged(const runtime::TensorView& view, runtime::RunStats& measured) {
  if (runtime::is_plain(view)) return;
  ++measured.staged_views;
  measured.staged_bytes += runtime::element_bytes(view);
}

// With strict_views: that the view need not be copied.
Status check_strict(const pyc_model& model, const runtime::TensorView& view) {
  if (!model.options.strict_views) return {};
  const auto problem = runtime::why_not_plain(view);
  if (!problem) return {};
  return {problem->code, fmt::format("expected {}, found {}", problem->expected, problem->found)};
}

Result<DynValue> to_strict_value(const pyc_model& model, const runtime::TensorView& view) {
  PYC_ASSIGN(DynValue value, to_value(view));
  PYC_TRY(check_strict(model, view));
  return value;
}

// The caller's tensors as values, copied only where they are not plain. Refuses inputs that no
// tensor can be.
Result<std::vector<DynValue>> to_values(const pyc_model& model,
                                        std::span<const runtime::TensorView> views,
                                        runtime::RunStats& measured) {
  for (const auto& input : model.inputs) {
    const int32_t type = input->info.type;
    if (type != PYC_TYPE_STRINGS && type != PYC_TYPE_SEQUENCE) continue;
    return Status(Code::kUnsupported, fmt::format("input '{}' is {}: pyc_run_model_values takes it",
                                                  input->name, input->type_text))
        .with_node(input->name);
  }
  std::vector<DynValue> values;
  for (size_t i = 0; i < views.size(); ++i) {
    auto value = to_strict_value(model, views[i]);
    if (!value.ok()) {
      const std::string name = i < model.inputs.size() ? model.inputs[i]->name : std::to_string(i);
      return std::move(value)
          .status()
          .with_context(fmt::format("input '{}'", name))
          .with_node(name);
    }
    values.push_back(std::move(*value));
    count_staged(views[i], measured);
  }
  return values;
}

// The caller's values, each of which has to be there.
Result<std::vector<DynValue>> to_values(const pyc_model& model, const pyc_result* const* inputs,
                                        size_t count) {
  PYC_TRY(require_list(inputs, count, "inputs"));
  std::vector<DynValue> values;
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i] != nullptr) {
      values.push_back(inputs[i]->value);
      continue;
    }
    const bool known = i < model.inputs.size();
    const std::string name = known ? model.inputs[i]->name : std::to_string(i);
    return Status(Code::kNullPointer,
                  fmt::format("input '{}': expected {}, found NULL; pyc_result_nothing makes an "
                              "optional without a value",
                              name, known ? model.inputs[i]->type_text : "a value"))
        .with_node(name);
  }
  return values;
}

// `staged` has what was copied for it.
Result<std::vector<DynValue>> run_session(const pyc_model& model, std::span<const DynValue> inputs,
                                          const runtime::RunStats& staged, pyc_run_stats* stats) {
  runtime::RunStats measured;
  auto outputs = model.session->run(inputs, &measured);
  measured.staged_views += staged.staged_views;
  measured.staged_bytes += staged.staged_bytes;
  PYC_TRY(write_stats(measured, stats));
  return outputs;
}

bool inside(const SharedBytes& bytes, const runtime::TensorView& view) {
  const runtime::ByteRange range = runtime::range_of(view);
  const auto at = reinterpret_cast<uintptr_t>(bytes.data());
  return !bytes.empty() && range.begin <= at && at < range.end;
}

// What the caller keeps may not point into the caller's inputs. `copies` of what was there before
// are shared: a sequence may hold one input many times.
using Copies = std::map<std::pair<const std::byte*, size_t>, SharedBytes>;
void own(DynValue& value, std::span<const runtime::TensorView> inputs, Copies& copies) {
  if (value.kind == DynValue::Kind::kSequence) {
    auto items = std::make_shared<std::vector<DynValue>>(*value.items);
    for (DynValue& item : *items) own(item, inputs, copies);
    value.items = std::move(items);
    return;
  }
  if (std::any_of(inputs.begin(), inputs.end(),
                  [&](const runtime::TensorView& view) { return inside(value.bytes, view); })) {
    SharedBytes& copy = copies[{value.bytes.data(), value.bytes.size()}];
    if (copy.empty()) copy = SharedBytes(value.bytes.copy());
    value.bytes = copy;
  }
}

// Copies the result of an open model into the caller's memory.
Status copy_out(const DynValue& value, const std::string& name, const runtime::TensorView& view) {
  if (!value.is_tensor()) {
    return Status(Code::kUnsupported,
                  fmt::format("output '{}' is {}: pyc_run_model_dynamic returns "
                              "it",
                              name, value.to_string()))
        .with_node(name);
  }
  const ir::TensorType found{value.dtype, value.shape};
  if (view.dtype != found.dtype || !std::ranges::equal(view.shape, found.shape)) {
    const ir::TensorType type{view.dtype, {view.shape.begin(), view.shape.end()}};
    return Status(type.dtype != found.dtype ? Code::kDtypeMismatch : Code::kShapeMismatch,
                  fmt::format("output '{}': expected memory for {}, found {}", name,
                              found.to_string(), type.to_string()))
        .with_node(name);
  }
  runtime::scatter(value.bytes.data(), view);
  return {};
}

// Before the run, so that a refusal leaves everything as it was.
Status check_outputs(const pyc_model& model, std::span<const runtime::TensorView> outputs) {
  if (outputs.size() != model.outputs.size()) {
    return {Code::kInvalidArgument,
            fmt::format("outputs: expected {}, found {}", model.outputs.size(), outputs.size())};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model.outputs[i]->name;
    Status status = check_view(outputs[i], true).status();
    if (status.ok()) status = check_strict(model, outputs[i]);
    if (!status.ok()) {
      return std::move(status).with_context(fmt::format("output '{}'", name)).with_node(name);
    }
  }
  return {};
}

Status run_open(const pyc_model& model, const ThreadViews& views, pyc_run_stats* stats) {
  const auto outputs = views.outputs.get();
  PYC_TRY(check_outputs(model, outputs));
  runtime::RunStats staged;
  PYC_ASSIGN(const std::vector<DynValue> values, to_values(model, views.inputs.get(), staged));
  for (const runtime::TensorView& view : outputs) count_staged(view, staged);
  PYC_ASSIGN(const std::vector<DynValue> results, run_session(model, values, staged, stats));
  for (size_t i = 0; i < outputs.size(); ++i) {
    PYC_TRY(copy_out(results[i], model.outputs[i]->name, outputs[i]));
  }
  return {};
}

}  // namespace

pyc_status pyc_run_model(pyc_model* model, const pyc_tensor_view* inputs, size_t input_count,
                         const pyc_tensor_view* outputs, size_t output_count, pyc_run_stats* stats,
                         pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(clear_stats(stats));
    PYC_ASSIGN(const ThreadViews* views, take_views(inputs, input_count, outputs, output_count));
    if (model->session->whole() == nullptr) return run_open(*model, *views, stats);
    runtime::RunStats measured;
    Status status = model->session->run_whole(views->inputs.get(), views->outputs.get(), &measured);
    PYC_TRY(write_stats(measured, stats));
    return status;
  });
}

pyc_status pyc_run_model_dynamic(pyc_model* model, const pyc_tensor_view* inputs,
                                 size_t input_count, pyc_results** results, pyc_run_stats* stats,
                                 pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(require(results, "results"));
    PYC_TRY(clear_stats(stats));
    PYC_ASSIGN(const ThreadViews* views, take_views(inputs, input_count, nullptr, 0));
    runtime::RunStats staged;
    PYC_ASSIGN(const std::vector<DynValue> values, to_values(*model, views->inputs.get(), staged));
    PYC_ASSIGN(std::vector<DynValue> outputs, run_session(*model, values, staged, stats));
    Copies copies;
    for (DynValue& value : outputs) own(value, views->inputs.get(), copies);
    give_results(std::move(outputs), results);
    return {};
  });
}

// Outputs may share the memory of inputs, which lives as long as one of them does.
pyc_status pyc_run_model_values(pyc_model* model, const pyc_result* const* inputs,
                                size_t input_count, pyc_results** results, pyc_run_stats* stats,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(require(results, "results"));
    PYC_TRY(clear_stats(stats));
    PYC_ASSIGN(const std::vector<DynValue> values, to_values(*model, inputs, input_count));
    PYC_ASSIGN(std::vector<DynValue> outputs, run_session(*model, values, {}, stats));
    give_results(std::move(outputs), results);
    return {};
  });
}

pyc_status pyc_profile_model(pyc_model* model, const pyc_tensor_view* inputs, size_t input_count,
                             const pyc_tensor_view* outputs, size_t output_count, int64_t* step_ns,
                             size_t count, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    runtime::Model* const whole = model->session->whole();
    if (whole == nullptr) {
      return {Code::kUnsupported,
              "an open model runs as several programs: there is no one profile"};
    }
    const size_t steps = whole->program().steps.size();
    if (count != steps) {
      return {Code::kInvalidArgument,
              fmt::format("count: expected the {} steps of the model, found {}", steps, count)};
    }
    PYC_TRY(require_list(step_ns, count, "step_ns"));
    PYC_ASSIGN(const ThreadViews* views, take_views(inputs, input_count, outputs, output_count));
    PYC_ASSIGN(const std::vector<int64_t> times,
               whole->profile(views->inputs.get(), views->outputs.get()));
    std::copy(times.begin(), times.end(), step_ns);
    return {};
  });
}
