#include "tooling/optimize.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/registry.h"
#include "passes/pipeline.h"

namespace pyc::tooling {
namespace {

// What session::compile does, in its order; there is no other.
constexpr std::string_view kStages[] = {"verify", "passes", "lower", "select", "plan", "code"};

PassReport report_of(const passes::Pass& pass) {
  return {.name = std::string(pass.name),
          .summary = std::string(pass.summary),
          .value_changing = pass.value_changing,
          .required = pass.required};
}

}  // namespace

Result<PassesResult> run_passes(ir::Graph graph, std::span<const std::string> names,
                                bool dump_changes, DType precision) {
  PassesResult result;
  passes::PassOptions options;
  options.precision = precision;
  options.observer = [&](const passes::PassRun& run) {
    const auto same = [&](const PassReport& r) { return r.name == run.pass.name; };
    auto report = std::find_if(result.reports.begin(), result.reports.end(), same);
    if (report == result.reports.end()) {
      report = result.reports.insert(report, report_of(run.pass));
      report->nodes_before = run.nodes_before;
    }
    report->nodes_after = run.after.nodes.size();
    for (const auto& [rule, count] : run.rewrites) report->rewrites[rule] += count;
    ++report->runs;
    report->changed += run.changed ? 1 : 0;
    report->ns += run.ns;
    if (dump_changes && run.changed) {
      result.dumps.emplace_back(fmt::format("pass {}, round {}", run.pass.name, run.round),
                                ir::print(run.after));
    }
  };
  PYC_ASSIGN(ir::VerifiedGraph given, ir::verify_graph(std::move(graph)));
  auto canonical =
      names.empty()
          ? passes::run_pipeline(std::move(given), ops::all_ops(), options, &result.log)
          : passes::run_passes(std::move(given), ops::all_ops(), names, options, &result.log);
  if (!canonical.ok()) return std::move(canonical).status();
  result.graph = **canonical;
  return result;
}

std::vector<PassReport> list_passes() {
  std::vector<PassReport> all;
  for (const passes::Pass& pass : passes::pipeline()) all.push_back(report_of(pass));
  return all;
}

std::span<const std::string_view> compile_stages() { return kStages; }

}  // namespace pyc::tooling
