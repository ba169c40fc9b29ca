#include "pyc/conformance.h"

#include "capi/guard.h"
#include "capi/json.h"
#include "capi/options.h"
#include "tooling/conformance.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

std::string to_json(const tooling::CaseResult& r) {
  constexpr const char* kVerdicts[] = {"passed", "failed", "refused"};
  JsonWriter json;
  json.begin_object();
  json.key("verdict").text(kVerdicts[static_cast<int>(r.verdict)]);
  json.key("reason").text(r.reason);
  json.key("detail").text(r.detail);
  json.key("data_sets").integer(r.data_sets);
  json.key("compared").integer(r.compared);
  json.key("not_compared").integer(r.not_compared);
  json.key("segments").integer(r.segments);
  json.key("host_calls").integer(r.host_calls);
  json.end_object();
  return std::move(json).take();
}

}  // namespace

pyc_status pyc_conformance_case(const char* folder, const pyc_compile_options* options,
                                const pyc_tolerance* tolerance, char** json, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(folder, "folder"));
    PYC_TRY(require(json, "json"));
    const driver::CompileOptions chosen = to_options(options);
    tooling::Tolerance allowed;
    if (tolerance != nullptr) {
      pyc_tolerance t;
      PYC_TRY(read_struct(tolerance, "pyc_tolerance", sizeof(pyc_tolerance), t));
      allowed = {t.rtol, t.atol, t.scale};
    }
    return give_text(to_json(tooling::run_case(folder, chosen, allowed)), json);
  });
}
