#include "driver/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/rules.h"
#include "ops/registry.h"
#include "passes/pipeline.h"

namespace pyc::driver {
namespace {

Result<const passes::Pass*> find_pass(std::string_view name) {
  std::vector<std::string_view> known;
  for (const passes::Pass& pass : passes::pipeline()) {
    if (pass.name == name) return &pass;
    known.push_back(pass.name);
  }
  return Status(Code::kUnknownOption, fmt::format("pass '{}' is not known{}", name,
                                                  ir::did_you_mean(ir::closest_name(name, known))));
}

}  // namespace

const ir::OpSet& known_ops() { return ops::all_ops(); }

std::vector<PassInfo> known_passes() {
  std::vector<PassInfo> out;
  for (const passes::Pass& pass : passes::pipeline()) {
    out.push_back({pass.name, pass.value_changing});
  }
  return out;
}

Result<ir::Graph> run_passes(ir::Graph graph, std::span<const std::string> names) {
  PYC_ASSIGN(ir::VerifiedGraph verified, ir::verify_graph(std::move(graph)));
  if (names.empty()) {
    DecisionLog log;
    PYC_ASSIGN(verified, passes::run_pipeline(std::move(verified), known_ops(), &log));
    return *verified;
  }
  std::vector<const passes::Pass*> chosen;
  for (const std::string& name : names) {
    PYC_ASSIGN(const passes::Pass* pass, find_pass(name));
    chosen.push_back(pass);
  }
  for (const passes::Pass* pass : chosen) {
    ir::Graph work = *verified;
    PYC_ASSIGN(const bool changed, pass->run(work, known_ops()));
    if (!changed) continue;
    auto result = ir::verify_graph(std::move(work));
    if (!result.ok()) {
      return std::move(result).status().with_context(fmt::format("after pass {}", pass->name));
    }
    verified = std::move(*result);
  }
  return *verified;
}

}  // namespace pyc::driver
