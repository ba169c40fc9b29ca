#include "pyc/pass_manager.h"

#include <algorithm>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/json.h"
#include "tooling/optimize.h"
#include "tooling/tables.h"

using namespace pyc;
using namespace pyc::capi;

size_t pyc_pass_count(void) {
  size_t count = 0;
  guard(nullptr, [&]() -> Status {
    count = tooling::list_passes().size();
    return {};
  });
  return count;
}

pyc_status pyc_pass(size_t index, pyc_pass_info* info, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(check_out_struct(info, "pyc_pass_info", sizeof(pyc_pass_info)));
    static const auto passes = tooling::list_passes();  // names outlive the call
    PYC_TRY(require_index(index, passes.size(), "pass"));
    pyc_pass_info out{};
    out.name = passes[index].name.data();
    out.value_changing = passes[index].value_changing ? 1 : 0;
    write_struct(info, out);
    return {};
  });
}

namespace {

Result<tooling::PassesResult> run_named(const pyc_graph* graph, const char* const* names,
                                        size_t count) {
  PYC_TRY(require(graph, "graph"));
  PYC_TRY(require_list(names, count, "names"));
  std::vector<std::string> chosen;
  for (size_t i = 0; i < count; ++i) {
    PYC_TRY(require(names[i], "a pass's name"));
    chosen.emplace_back(names[i]);
  }
  return tooling::run_passes(graph->graph(), chosen);
}

void write_pass(JsonWriter& json, const tooling::PassReport& report) {
  json.begin_object();
  json.key("name").text(report.name);
  json.key("summary").text(report.summary);
  json.key("on").boolean(report.runs > 0);
  json.key("required").boolean(report.required);
  json.key("value_changing").boolean(report.value_changing);
  json.key("runs").integer(report.runs);
  json.key("changed").boolean(report.changed > 0);
  json.key("ns").integer(report.ns);
  json.key("nodes_before").integer(report.nodes_before);
  json.key("nodes_after").integer(report.nodes_after);
  json.key("rewrites").begin_object();
  for (const auto& [rule, count] : report.rewrites) json.key(rule).integer(count);
  json.end_object();
  json.end_object();
}

// Every pass of the pipeline, those left out included.
std::string report_json(const tooling::PassesResult& result) {
  JsonWriter json(1);
  json.begin_object();
  json.key("schema").text("pyc.pass_report.v1");
  json.key("stages").begin_array();
  for (const auto& stage : tooling::compile_stages()) json.text(stage);
  json.end_array();
  json.key("passes").begin_array();
  for (tooling::PassReport report : tooling::list_passes()) {
    const auto same = [&](const tooling::PassReport& r) { return r.name == report.name; };
    const auto ran = std::find_if(result.reports.begin(), result.reports.end(), same);
    if (ran != result.reports.end()) report = *ran;
    write_pass(json, report);
  }
  json.end_array();
  json.end_object();
  return std::move(json).take();
}

pyc_graph* graph_of(tooling::PassesResult&& done) {
  return new pyc_graph{ir::GraphBuilder(tooling::known_ops(), std::move(done.graph))};
}

}  // namespace

pyc_status pyc_run_passes(const pyc_graph* graph, const char* const* names, size_t count,
                          pyc_graph** result, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(result, "result"));
    PYC_ASSIGN(tooling::PassesResult done, run_named(graph, names, count));
    *result = graph_of(std::move(done));
    return {};
  });
}

pyc_status pyc_report_passes(const pyc_graph* graph, const char* const* names, size_t count,
                             pyc_graph** result, char** json, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(json, "json"));
    PYC_ASSIGN(tooling::PassesResult done, run_named(graph, names, count));
    PYC_TRY(give_text(report_json(done), json));
    if (result != nullptr) *result = graph_of(std::move(done));
    return {};
  });
}
