#include "pyc/pass_manager.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "driver/optimize.h"
#include "driver/tables.h"

using namespace pyc;
using namespace pyc::capi;

size_t pyc_pass_count(void) {
  size_t count = 0;
  guard(nullptr, [&]() -> Status {
    count = driver::list_passes().size();
    return {};
  });
  return count;
}

pyc_status pyc_pass(size_t index, pyc_pass_info* info, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_pass_info", sizeof(pyc_pass_info)));
    static const auto passes = driver::list_passes();  // names outlive the call
    PYC_TRY(require_index(index, passes.size(), "pass"));
    pyc_pass_info out{};
    out.name = passes[index].name.data();
    out.value_changing = passes[index].value_changing ? 1 : 0;
    write_struct(info, out);
    return {};
  });
}

namespace {

Result<driver::PassesResult> run_named(const pyc_graph* graph, const char* const* names,
                                       size_t count) {
  PYC_TRY(require(graph, "graph"));
  PYC_TRY(require_list(names, count, "names"));
  std::vector<std::string> chosen;
  for (size_t i = 0; i < count; ++i) {
    PYC_TRY(require(names[i], "a pass's name"));
    chosen.emplace_back(names[i]);
  }
  return driver::run_passes(graph->graph(), chosen);
}

// Every pass of the pipeline, those left out included.
std::string report_json(const driver::PassesResult& result) {
  using Json = nlohmann::ordered_json;
  Json out = {{"schema", "pyc.pass_report.v1"}};
  out["stages"] = driver::compile_stages();
  out["passes"] = Json::array();
  for (driver::PassReport report : driver::list_passes()) {
    const auto same = [&](const driver::PassReport& r) { return r.name == report.name; };
    const auto ran = std::find_if(result.reports.begin(), result.reports.end(), same);
    if (ran != result.reports.end()) report = *ran;
    out["passes"].push_back({{"name", report.name},
                             {"summary", report.summary},
                             {"on", report.runs > 0},
                             {"required", report.required},
                             {"value_changing", report.value_changing},
                             {"runs", report.runs},
                             {"changed", report.changed > 0},
                             {"ns", report.ns},
                             {"nodes_before", report.nodes_before},
                             {"nodes_after", report.nodes_after},
                             {"rewrites", report.rewrites}});
  }
  constexpr int kIndent = 1;
  return out.dump(kIndent);
}

pyc_graph* graph_of(driver::PassesResult&& done) {
  return new pyc_graph{ir::GraphBuilder(driver::known_ops(), std::move(done.graph))};
}

}  // namespace

pyc_status pyc_run_passes(const pyc_graph* graph, const char* const* names, size_t count,
                          pyc_graph** result, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(result, "result"));
    PYC_ASSIGN(driver::PassesResult done, run_named(graph, names, count));
    *result = graph_of(std::move(done));
    return {};
  });
}

pyc_status pyc_report_passes(const pyc_graph* graph, const char* const* names, size_t count,
                             pyc_graph** result, char** json, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(json, "json"));
    PYC_ASSIGN(driver::PassesResult done, run_named(graph, names, count));
    PYC_TRY(give_text(report_json(done), json));
    if (result != nullptr) *result = graph_of(std::move(done));
    return {};
  });
}
