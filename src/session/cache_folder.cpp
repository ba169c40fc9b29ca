#include "session/cache_folder.h"

#include <cstdlib>
#include <memory>
#include <utility>

#include "artifact/artifact.h"
#include "base/store.h"
#include "driver/devices.h"
#include "driver/tuning.h"

namespace pyc::session {

std::string default_cache_folder() {
  const char* named = std::getenv("PYC_CACHE_DIR");
  return named == nullptr ? "" : named;
}

std::string cache_folder(const driver::CompileOptions& options) {
  return options.cache_dir.empty() ? default_cache_folder() : options.cache_dir;
}

Status read_tuning(driver::CompileOptions& options) {
  const std::string folder = cache_folder(options);
  if (folder.empty() || options.tuning != nullptr) return {};
  PYC_ASSIGN(const backends::Backend* backend, driver::find_backend(options.device));
  if (!options.target.empty() && options.target != backend->native_target()) return {};
  const driver::TuningStore store(Store(folder), *backend, artifact::version());
  driver::TuningTable table = store.read();
  if (table.groups.empty()) return {};
  options.tuning = std::make_shared<const driver::TuningTable>(std::move(table));
  return {};
}

}  // namespace pyc::session
