#include "backends/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace pyc::cuda {

struct ProgramTag;
using ProgramHandle = ProgramTag*;

#define PYC_NVRTC_ENTRIES(PYC_ENTRY)                                                               \
  PYC_ENTRY(nvrtcVersion, int*, int*)                                                              \
  PYC_ENTRY(nvrtcCreateProgram, ProgramHandle*, const char*, const char*, int, const char* const*, \
            const char* const*)                                                                    \
  PYC_ENTRY(nvrtcDestroyProgram, ProgramHandle*)                                                   \
  PYC_ENTRY(nvrtcCompileProgram, ProgramHandle, int, const char* const*)                           \
  PYC_ENTRY(nvrtcGetProgramLogSize, ProgramHandle, size_t*)                                        \
  PYC_ENTRY(nvrtcGetProgramLog, ProgramHandle, char*)                                              \
  PYC_ENTRY(nvrtcGetCUBINSize, ProgramHandle, size_t*)                                             \
  PYC_ENTRY(nvrtcGetCUBIN, ProgramHandle, char*)                                                   \
  PYC_ENTRY(nvrtcGetPTXSize, ProgramHandle, size_t*)                                               \
  PYC_ENTRY(nvrtcGetPTX, ProgramHandle, char*)

struct NvrtcApi {
#define PYC_ENTRY(name, ...) int (*name)(__VA_ARGS__) = nullptr;
  PYC_NVRTC_ENTRIES(PYC_ENTRY)
#undef PYC_ENTRY
  const char* (*nvrtcGetErrorString)(int) = nullptr;
};

namespace {

namespace fs = std::filesystem;

constexpr auto kNvrtcNames = std::to_array({"libnvrtc.so.13", "libnvrtc.so.12"});
constexpr int kNvrtcOutOfMemory = 1;

std::string nvrtc_variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}

std::string own_folder() {
  Dl_info info{};
  void* found = nullptr;
  const auto* here = reinterpret_cast<const void*>(&own_folder);
  if (dladdr1(here, &info, &found, RTLD_DL_LINKMAP) == 0) return "";
  const auto* map = static_cast<const link_map*>(found);
  if (map->l_name != nullptr && *map->l_name != '\0') return fs::path(map->l_name).parent_path();
  std::error_code error;  // the program itself has no name there
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "" : program.parent_path().string();
}

// The library folders of nvidia's packages in a virtual environment.
std::vector<std::string> environment_folders(const std::string& root) {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator it(root + "/lib", error), end; !error && it != end;
       it.increment(error)) {
    for (const char* package : {"cu13", "cuda_nvrtc"}) {
      folders.push_back(it->path() / "site-packages/nvidia" / package / "lib");
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Destroys a program at the end of its scope.
struct ProgramOwner {
  const NvrtcApi& api;
  ProgramHandle program = nullptr;
  ~ProgramOwner() {
    if (program != nullptr) api.nvrtcDestroyProgram(&program);
  }
};

Status failed(const NvrtcApi& api, int result, const std::string& call) {
  if (result == 0) return {};
  const char* text = api.nvrtcGetErrorString(result);
  return {result == kNvrtcOutOfMemory ? Code::kOutOfMemory : Code::kCompileFailed,
          fmt::format("{}: {} ({})", call, text == nullptr ? "unknown result" : text, result)};
}

std::string log_of(const NvrtcApi& api, ProgramHandle program) {
  size_t size = 0;
  if (api.nvrtcGetProgramLogSize(program, &size) != 0 || size <= 1) return "no log";
  std::string log(size, '\0');
  if (api.nvrtcGetProgramLog(program, log.data()) != 0) return "no log";
  log.resize(size - 1);
  return log;
}

template <class Function>
bool find_nvrtc_entry(void* library, const char* name, Function*& out) {
  out = reinterpret_cast<Function*>(dlsym(library, name));
  return out != nullptr;
}

}  // namespace

std::vector<std::string> nvrtc_places() {
  const std::string given = nvrtc_variable("PYC_NVRTC");
  if (!given.empty()) return {given};
  std::vector<std::string> folders;
  const std::string own = own_folder();
  if (!own.empty()) folders = {own + "/", own + "/../lib/"};
  folders.emplace_back();  // the loader's own search
  for (const std::string& root :
       {nvrtc_variable("CUDA_HOME"), nvrtc_variable("CUDA_PATH"), std::string("/usr/local/cuda")}) {
    if (!root.empty()) folders.push_back(root + "/lib64/");
  }
  const std::string environment = nvrtc_variable("VIRTUAL_ENV");
  if (!environment.empty()) {
    for (const std::string& folder : environment_folders(environment)) {
      folders.push_back(folder + "/");
    }
  }
  std::vector<std::string> places;
  for (const std::string& folder : folders) {
    for (const char* name : kNvrtcNames) places.push_back(folder + name);
  }
  return places;
}

Nvrtc::~Nvrtc() = default;

Result<std::shared_ptr<const Nvrtc>> Nvrtc::load(const std::string& path) {
  const std::vector<std::string> places =
      path.empty() ? nvrtc_places() : std::vector<std::string>{path};
  std::string reasons;
  for (const std::string& place : places) {
    dlerror();
    void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);  // never unloaded
    if (library == nullptr) {
      const char* reason = dlerror();
      reasons +=
          fmt::format("{}{}", reasons.empty() ? "" : "; ", reason == nullptr ? place : reason);
      continue;
    }
    auto nvrtc = std::make_shared<Nvrtc>();
    nvrtc->api_ = std::make_unique<NvrtcApi>();
    NvrtcApi& api = *nvrtc->api_;
    bool whole = find_nvrtc_entry(library, "nvrtcGetErrorString", api.nvrtcGetErrorString);
#define PYC_ENTRY(name, ...) whole = find_nvrtc_entry(library, #name, api.name) && whole;
    PYC_NVRTC_ENTRIES(PYC_ENTRY)
#undef PYC_ENTRY
    if (!whole) {
      dlclose(library);
      reasons += fmt::format("{}{}: not an NVRTC of version 12 or later",
                             reasons.empty() ? "" : "; ", place);
      continue;
    }
    int major = 0;
    int minor = 0;
    PYC_TRY(failed(api, api.nvrtcVersion(&major, &minor), "nvrtcVersion"));
    nvrtc->path_ = place;
    nvrtc->version_ = fmt::format("{}.{}", major, minor);
    return std::shared_ptr<const Nvrtc>(std::move(nvrtc));
  }
  return Status(Code::kUnsupported, fmt::format("NVRTC cannot be loaded: {}", reasons));
}

Result<std::string> Nvrtc::cubin(const std::string& text, const std::string& architecture) const {
  return compile(text, architecture, false);
}

Result<std::string> Nvrtc::ptx(const std::string& text, const std::string& architecture) const {
  return compile(text, architecture, true);
}

Result<std::string> Nvrtc::compile(const std::string& text, const std::string& architecture,
                                   bool to_ptx) const {
  const NvrtcApi& api = *api_;
  ProgramOwner owner{api};
  PYC_TRY(failed(
      api, api.nvrtcCreateProgram(&owner.program, text.c_str(), "pyc.cu", 0, nullptr, nullptr),
      "nvrtcCreateProgram"));
  const std::string target = "--gpu-architecture=" + architecture;
  const auto options = std::to_array<const char*>(
      {target.c_str(), "--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true",
       "--prec-sqrt=true", "-default-device", "--disable-warnings"});
  const int result =
      api.nvrtcCompileProgram(owner.program, static_cast<int>(options.size()), options.data());
  if (result != 0) {
    const std::string log = log_of(api, owner.program);
    return std::move(failed(api, result, "nvrtcCompileProgram"))
        .with_context("compiling for " + architecture)
        .with_context(log);
  }
  size_t size = 0;
  const auto get_size = to_ptx ? api.nvrtcGetPTXSize : api.nvrtcGetCUBINSize;
  PYC_TRY(failed(api, get_size(owner.program, &size), "nvrtcGetCUBINSize"));
  std::string image(size, '\0');
  const auto get = to_ptx ? api.nvrtcGetPTX : api.nvrtcGetCUBIN;
  PYC_TRY(failed(api, get(owner.program, image.data()), "nvrtcGetCUBIN"));
  return image;
}

}  // namespace pyc::cuda
