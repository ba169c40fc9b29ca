#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "base/mapped_file.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/options.h"
#include "driver/artifacts.h"
#include "driver/cache.h"
#include "driver/load.h"
#include "pyc/compiler_api.h"

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

LiveModels& live_models() {
  static LiveModels instance;
  return instance;
}

Result<driver::Determinism> to_determinism(int32_t level) {
  switch (level) {
    case PYC_DETERMINISM_STRICT:
      return driver::Determinism::kStrict;
    case PYC_DETERMINISM_DEFAULT:
    case PYC_DETERMINISM_BALANCED:
      return driver::Determinism::kBalanced;
    case PYC_DETERMINISM_FAST:
      return driver::Determinism::kFast;
    default:
      return Status(Code::kInvalidArgument, fmt::format("determinism: expected 0 to {}, found {}",
                                                        PYC_DETERMINISM_FAST, level));
  }
}

void give(std::unique_ptr<pyc_model> model, pyc_model** out) {
  live_models().add(model.get());
  *out = model.release();
}

Status compile(Result<ir::Graph> graph, const pyc_compile_options* options, pyc_model** out) {
  PYC_TRY(require(out, "model"));
  if (!graph.ok()) return std::move(graph).status();
  PYC_ASSIGN(driver::CompileOptions chosen, to_options(options));
  PYC_TRY(ir::verify_graph(*graph).status());
  std::string fingerprint = ir::fingerprint(*graph).hex();
  PYC_ASSIGN(std::unique_ptr<runtime::Model> model, driver::compile(std::move(*graph), chosen));
  give(std::make_unique<pyc_model>(
           pyc_model{std::move(model), std::move(fingerprint), std::move(chosen)}),
       out);
  return {};
}

// A model that was compiled ahead of time.
Status load(SharedBytes file, const pyc_compile_options* options, pyc_model** out) {
  PYC_TRY(require(out, "model"));
  PYC_ASSIGN(driver::CompileOptions chosen, to_options(options));
  PYC_ASSIGN(driver::LoadedModel loaded, driver::load_artifact(std::move(file), chosen));
  chosen.determinism = loaded.determinism;
  give(std::make_unique<pyc_model>(
           pyc_model{std::move(loaded.model), std::move(loaded.fingerprint), std::move(chosen)}),
       out);
  return {};
}

// The views as the runtime takes them. Kept per thread, so that a run allocates nothing.
class Views {
 public:
  Status set(const pyc_tensor_view* views, size_t count, std::string_view what) {
    PYC_TRY(require_list(views, count, what));
    if (views_.size() < count) views_.resize(count);
    count_ = count;
    for (size_t i = 0; i < count; ++i) {
      Status status = to_view(views[i], views_[i]);
      if (!status.ok()) return std::move(status).with_context(fmt::format("{} {}", what, i));
    }
    return {};
  }
  std::span<const runtime::TensorView> get() const { return {views_.data(), count_}; }

 private:
  std::vector<runtime::TensorView> views_;
  size_t count_ = 0;
};

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

}  // namespace

Result<driver::CompileOptions> capi::to_options(const pyc_compile_options* given) {
  pyc_compile_options o;
  PYC_TRY(read_struct(given, "pyc_compile_options", sizeof(pyc_compile_options), o));
  driver::CompileOptions out;
  if (o.device != nullptr) out.device = o.device;
  PYC_ASSIGN(out.determinism, to_determinism(o.determinism));
  out.threads = o.threads;
  out.lanes = o.lanes;
  constexpr uint32_t kKnown = PYC_COMPILE_NO_FUSE | PYC_COMPILE_NO_REUSE | PYC_COMPILE_NO_CACHE;
  if ((o.flags & ~kKnown) != 0) {
    return Status(Code::kUnknownOption,
                  fmt::format("flags: expected bits of {:#x}, found {:#x}", kKnown, o.flags));
  }
  out.fuse = (o.flags & PYC_COMPILE_NO_FUSE) == 0;
  out.reuse = (o.flags & PYC_COMPILE_NO_REUSE) == 0;
  out.cache = (o.flags & PYC_COMPILE_NO_CACHE) == 0;
  if (o.memory_budget < 0) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("memory_budget: expected 0 (none) or more bytes, found {}", o.memory_budget));
  }
  out.memory_budget = o.memory_budget == 0 ? -1 : o.memory_budget;
  PYC_TRY(require_list(o.excluded_kernels, o.excluded_kernel_count, "excluded_kernels"));
  for (size_t i = 0; i < o.excluded_kernel_count; ++i) {
    PYC_TRY(require(o.excluded_kernels[i], "an excluded kernel"));
    out.kernels.emplace_back(o.excluded_kernels[i]);
  }
  out.target = to_text(o.target);
  return out;
}

namespace pyc::capi {

Status describe(std::span<const runtime::IoSpec> specs, size_t index, int32_t kind,
                pyc_value_info* info) {
  PYC_TRY(check_out_struct(info, "pyc_value_info", sizeof(pyc_value_info)));
  PYC_TRY(require_index(index, specs.size(), kind == PYC_VALUE_INPUT ? "input" : "output"));
  const runtime::IoSpec& spec = specs[index];
  write_struct(info, value_info(spec.name, spec.dtype, spec.shape, spec.bytes, kind));
  return {};
}

Status to_view(const pyc_tensor_view& view, runtime::TensorView& out) {
  if (view.rank < 0 || view.rank > ir::kMaxRank) {
    return {Code::kRankMismatch,
            fmt::format("rank: expected 0 to {}, found {}", ir::kMaxRank, view.rank)};
  }
  PYC_TRY(require_list(view.shape, static_cast<size_t>(view.rank), "shape"));
  if (!is_dtype(view.dtype)) return to_dtype(view.dtype).status();
  out.data = view.data;
  out.dtype = static_cast<DType>(view.dtype);
  out.shape.clear();
  if (view.rank > 0) out.shape.assign(view.shape, view.shape + view.rank);
  out.bytes = view.bytes;
  return {};
}

}  // namespace pyc::capi

pyc_status pyc_compile_model(const pyc_graph* graph, const pyc_compile_options* options,
                             pyc_model** model, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    return compile(ir::Graph(graph->graph()), options, model);
  });
}

pyc_status pyc_compile_model_bytes(const void* data, size_t size,
                                   const pyc_compile_options* options, pyc_model** model,
                                   pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require_list(data, size, "data"));
    const std::span bytes(static_cast<const std::byte*>(data), size);
    if (artifact::is_artifact(bytes)) {
      return load(std::vector<std::byte>(bytes.begin(), bytes.end()), options, model);
    }
    return compile(driver::load_model({static_cast<const char*>(data), size}), options, model);
  });
}

pyc_status pyc_compile_model_file(const char* path, const pyc_compile_options* options,
                                  pyc_model** model, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(path, "path"));
    PYC_ASSIGN(SharedBytes bytes, map_file(path));
    if (artifact::is_artifact(bytes)) {
      return load(std::move(bytes), options, model).with_context(path);
    }
    return compile(driver::load_model_file(path), options, model);
  });
}

void pyc_destroy_model(pyc_model* model) {
  guard(nullptr, [&]() -> Status {
    if (model != nullptr && live_models().remove(model)) delete model;
    return {};
  });
}

size_t pyc_model_input_count(const pyc_model* model) {
  return model == nullptr ? 0 : model->model->inputs().size();
}

size_t pyc_model_output_count(const pyc_model* model) {
  return model == nullptr ? 0 : model->model->outputs().size();
}

pyc_status pyc_model_input(const pyc_model* model, size_t index, pyc_value_info* info,
                           pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    return describe(model->model->inputs(), index, PYC_VALUE_INPUT, info);
  });
}

pyc_status pyc_model_output(const pyc_model* model, size_t index, pyc_value_info* info,
                            pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    return describe(model->model->outputs(), index, PYC_VALUE_RESULT, info);
  });
}

pyc_status pyc_run_model(pyc_model* model, const pyc_tensor_view* inputs, size_t input_count,
                         const pyc_tensor_view* outputs, size_t output_count, pyc_run_stats* stats,
                         pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    if (stats != nullptr) {
      PYC_TRY(check_struct_size(stats->struct_size, sizeof(pyc_run_stats), "pyc_run_stats"));
      write_struct(stats, pyc_run_stats{});
    }
    PYC_ASSIGN(const ThreadViews* views, take_views(inputs, input_count, outputs, output_count));
    runtime::RunStats measured;
    Status status = model->model->run(views->inputs.get(), views->outputs.get(), &measured);
    if (stats != nullptr) {
      pyc_run_stats out{};
      out.wall_ns = measured.wall_ns;
      out.steps = measured.steps;
      out.allocations = measured.allocations;
      write_struct(stats, out);
    }
    return status;
  });
}

pyc_status pyc_profile_model(pyc_model* model, const pyc_tensor_view* inputs, size_t input_count,
                             const pyc_tensor_view* outputs, size_t output_count, int64_t* step_ns,
                             size_t count, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    const size_t steps = model->model->program().steps.size();
    if (count != steps) {
      return {Code::kInvalidArgument,
              fmt::format("count: expected the {} steps of the model, found {}", steps, count)};
    }
    PYC_TRY(require_list(step_ns, count, "step_ns"));
    PYC_ASSIGN(const ThreadViews* views, take_views(inputs, input_count, outputs, output_count));
    PYC_ASSIGN(const std::vector<int64_t> times,
               model->model->profile(views->inputs.get(), views->outputs.get()));
    std::copy(times.begin(), times.end(), step_ns);
    return {};
  });
}

pyc_status pyc_model_get_stats(const pyc_model* model, pyc_model_stats* stats, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(check_out_struct(stats, "pyc_model_stats", sizeof(pyc_model_stats)));
    const runtime::ModelStats s = model->model->stats();
    pyc_model_stats out{};
    out.runs = s.runs;
    out.failed_runs = s.failed_runs;
    out.guard_miss_count = s.guard_misses;
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
    write_struct(stats, out);
    return {};
  });
}

pyc_status pyc_model_get_memory(const pyc_model* model, pyc_memory_report* report,
                                pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(check_out_struct(report, "pyc_memory_report", sizeof(pyc_memory_report)));
    const runtime::MemoryReport& m = model->model->memory();
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
    write_struct(report, out);
    return {};
  });
}

size_t pyc_model_step_count(const pyc_model* model) {
  return model == nullptr ? 0 : model->model->program().steps.size();
}

pyc_status pyc_model_step(const pyc_model* model, size_t index, pyc_step_info* info,
                          pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(check_out_struct(info, "pyc_step_info", sizeof(pyc_step_info)));
    const auto& steps = model->model->program().steps;
    PYC_TRY(require_index(index, steps.size(), "step"));
    pyc_step_info out{};
    out.name = steps[index].name.c_str();
    out.flops = steps[index].flops;
    out.bytes_moved = steps[index].bytes_moved;
    out.parallel = steps[index].parallel;
    write_struct(info, out);
    return {};
  });
}

pyc_status pyc_dump(const pyc_graph* graph, const pyc_compile_options* options, const char* stage,
                    char** text, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(stage, "stage"));
    PYC_ASSIGN(const driver::CompileOptions chosen, to_options(options));
    PYC_ASSIGN(const std::string dumped, driver::dump(ir::Graph(graph->graph()), chosen, stage));
    return give_text(dumped, text);
  });
}

pyc_status pyc_cache_get_stats(pyc_cache_stats* stats, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(stats, "pyc_cache_stats", sizeof(pyc_cache_stats)));
    const driver::CacheStats s = driver::cache_stats();
    pyc_cache_stats out{};
    out.entries = s.entries;
    out.capacity = static_cast<int64_t>(driver::kCacheEntries);
    out.hits = s.hits;
    out.misses = s.misses;
    write_struct(stats, out);
    return {};
  });
}

void pyc_cache_clear(void) {
  guard(nullptr, []() -> Status {
    driver::cache_clear();
    return {};
  });
}
