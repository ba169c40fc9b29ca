// The decision log: entry by entry, and as one JSON document.

#include <nlohmann/json.hpp>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "pyc/compiler_api.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Decision& d) {
  Json out = {{"what", d.what}, {"chosen", d.chosen}, {"reason", d.reason}, {"detail", d.detail}};
  out["alternatives"] = Json::array();
  for (const Alternative& a : d.alternatives) {
    Json row = {{"name", a.name}};
    if (a.rejected.empty()) {
      row["cost_ns"] = a.cost_ns;
    } else {
      row["rejected"] = a.rejected;
    }
    out["alternatives"].push_back(std::move(row));
  }
  return out;
}

Json to_json(const DecisionLog& log) {
  Json out = Json::array();
  for (const Decision& d : log) out.push_back(to_json(d));
  return out;
}

Json to_json(const driver::BreakReport& breaks) {
  Json out = {{"nodes", breaks.nodes},
              {"compiled", breaks.compiled},
              {"compilability_score", breaks.compilability_score()},
              {"count", breaks.breaks},
              {"ops", Json::object()},
              {"first", nullptr},
              {"summary", breaks.summary}};
  for (const auto& [op, count] : breaks.ops) out["ops"][op] = count;
  if (breaks.breaks > 0) {
    out["first"] = {
        {"node", breaks.first_node}, {"op", breaks.first_op}, {"reason", breaks.first_reason}};
  }
  return out;
}

Json log_document(const pyc_model& model) {
  const int64_t budget = model.options.memory_budget;
  const int64_t peak = model.session->memory().peak_bytes;
  const driver::SessionStats stats = model.session->stats();
  Json out = {{"schema", "pyc.decision_log.v1"}};
  out["device"] = model.options.device;
  out["determinism"] = driver::determinism_name(model.options.determinism);
  out["fingerprint"] = model.session->fingerprint();
  out["contract"] = {{"memory_budget", budget < 0 ? Json(nullptr) : Json(budget)},
                     {"peak_bytes", peak},
                     {"kept", budget < 0 || peak <= budget}};
  out["fallback"] = {{"policy", "deny"}, {"count", 0}};
  out["runs"] = stats.runs;
  out["guard_miss_count"] = stats.guard_misses;
  out["breaks"] = to_json(model.session->breaks());
  out["decisions"] = to_json(model.session->decisions());
  out["refusals"] = to_json(model.session->refusals());
  return out;
}

}  // namespace

namespace pyc::capi {

pyc_decision to_c(const Decision& decision) {
  pyc_decision out{};
  out.what = decision.what.c_str();
  out.chosen = decision.chosen.c_str();
  out.reason = decision.reason.c_str();
  out.detail = decision.detail.c_str();
  out.alternative_count = decision.alternatives.size();
  return out;
}

}  // namespace pyc::capi

size_t pyc_model_decision_count(const pyc_model* model) {
  return model == nullptr ? 0 : model->session->log().size();
}

pyc_status pyc_model_decision(const pyc_model* model, size_t index, pyc_decision* decision,
                              pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(check_out_struct(decision, "pyc_decision", sizeof(pyc_decision)));
    PYC_TRY(require_index(index, model->session->log().size(), "decision"));
    write_struct(decision, to_c(model->session->log().at(index)));
    return {};
  });
}

pyc_status pyc_model_alternative(const pyc_model* model, size_t decision, size_t index,
                                 pyc_alternative* alternative, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(check_out_struct(alternative, "pyc_alternative", sizeof(pyc_alternative)));
    PYC_TRY(require_index(decision, model->session->log().size(), "decision"));
    const auto& rows = model->session->log().at(decision).alternatives;
    PYC_TRY(require_index(index, rows.size(), "alternative"));
    pyc_alternative out{};
    out.name = rows[index].name.c_str();
    out.rejected = rows[index].rejected.c_str();
    out.cost_ns = rows[index].cost_ns;
    write_struct(alternative, out);
    return {};
  });
}

pyc_status pyc_model_last_decision_log(const pyc_model* model, char** json, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    // Names come from files and may be no UTF-8.
    return give_text(log_document(*model).dump(2, ' ', false, Json::error_handler_t::replace),
                     json);
  });
}

pyc_status pyc_model_get_refusals(const pyc_model* model, pyc_refusals** refusals,
                                  pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    PYC_TRY(require(refusals, "refusals"));
    *refusals = new pyc_refusals{model->session->refusals()};
    return {};
  });
}

size_t pyc_refusals_count(const pyc_refusals* refusals) {
  return refusals == nullptr ? 0 : refusals->log.size();
}

pyc_status pyc_refusals_get(const pyc_refusals* refusals, size_t index, pyc_decision* decision,
                            pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(refusals, "refusals"));
    PYC_TRY(check_out_struct(decision, "pyc_decision", sizeof(pyc_decision)));
    PYC_TRY(require_index(index, refusals->log.size(), "refusal"));
    write_struct(decision, to_c(refusals->log[index]));
    return {};
  });
}

void pyc_refusals_destroy(pyc_refusals* refusals) { delete refusals; }
