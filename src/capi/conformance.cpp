#include "pyc/conformance.h"

#include <nlohmann/json.hpp>

#include "capi/guard.h"
#include "capi/options.h"
#include "driver/conformance.h"

using namespace pyc;
using namespace pyc::capi;

pyc_status pyc_conformance_case(const char* folder, const pyc_compile_options* options,
                                const pyc_tolerance* tolerance, char** json, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(folder, "folder"));
    PYC_TRY(require(json, "json"));
    PYC_ASSIGN(const driver::CompileOptions chosen, to_options(options));
    driver::Tolerance allowed;
    if (tolerance != nullptr) {
      pyc_tolerance t;
      PYC_TRY(read_struct(tolerance, "pyc_tolerance", sizeof(pyc_tolerance), t));
      allowed = {t.rtol, t.atol, t.scale};
    }
    const driver::CaseResult r = driver::run_case(folder, chosen, allowed);
    constexpr const char* kVerdicts[] = {"passed", "failed", "refused"};
    const nlohmann::ordered_json text{{"verdict", kVerdicts[static_cast<int>(r.verdict)]},
                                      {"reason", r.reason},
                                      {"detail", r.detail},
                                      {"data_sets", r.data_sets},
                                      {"compared", r.compared},
                                      {"not_compared", r.not_compared},
                                      {"segments", r.segments},
                                      {"host_calls", r.host_calls}};
    return give_text(text.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
                     json);
  });
}
