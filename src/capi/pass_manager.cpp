#include "pyc/pass_manager.h"

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

pyc_status pyc_run_passes(const pyc_graph* graph, const char* const* names, size_t count,
                          pyc_graph** result, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(graph, "graph"));
    PYC_TRY(require(result, "result"));
    PYC_TRY(require_list(names, count, "names"));
    std::vector<std::string> chosen;
    for (size_t i = 0; i < count; ++i) {
      PYC_TRY(require(names[i], "a pass's name"));
      chosen.emplace_back(names[i]);
    }
    PYC_ASSIGN(driver::PassesResult done, driver::run_passes(graph->graph(), chosen));
    *result = new pyc_graph{ir::GraphBuilder(driver::known_ops(), std::move(done.graph))};
    return {};
  });
}
