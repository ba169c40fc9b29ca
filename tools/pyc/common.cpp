#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "command.h"
#include "say.h"

namespace pyc::tool {

std::string printable(std::string_view text, bool keep_lines) {
  return take_text([&](char** out, pyc_error** e) {
    return pyc_printable_text(text.data(), text.size(), keep_lines ? 1 : 0, out, e);
  });
}

// One number per class of error; docs/errors.md lists them.
int exit_code(pyc_status status) {
  static const std::map<pyc_status, int> kCodes = {
      {PYC_STATUS_OK, 0},
      {PYC_STATUS_INVALID_ARGUMENT, 2},
      {PYC_STATUS_UNKNOWN_OPTION, 2},
      {PYC_STATUS_NULL_POINTER, 2},
      {PYC_STATUS_PARSE_ERROR, 3},
      {PYC_STATUS_UNKNOWN_OP, 3},
      {PYC_STATUS_VERIFY_FAILED, 4},
      {PYC_STATUS_SHAPE_MISMATCH, 4},
      {PYC_STATUS_DTYPE_MISMATCH, 4},
      {PYC_STATUS_RANK_MISMATCH, 4},
      {PYC_STATUS_SIZE_MISMATCH, 4},
      {PYC_STATUS_MISALIGNED, 4},
      {PYC_STATUS_UNSUPPORTED, 5},
      {PYC_STATUS_BUDGET_EXCEEDED, 6},
      {PYC_STATUS_OUT_OF_MEMORY, 6},
      {PYC_STATUS_COMPILE_FAILED, 7},
      {PYC_STATUS_RUNTIME_FAILED, 8},
      {PYC_STATUS_IO_ERROR, 9},
      {PYC_STATUS_NOT_FOUND, 9},
  };
  constexpr int kInternal = 10;
  const auto found = kCodes.find(status);
  return found == kCodes.end() ? kInternal : found->second;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (size_t i = 0; i < pyc_device_count(); ++i) {
    auto info = sized<pyc_device_info>();
    check([&](pyc_error** e) { return pyc_device(i, &info, e); });
    names.emplace_back(info.name);
  }
  return names;
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (size_t i = 0; i < pyc_target_count(); ++i) names.emplace_back(pyc_target_name(i));
  return names;
}

bool starts_with(const std::string& path, std::string_view bytes) {
  std::string start(bytes.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == bytes;
}

void ModelOptions::declare(Options& options, bool device) {
  options.positional("model", model, "Model file; its content says which format it has");
  if (device) options.choice("--device", compile.device, "Where to run", device_names());
  options.integer("--threads", threads_, "Threads; 0: one per core", 0, 4096);
  options.integer("--lanes", lanes_,
                  "Vector width of generated code in f32 lanes: 4, 8, 16; 0: the CPU's own", 0, 16);
  options.choice("--determinism", determinism_, "How far bits are fixed",
                 {"strict", "balanced", "fast"});
  options.integer("--memory-budget", memory_budget_,
                  "Bytes all memory of a run may take, or the compile is refused; 0: no limit", 0,
                  INT64_MAX);
  options.list("--exclude", compile.excluded_kernels,
               "Kernel candidates to leave out, by name or family", true);
  options.text("--cache-dir", compile.cache_dir,
               "Folder to keep compiled models in; default: what PYC_CACHE_DIR names, or none");
  options.integer("--loop-limit", loop_limit_,
                  "Iterations all loops of one run may take together; 0: 16777216", 0, INT64_MAX);
  options.integer("--value-limit", value_limit_,
                  "Bytes the values between the programs of a run may hold; 0: half of the memory",
                  0, INT64_MAX);
  shapes_.declare(options);
  options.flag("--no-fuse", no_fuse_, "One group per node");
  options.flag("--no-reuse", no_reuse_, "No two buffers share memory");
}

void ModelOptions::finish() {
  static const std::map<std::string, int32_t> kLevels = {{"strict", PYC_DETERMINISM_STRICT},
                                                         {"balanced", PYC_DETERMINISM_BALANCED},
                                                         {"fast", PYC_DETERMINISM_FAST}};
  compile.determinism = kLevels.at(determinism_);
  compile.threads = static_cast<int32_t>(threads_);
  compile.lanes = static_cast<int32_t>(lanes_);
  compile.memory_budget = memory_budget_;
  compile.loop_limit = loop_limit_;
  compile.value_limit = value_limit_;
  shapes_.finish(compile);
  compile.flags |= (no_fuse_ ? PYC_COMPILE_NO_FUSE : 0) | (no_reuse_ ? PYC_COMPILE_NO_REUSE : 0);
}

std::vector<pyc_tensor_view> views_of(const std::vector<Tensor>& tensors) {
  std::vector<pyc_tensor_view> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

std::vector<pyc_tensor_view> views_of(const std::vector<AnyValue>& values) {
  std::vector<pyc_tensor_view> views;
  for (const AnyValue& value : values) views.push_back(value.tensor());
  return views;
}

std::string shape_text(const int64_t* shape, int64_t rank) {
  return fmt::format("[{}]", fmt::join(shape, shape + rank, ","));
}

std::string type_text(const pyc_value_info& info) {
  return pyc_dtype_name(info.dtype) + shape_text(info.shape, info.rank);
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024.0);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576.0);
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  std::vector<const char*> names;
  for (const std::string& k : known) names.push_back(k.c_str());
  const char* closest = pyc_closest_name(name.c_str(), names.data(), names.size());
  return closest == nullptr ? "" : fmt::format(", did you mean '{}'?", closest);
}

}  // namespace pyc::tool
