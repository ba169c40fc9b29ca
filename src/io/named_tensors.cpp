#include "io/named_tensors.h"

#include <filesystem>

#include "base/files.h"
#include "io/tensor_file.h"

namespace pyc::io {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 40;

Result<std::vector<NamedTensor>> parse_by_name(const std::string& path, const std::string& bytes) {
  if (!path.ends_with(".safetensors")) return parse_npz(bytes);
  PYC_ASSIGN(Safetensors file, parse_safetensors(bytes));
  return std::move(file.tensors);
}

Result<NamedTensor> read_array(const std::filesystem::path& path) {
  PYC_ASSIGN(NewTensor tensor, read_tensor(path.string(), std::nullopt));
  return NamedTensor{path.stem().string(), std::move(tensor.value)};
}

Result<std::vector<NamedTensor>> read_arrays(const std::string& folder) {
  PYC_ASSIGN(const std::vector<std::string> names, list_folder(folder));
  std::vector<NamedTensor> tensors;
  for (const std::string& name : names) {
    if (!name.ends_with(".npy")) continue;
    PYC_ASSIGN(NamedTensor tensor, read_array(std::filesystem::path(folder) / name));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

Result<std::vector<NamedTensor>> read_named_tensors(const std::string& path) {
  std::error_code not_there;
  if (std::filesystem::is_directory(path, not_there)) return read_arrays(path);
  if (path.ends_with(".npy")) {
    std::vector<NamedTensor> tensors(1);
    PYC_ASSIGN(tensors[0], read_array(path));
    return tensors;
  }
  PYC_ASSIGN(const std::string bytes, read_file(path, kMaxBytes));
  auto tensors = parse_by_name(path, bytes);
  if (!tensors.ok()) return std::move(tensors).status().with_context(path);
  return tensors;
}

}  // namespace pyc::io
