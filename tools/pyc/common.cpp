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
  for (const pyc_option_info& option : compile_options()) {
    if (std::string_view(option.name) == "device") {
      return {option.words, option.words + option.word_count};
    }
  }
  return {};
}

bool starts_with(const std::string& path, std::string_view bytes) {
  std::string start(bytes.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == bytes;
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

std::string machine_text(const pyc_artifact_info& info) {
  return *info.target == '\0' ? fmt::format("any machine with the device {}", info.device)
                              : info.target;
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
