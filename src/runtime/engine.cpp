#include "runtime/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace pyc::runtime {

Result<std::shared_ptr<const Engine>> load_engine(std::shared_ptr<const Program> program,
                                                  std::span<const Loader* const> loaders) {
  if (program == nullptr) return Status(Code::kNullPointer, "engine: no program");
  PYC_TRY(check_program(*program));
  if (program->places.size() > 1) {
    return Status(
        Code::kUnsupported,
        fmt::format("the program runs at {} places, engines run at one", program->places.size()));
  }
  const std::string_view wanted = program->places[0].backend;
  const auto found = std::find_if(loaders.begin(), loaders.end(), [&](const Loader* loader) {
    return loader->backend() == wanted;
  });
  if (found != loaders.end()) {
    PYC_TRY((*found)->available());
    return (*found)->load(std::move(program), 0);
  }
  std::vector<std::string_view> known;
  for (const Loader* loader : loaders) known.push_back(loader->backend());
  return Status(Code::kUnsupported,
                fmt::format("the program needs the engine '{}', which is not here; there are: {}",
                            wanted, fmt::join(known, ", ")));
}

}  // namespace pyc::runtime
