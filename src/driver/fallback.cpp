#include "driver/fallback.h"

#include <fmt/format.h>

#include "driver/devices.h"

namespace pyc::driver {
namespace {

constexpr std::string_view kCpu = "cpu";

}  // namespace

Status check_device(const CompileOptions& options) {
  Status runs = check_runs(options.device);
  if (runs.code() != Code::kUnsupported || options.fallback == kFallbackAllowed) return runs;
  return {runs.code(),
          fmt::format("{}; with the option fallback={} the {} would take the place of the "
                      "device",
                      runs.message(), kFallbackAllowed, kCpu)};
}

bool may_fall_back(const CompileOptions& options, const Status& refusal) {
  return options.fallback == kFallbackAllowed && options.device != kCpu &&
         refusal.code() == Code::kUnsupported;
}

CompileOptions on_cpu(CompileOptions options) {
  options.device = kCpu;
  options.target.clear();  // one of the other device's
  return options;
}

Decision fallback_decision(const CompileOptions& options, const Status& refusal) {
  const std::string reason(code_name(refusal.code()));
  return {.what = "device",
          .chosen = std::string(kCpu),
          .reason = reason,
          .detail = refusal.message(),
          .alternatives = {{.name = options.device, .rejected = reason}}};
}

}  // namespace pyc::driver
