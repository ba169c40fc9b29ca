#include "pyc/train.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/json.h"
#include "capi/options.h"
#include "capi/views.h"
#include "io/named_tensors.h"
#include "train/checkpoint.h"
#include "train/data.h"
#include "train/options.h"
#include "train/trainer.h"

using namespace pyc;
using namespace pyc::capi;

struct pyc_train_options {
  train::StepSpec spec;
};

struct pyc_trainer {
  std::unique_ptr<train::Trainer> trainer;
  Views batch;
};

struct pyc_train_data {
  train::Dataset rows;
  int64_t position = 0;
};

namespace {

std::unique_ptr<const ShownOption> show_train(const train::TrainOption& option) {
  auto out = std::make_unique<ShownOption>();
  out->name = option.name;
  out->help = option.help;
  out->initial = option.text(train::StepSpec());
  if (option.words != nullptr) {
    for (const std::string_view word : option.words()) out->words.emplace_back(word);
  }
  out->point();
  out->info.kind = option.number ? PYC_OPTION_NUMBER : static_cast<int32_t>(option.kind);
  out->info.effect = PYC_OPTION_PROGRAM;
  out->info.offer = PYC_OPTION_EVERYWHERE;
  out->info.other_bits = 1;
  out->info.lo = 0;
  out->info.hi = INT64_MAX;
  return out;
}

const std::vector<std::unique_ptr<const ShownOption>>& shown_train_options() {
  static const auto shown = [] {
    std::vector<std::unique_ptr<const ShownOption>> all;
    for (const train::TrainOption& option : train::train_options()) {
      all.push_back(show_train(option));
    }
    return all;
  }();
  return shown;
}

// Both halves of a step over data: that there is room for the result, and the result.
Status check_result(const pyc_train_result* result) {
  if (result == nullptr) return {};
  return check_struct_size(result->struct_size, sizeof(pyc_train_result), "pyc_train_result");
}

// `batch` is what Trainer::step takes.
template <class Batch>
Status step_over(pyc_trainer* trainer, const Batch& batch, pyc_train_result* result) {
  PYC_ASSIGN(const train::StepResult done, trainer->trainer->step(batch));
  if (result == nullptr) return {};
  pyc_train_result out{};
  out.loss = done.loss;
  out.norm = done.norm;
  out.step = trainer->trainer->steps_done();
  out.skipped = done.skipped ? 1 : 0;
  write_struct(result, out);
  return {};
}

// Without data the steps done stand for its place.
train::DataPlace place_of(const pyc_trainer* trainer, const pyc_train_data* data) {
  if (data == nullptr) return {0, trainer->trainer->steps_done(), ""};
  return {data->rows.seed().value_or(0), data->position, data->rows.digest()};
}

std::string resume_report(const std::optional<train::Resumed>& from, int64_t step) {
  JsonWriter json;
  json.begin_object();
  json.key("checkpoint");
  from ? json.text(from->path) : json.null();
  json.key("step").integer(step);
  json.key("passed_over").begin_array();
  if (from) {
    for (const std::string& file : from->passed_over) json.text(file);
  }
  json.end_array().end_object();
  return std::move(json).take();
}

}  // namespace

pyc_status pyc_train_options_create(pyc_train_options** options, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    *options = new pyc_train_options();
    return {};
  });
}

void pyc_train_options_destroy(pyc_train_options* options) { delete options; }

pyc_status pyc_train_options_set(pyc_train_options* options, const char* name, const char* value,
                                 pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    PYC_TRY(require(name, "name"));
    PYC_TRY(require(value, "value"));
    return train::set_train_option(options->spec, name, value);
  });
}

pyc_status pyc_train_options_get(const pyc_train_options* options, const char* name, char** value,
                                 pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(options, "options"));
    PYC_TRY(require(name, "name"));
    PYC_ASSIGN(const std::string text, train::train_option_text(options->spec, name));
    return give_text(text, value);
  });
}

size_t pyc_train_option_count(void) {
  size_t count = 0;
  guard(nullptr, [&]() -> Status {
    count = shown_train_options().size();
    return {};
  });
  return count;
}

pyc_status pyc_train_option(size_t index, pyc_option_info* info, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_option_info", sizeof(pyc_option_info)));
    PYC_TRY(require_index(index, shown_train_options().size(), "training option"));
    write_struct(info, shown_train_options()[index]->info);
    return {};
  });
}

pyc_status pyc_train_create(const pyc_graph* graph, const pyc_train_options* options,
                            const pyc_compile_options* compile, pyc_trainer** trainer,
                            pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(trainer, "trainer"));
    const train::StepSpec spec = options == nullptr ? train::StepSpec() : options->spec;
    PYC_ASSIGN(auto made, train::Trainer::create(graph->graph(), spec, to_options(compile)));
    *trainer = new pyc_trainer{std::move(made), {}};
    return {};
  });
}

void pyc_train_destroy(pyc_trainer* trainer) { delete trainer; }

size_t pyc_train_batch_count(const pyc_trainer* trainer) {
  return trainer == nullptr ? 0 : trainer->trainer->batch().size();
}

pyc_status pyc_train_batch(const pyc_trainer* trainer, size_t index, pyc_value_info* info,
                           pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    return describe(trainer->trainer->batch(), index, PYC_VALUE_INPUT, info);
  });
}

pyc_status pyc_train_step(pyc_trainer* trainer, const pyc_tensor_view* batch, size_t count,
                          pyc_train_result* result, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(check_result(result));
    PYC_TRY(trainer->batch.set(batch, count, "batch"));
    return step_over(trainer, trainer->batch.get(), result);
  });
}

pyc_status pyc_train_evaluate(pyc_trainer* trainer, const pyc_tensor_view* batch, size_t count,
                              double* loss, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require(loss, "loss"));
    PYC_TRY(trainer->batch.set(batch, count, "batch"));
    PYC_ASSIGN(*loss, trainer->trainer->evaluate(trainer->batch.get()));
    return {};
  });
}

int64_t pyc_train_steps_done(const pyc_trainer* trainer) {
  return trainer == nullptr ? 0 : trainer->trainer->steps_done();
}

size_t pyc_train_state_count(const pyc_trainer* trainer) {
  return trainer == nullptr ? 0 : trainer->trainer->state().size();
}

pyc_status pyc_train_state(const pyc_trainer* trainer, size_t index, pyc_value_info* info,
                           int32_t* role, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(check_out_struct(info, "pyc_value_info", kFirstValueInfo));
    PYC_TRY(require_index(index, trainer->trainer->state().size(), "state"));
    const train::StateValue& value = trainer->trainer->state()[index];
    write_struct(info, value_info(value.name, value.type.dtype, value.type.shape,
                                  value.type.bytes(), PYC_VALUE_INPUT));
    if (role != nullptr) *role = static_cast<int32_t>(value.role);
    return {};
  });
}

pyc_status pyc_train_get_state(const pyc_trainer* trainer, size_t index, void* data, size_t bytes,
                               pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require_list(data, bytes, "data"));
    PYC_TRY(require_index(index, trainer->trainer->state().size(), "state"));
    const std::span<const std::byte> elements = trainer->trainer->bytes(index);
    if (elements.size() != bytes) {
      return {Code::kSizeMismatch,
              fmt::format("state '{}': expected {} bytes, found {}",
                          trainer->trainer->state()[index].name, elements.size(), bytes)};
    }
    std::copy(elements.begin(), elements.end(), static_cast<std::byte*>(data));
    return {};
  });
}

pyc_status pyc_train_set_state(pyc_trainer* trainer, size_t index, const void* data, size_t bytes,
                               pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require_list(data, bytes, "data"));
    PYC_TRY(require_index(index, trainer->trainer->state().size(), "state"));
    return trainer->trainer->set(index, {static_cast<const std::byte*>(data), bytes});
  });
}

pyc_status pyc_train_graph(const pyc_trainer* trainer, pyc_graph** graph, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require(graph, "graph"));
    return give_graph(trainer->trainer->trained(), graph);
  });
}

pyc_status pyc_train_step_graph(const pyc_trainer* trainer, size_t index, pyc_graph** graph,
                                char** states, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(states, "states"));
    const std::vector<train::StepGraph> made = trainer->trainer->graphs();
    PYC_TRY(require_index(index, made.size(), "graph of the step"));
    std::string pairs;
    for (const auto& [input, output] : made[index].states) {
      pairs += fmt::format("{}={}\n", input, output);
    }
    PYC_TRY(give_text(pairs, states));
    return give_graph(*made[index].graph, graph);
  });
}

pyc_status pyc_train_get_option(const pyc_trainer* trainer, const char* name, char** value,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require(name, "name"));
    PYC_ASSIGN(const std::string text, train::train_option_text(trainer->trainer->spec(), name));
    return give_text(text, value);
  });
}

pyc_status pyc_train_digest(const pyc_trainer* trainer, char** text, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    return give_text(trainer->trainer->weights_digest().hex(), text);
  });
}

pyc_status pyc_train_data_load(const pyc_trainer* trainer, const char* path, int32_t shuffled,
                               uint64_t seed, pyc_train_data** data, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require(path, "path"));
    PYC_TRY(require(data, "data"));
    PYC_ASSIGN(std::vector<io::NamedTensor> arrays, io::read_named_tensors(path));
    auto rows = train::Dataset::create(std::move(arrays), trainer->trainer->batch(),
                                       shuffled != 0 ? std::optional(seed) : std::nullopt);
    if (!rows.ok()) return std::move(rows).status().with_context(path);
    *data = new pyc_train_data{std::move(*rows)};
    return {};
  });
}

void pyc_train_data_destroy(pyc_train_data* data) { delete data; }

pyc_status pyc_train_data_get_info(const pyc_train_data* data, pyc_train_data_info* info,
                                   pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(data, "data"));
    PYC_TRY(check_out_struct(info, "pyc_train_data_info", sizeof(pyc_train_data_info)));
    pyc_train_data_info out{};
    out.rows = data->rows.rows();
    out.batch_rows = data->rows.batch_rows();
    out.batches = data->rows.batches();
    out.position = data->position;
    out.digest = data->rows.digest().c_str();
    write_struct(info, out);
    return {};
  });
}

pyc_status pyc_train_step_data(pyc_trainer* trainer, pyc_train_data* data, pyc_train_result* result,
                               pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require(data, "data"));
    PYC_TRY(check_result(result));
    const train::MicroBatches next = [&](int64_t i) {
      return data->rows.batch(data->position + i);
    };
    PYC_TRY(step_over(trainer, next, result));
    data->position += trainer->trainer->spec().accumulate;
    return {};
  });
}

pyc_status pyc_train_evaluate_data(pyc_trainer* trainer, pyc_train_data* data, double* loss,
                                   pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require(data, "data"));
    PYC_TRY(require(loss, "loss"));
    double sum = 0.0;
    for (int64_t i = 0; i < data->rows.batches(); ++i) {
      PYC_ASSIGN(const double one, trainer->trainer->evaluate(data->rows.batch(i)));
      sum += one;
    }
    *loss = sum / static_cast<double>(data->rows.batches());
    return {};
  });
}

pyc_status pyc_train_save(const pyc_trainer* trainer, const pyc_train_data* data,
                          const char* folder, int64_t keep, char** path, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require(folder, "folder"));
    PYC_ASSIGN(const std::string written,
               train::save_checkpoint(folder, *trainer->trainer, place_of(trainer, data), keep));
    return path == nullptr ? Status() : give_text(written, path);
  });
}

pyc_status pyc_train_resume(pyc_trainer* trainer, pyc_train_data* data, const char* folder,
                            char** report, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(trainer, "trainer"));
    PYC_TRY(require(folder, "folder"));
    PYC_TRY(require(report, "report"));
    PYC_ASSIGN(const auto from,
               train::resume_checkpoint(folder, *trainer->trainer, place_of(trainer, data)));
    if (from && data != nullptr) data->position = from->place.position;
    return give_text(resume_report(from, trainer->trainer->steps_done()), report);
  });
}

pyc_status pyc_train_last_checkpoint(const char* folder, int64_t* step, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(folder, "folder"));
    PYC_TRY(require(step, "step"));
    PYC_ASSIGN(const std::vector<int64_t> steps, train::checkpoint_steps(folder));
    *step = steps.empty() ? -1 : steps.back();
    return {};
  });
}
