#include <cstddef>
#include <mutex>
#include <set>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/options.h"
#include "model_file/load.h"
#include "pyc/compiler_api.h"
#include "session/cache.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

// Models that were made and not destroyed, so that destroying one twice does no harm.
class LiveModels {
 public:
  void add(pyc_model* model) {
    const std::lock_guard lock(mutex_);
    models_.insert(model);
  }
  bool remove(pyc_model* model) {
    const std::lock_guard lock(mutex_);
    return models_.erase(model) == 1;
  }

 private:
  std::mutex mutex_;
  std::set<pyc_model*> models_;
};

// Of the first version of pyc_model_stats, which ended with `reserved`.
constexpr size_t kFirstModelStats = offsetof(pyc_model_stats, passes_ns);
// Of the first version of pyc_memory_report, which ended with `measured_arena_bytes`.
constexpr size_t kFirstMemoryReport = offsetof(pyc_memory_report, staging_bytes);

LiveModels& live_models() {
  static LiveModels instance;
  return instance;
}

Status compile(Result<model_file::LoadedModel> loaded, const pyc_compile_options* options,
               pyc_model** out) {
  PYC_TRY(require(out, "model"));
  if (!loaded.ok()) return std::move(loaded).status();
  driver::CompileOptions chosen = to_options(options);
  const open::ShapeChoice shapes = to_shapes(options);
  auto session = model_file::make_session(*loaded, shapes, chosen);
  return give_model(std::move(session), std::move(chosen), out);
}

int32_t type_number(open::OpenType::Kind kind) {
  switch (kind) {
    case open::OpenType::Kind::kTensor:
      return PYC_TYPE_TENSOR;
    case open::OpenType::Kind::kStrings:
      return PYC_TYPE_STRINGS;
    case open::OpenType::Kind::kSequence:
      return PYC_TYPE_SEQUENCE;
    case open::OpenType::Kind::kOptional:
      return PYC_TYPE_OPTIONAL;
    case open::OpenType::Kind::kUnknown:
      return PYC_TYPE_UNKNOWN;
  }
  return PYC_TYPE_UNKNOWN;
}

int64_t bytes_of(const open::OpenType& type, const std::vector<int64_t>& shape) {
  if (!type.is_static()) return -1;
  const auto bytes = tensor_bytes(*type.dtype, shape);
  return bytes.ok() ? *bytes : -1;
}

std::unique_ptr<const Declared> declare(const open::OpenValue& value, int32_t kind) {
  auto out = std::make_unique<Declared>();
  out->name = value.name;
  out->type_text = value.type.to_string();
  const bool ranked = value.type.shape.has_value();
  if (ranked) {
    for (const open::OpenType::Dim& d : *value.type.shape) {
      out->shape.push_back(d.value < 0 ? -1 : d.value);
      out->symbols.push_back(d.value < 0 ? d.symbol : "");
    }
  }
  for (const std::string& symbol : out->symbols) out->symbol_pointers.push_back(symbol.c_str());
  pyc_value_info& info = out->info;
  info.name = out->name.c_str();
  info.shape = out->shape.data();
  info.rank = ranked ? static_cast<int64_t>(out->shape.size()) : -1;
  info.bytes = bytes_of(value.type, out->shape);
  const bool numbers = value.type.kind == open::OpenType::Kind::kTensor && value.type.dtype;
  info.dtype = numbers ? static_cast<pyc_dtype>(*value.type.dtype) : PYC_DTYPE_ANY;
  info.kind = kind;
  info.type = type_number(value.type.kind);
  info.symbols = ranked ? out->symbol_pointers.data() : nullptr;
  info.type_text = out->type_text.c_str();
  return out;
}

}  // namespace

namespace pyc::capi {

std::vector<std::unique_ptr<const Declared>> declare(std::span<const open::OpenValue> values,
                                                     int32_t kind) {
  std::vector<std::unique_ptr<const Declared>> out;
  for (const open::OpenValue& value : values) out.push_back(::declare(value, kind));
  return out;
}

Status describe(std::span<const std::unique_ptr<const Declared>> values, size_t index,
                std::string_view what, pyc_value_info* info) {
  PYC_TRY(check_out_struct(info, "pyc_value_info", kFirstValueInfo));
  PYC_TRY(require_index(index, values.size(), what));
  write_struct(info, values[index]->info);
  return {};
}

Status describe(std::span<const runtime::IoSpec> specs, size_t index, int32_t kind,
                pyc_value_info* info) {
  PYC_TRY(check_out_struct(info, "pyc_value_info", kFirstValueInfo));
  PYC_TRY(require_index(index, specs.size(), kind == PYC_VALUE_INPUT ? "input" : "output"));
  const runtime::IoSpec& spec = specs[index];
  write_struct(info, value_info(spec.name, spec.dtype, spec.shape, spec.bytes, kind));
  return {};
}

Status give_model(Result<std::unique_ptr<session::Session>> session, driver::CompileOptions options,
                  pyc_model** out) {
  PYC_TRY(require(out, "model"));
  if (!session.ok()) return std::move(session).status();
  auto handle = std::make_unique<pyc_model>();
  handle->session = std::move(*session);
  handle->options = std::move(options);
  handle->options.device = handle->session->device();
  handle->inputs = declare(handle->session->inputs(), PYC_VALUE_INPUT);
  handle->outputs = declare(handle->session->outputs(), PYC_VALUE_RESULT);
  live_models().add(handle.get());
  *out = handle.release();
  return {};
}

}  // namespace pyc::capi

pyc_status pyc_compile_model(const pyc_graph* graph, const pyc_compile_options* options,
                             pyc_model** model, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(model, "model"));
    const driver::CompileOptions chosen = to_options(options);
    return give_model(session::Session::create(ir::Graph(graph->graph()), chosen), chosen, model);
  });
}

pyc_status pyc_compile_model_bytes(const void* data, size_t size,
                                   const pyc_compile_options* options, pyc_model** model,
                                   pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require_list(data, size, "data"));
    return compile(model_file::load_model({static_cast<const char*>(data), size}), options, model);
  });
}

pyc_status pyc_compile_model_file(const char* path, const pyc_compile_options* options,
                                  pyc_model** model, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(path, "path"));
    return compile(model_file::load_model_file(path), options, model);
  });
}

void pyc_destroy_model(pyc_model* model) {
  guard(nullptr, [&]() -> Status {
    if (model != nullptr && live_models().remove(model)) delete model;
    return {};
  });
}

int32_t pyc_model_is_open(const pyc_model* model) {
  return model != nullptr && model->session->whole() == nullptr ? 1 : 0;
}

size_t pyc_model_input_count(const pyc_model* model) {
  return model == nullptr ? 0 : model->inputs.size();
}

size_t pyc_model_output_count(const pyc_model* model) {
  return model == nullptr ? 0 : model->outputs.size();
}

pyc_status pyc_model_input(const pyc_model* model, size_t index, pyc_value_info* info,
                           pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    return describe(model->inputs, index, "input", info);
  });
}

pyc_status pyc_model_output(const pyc_model* model, size_t index, pyc_value_info* info,
                            pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    return describe(model->outputs, index, "output", info);
  });
}

pyc_status pyc_model_get_stats(const pyc_model* model, pyc_model_stats* stats, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(check_out_struct(stats, "pyc_model_stats", kFirstModelStats));
    const session::SessionStats s = model->session->stats();
    pyc_model_stats out{};
    out.runs = s.runs;
    out.failed_runs = s.failed_runs;
    out.guard_miss_count = s.guard_misses;
    out.fallback_count = s.fallbacks;
    out.contexts = s.contexts;
    out.compile_ns = s.compile_ns;
    out.cache_hit = s.cache_hit ? 1 : 0;
    out.passes_ns = s.compile.passes_ns;
    out.lower_ns = s.compile.lower_ns;
    out.select_ns = s.compile.select_ns;
    out.plan_ns = s.compile.plan_ns;
    out.code_ns = s.compile.code_ns;
    out.assemble_ns = s.compile.assemble_ns;
    out.kernels = s.compile.kernels;
    out.distinct_kernels = s.compile.distinct_kernels;
    out.slowest_kernel_ns = s.compile.slowest_kernel_ns;
    out.segments_compiled = s.segments_compiled;
    out.segments_run = s.segments_run;
    out.host_calls = s.host_calls;
    write_struct(stats, out);
    return {};
  });
}

pyc_status pyc_model_get_memory(const pyc_model* model, pyc_memory_report* report,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(check_out_struct(report, "pyc_memory_report", kFirstMemoryReport));
    const runtime::MemoryReport m = model->session->memory();
    const auto of_class = [&](BufferClass c) { return m.class_bytes[static_cast<size_t>(c)]; };
    pyc_memory_report out{};
    out.peak_bytes = m.peak_bytes;
    out.input_bytes = of_class(BufferClass::kHostInput);
    out.parameter_bytes = of_class(BufferClass::kParameter);
    out.temporary_bytes = of_class(BufferClass::kTemporary);
    out.output_bytes = of_class(BufferClass::kOutput);
    out.workspace_bytes = of_class(BufferClass::kWorkspace);
    out.arena_bytes = m.arena_bytes;
    out.scratch_bytes = m.scratch_bytes;
    out.measured_arena_bytes = m.measured_arena_bytes;
    out.staging_bytes = m.staging_bytes;
    out.state_bytes = of_class(BufferClass::kState);
    out.mapped_bytes = of_class(BufferClass::kMapped);
    const runtime::Model* whole = model->session->whole();
    out.code_bytes = whole == nullptr ? 0 : session::code_bytes(whole->program());
    out.kept_program_bytes = session::cache_bytes();
    write_struct(report, out);
    return {};
  });
}

size_t pyc_model_step_count(const pyc_model* model) {
  return model == nullptr || pyc_model_is_open(model) != 0
             ? 0
             : model->session->whole()->program().steps.size();
}

pyc_status pyc_model_step(const pyc_model* model, size_t index, pyc_step_info* info,
                          pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(check_out_struct(info, "pyc_step_info", sizeof(pyc_step_info)));
    PYC_TRY(require_index(index, pyc_model_step_count(model), "step"));
    const auto& steps = model->session->whole()->program().steps;
    pyc_step_info out{};
    out.name = steps[index].name.c_str();
    out.flops = steps[index].flops;
    out.bytes_moved = steps[index].bytes_moved;
    out.parallel = model->session->whole()->engine().parallel(index);
    write_struct(info, out);
    return {};
  });
}

pyc_status pyc_dump(const pyc_graph* graph, const pyc_compile_options* options, const char* stage,
                    char** text, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(stage, "stage"));
    const driver::CompileOptions chosen = to_options(options);
    PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(graph->graph()));
    PYC_ASSIGN(const std::string dumped, driver::dump(std::move(given), chosen, stage));
    return give_text(dumped, text);
  });
}

pyc_status pyc_cache_get_stats(pyc_cache_stats* stats, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(stats, "pyc_cache_stats", sizeof(pyc_cache_stats)));
    const session::CacheStats s = session::cache_stats();
    pyc_cache_stats out{};
    out.entries = s.entries;
    out.capacity = static_cast<int64_t>(session::kCacheEntries);
    out.hits = s.hits;
    out.misses = s.misses;
    write_struct(stats, out);
    return {};
  });
}

void pyc_cache_clear(void) {
  guard(nullptr, []() -> Status {
    session::cache_clear();
    return {};
  });
}
