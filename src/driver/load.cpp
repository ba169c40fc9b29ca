#include "driver/load.h"

#include <algorithm>

#include "base/files.h"
#include "driver/compile.h"

namespace pyc::driver {
namespace {

constexpr uint64_t kMaxModelBytes = uint64_t{1} << 40;
constexpr size_t kLookedAt = 4096;

// Text IR has no control characters but white space.
bool is_text(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, kLookedAt);
  return std::none_of(start.begin(), start.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return (code < ' ' && c != '\n' && c != '\t' && c != '\r') || code == 0x7f;
  });
}

struct Format {
  bool (*is)(std::string_view bytes);
  Result<ir::Graph> (*load)(std::string_view bytes);
};
// The first that fits is taken.
constexpr Format kFormats[] = {
    {is_text, parse_model},
};

}  // namespace

Result<ir::Graph> load_model(std::string_view bytes) {
  for (const Format& format : kFormats) {
    if (format.is(bytes)) return format.load(bytes);
  }
  return Status(Code::kUnsupported,
                "the model is binary, of a format PyC does not read: text IR is what it reads");
}

Result<ir::Graph> load_model_file(const std::string& path) {
  PYC_ASSIGN(const std::string bytes, read_file(path, kMaxModelBytes));
  auto graph = load_model(bytes);
  if (!graph.ok()) return std::move(graph).status().with_context(path);
  return graph;
}

}  // namespace pyc::driver
