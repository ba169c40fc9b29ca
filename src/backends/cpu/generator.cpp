#include "backends/cpu/generator.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>

#include <filesystem>
#include <mutex>
#include <system_error>

#include "base/mapped_file.h"

namespace pyc::cpu {
namespace {

constexpr const char* kLibrary = "libpyc_llvm.so";

// The path of the library or program that this code is linked into; "" when the system keeps it.
std::string own_path() {
  Dl_info info{};
  void* found = nullptr;
  const auto* here = reinterpret_cast<const void*>(&own_path);
  if (dladdr1(here, &info, &found, RTLD_DL_LINKMAP) == 0) return "";
  const auto* map = static_cast<const link_map*>(found);
  if (map->l_name != nullptr && *map->l_name != '\0') return map->l_name;
  std::error_code error;  // the program itself has no name there
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : program.string();
}

Result<const Generator*> load_from(const std::string& path) {
  // Never unloaded: code of it may be running in any thread.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return Status(Code::kUnsupported, reason == nullptr ? path : reason);
  }
  const auto make = reinterpret_cast<GeneratorFunction>(dlsym(library, kGeneratorSymbol));
  const Generator* made = make == nullptr ? nullptr : make(PYC_VERSION);
  if (made != nullptr) return made;
  dlclose(library);
  return Status(Code::kUnsupported, fmt::format("{}: of another version of PyC", path));
}

Result<const Generator*> load() {
  const std::string folder = folder_of(own_path());
  std::string reasons;
  // The last is found as the system finds libraries: a program with PyC in it may be anywhere.
  for (const std::string& place : {folder + "/", folder + "/../lib/", std::string()}) {
    auto made = load_from(place + kLibrary);
    if (made.ok()) return made;
    reasons += (reasons.empty() ? "" : "; ") + made.status().message();
  }
  return Status(
      Code::kUnsupported,
      fmt::format("the code generator cannot be loaded ({}): put {} beside the program or "
                  "library that uses PyC, or run a model that was compiled ahead of time",
                  reasons, kLibrary));
}

// LLVM ends the process when it is refused memory. So it is neither loaded nor called unless far
// more than it ever took can be had.
Status check_room(bool loaded) {
  constexpr size_t kToLoad = size_t{256} << 20;
  constexpr size_t kForOneKernel = size_t{64} << 20;
  const size_t bytes = loaded ? kForOneKernel : kToLoad;
  void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room != MAP_FAILED) {
    munmap(room, bytes);
    return {};
  }
  return {Code::kOutOfMemory,
          fmt::format("code generation does not start unless {} bytes can be had", bytes)};
}

}  // namespace

Result<const Generator*> generator() {
  static std::mutex mutex;
  static const Generator* loaded = nullptr;
  const std::lock_guard lock(mutex);
  PYC_TRY(check_room(loaded != nullptr));
  if (loaded == nullptr) {
    PYC_ASSIGN(loaded, load());
  }
  return loaded;
}

}  // namespace pyc::cpu
