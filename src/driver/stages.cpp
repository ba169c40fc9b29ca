#include "driver/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/fp_state.h"
#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/front.h"
#include "driver/targets.h"
#include "loop/loop.h"
#include "lower/dot.h"
#include "lower/lower.h"
#include "plan/plan.h"

namespace pyc::driver {
namespace {

// That it is a stage, and one of the chosen device.
Status check_stage(std::string_view stage, const CompileOptions& o) {
  constexpr std::string_view kCommon[] = {"graph", "passes", "groups", "dot", "loop", "plan"};
  if (std::ranges::find(kCommon, stage) != std::end(kCommon)) return {};
  const std::vector<std::string_view> code = code_stages();
  if (std::ranges::find(code, stage) == code.end()) {
    return {Code::kUnknownOption,
            fmt::format("stage '{}' is not known; known stages: {}, {}", stage,
                        fmt::join(kCommon, ", "), fmt::join(code, ", "))};
  }
  PYC_ASSIGN(const backends::Backend* backend, find_backend(o.device));
  PYC_TRY(check_target(*backend, o.target));
  const std::vector<std::string_view> own = backend->capabilities().stages;
  if (own.empty() || std::ranges::find(own, stage) != own.end()) return {};
  return {Code::kUnsupported, fmt::format("device '{}' has no stage '{}'; it has: {}", o.device,
                                          stage, fmt::join(own, ", "))};
}

std::vector<std::string> kernel_names(const Front& front) {
  std::vector<std::string> names;
  for (const backends::Candidate& c : front.selection.chosen) names.push_back(c.name);
  return names;
}

}  // namespace

Result<Stages> stages(ir::VerifiedGraph given, const CompileOptions& o) {
  const FpStateGuard fp_state;
  PYC_TRY(check_options(o));
  PYC_ASSIGN(Front front, plan_graph(std::move(given), o, TimeLimit(o)));
  std::vector<std::string> kernels = kernel_names(front);
  return Stages{.given = std::move(front.given),
                .canonical = std::move(front.canonical),
                .lowered = std::move(front.lowered),
                .kernels = std::move(kernels),
                .plan = std::move(front.plan)};
}

Result<std::string> dump(ir::VerifiedGraph given, const CompileOptions& o, std::string_view stage) {
  PYC_TRY(check_options(o));
  PYC_TRY(check_stage(stage, o));
  if (stage == "graph") return ir::print(*given);
  PYC_ASSIGN(Front front, plan_graph(std::move(given), o, TimeLimit(o)));
  if (stage == "passes") return ir::print(*front.canonical);
  if (stage == "groups") return lower::print_groups(front.lowered);
  if (stage == "dot") return lower::print_dot(front.lowered, kernel_names(front));
  if (stage == "plan") return plan::print(front.plan);
  std::string text;
  for (size_t g = 0; g < front.lowered.groups.size(); ++g) {
    if (stage == "loop") {
      text += loop::print(front.lowered.groups[g].kernel);
      continue;
    }
    PYC_ASSIGN(const std::string code,
               front.backend->dump(front.lowered, g, front.selection.chosen[g],
                                   front.backend_options, stage));
    text += code;
  }
  return text;
}

}  // namespace pyc::driver
