// The decision log: entry by entry, and as one JSON document.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/reasons.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/json.h"
#include "pyc/compiler_api.h"
#include "rails/controller.h"

using namespace pyc;
using namespace pyc::capi;

namespace {

// The struct of the first version.
constexpr size_t kFirstAlternative = offsetof(pyc_alternative, measured_ns);

void write(JsonWriter& json, const Decision& d) {
  json.begin_object();
  json.key("what").text(d.what);
  json.key("chosen").text(d.chosen);
  json.key("reason").text(d.reason);
  json.key("detail").text(d.detail);
  json.key("alternatives").begin_array();
  for (const Alternative& a : d.alternatives) {
    json.begin_object();
    json.key("name").text(a.name);
    if (a.rejected.empty()) {
      json.key("cost_ns").number(a.cost_ns);
      if (a.measured_ns > 0) json.key("measured_ns").number(a.measured_ns);
    } else {
      json.key("rejected").text(a.rejected);
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write(JsonWriter& json, const DecisionLog& log) {
  json.begin_array();
  for (const Decision& d : log) write(json, d);
  json.end_array();
}

// The answers to clauses; of an open model each program gives one, and the last counts.
void write_clauses(JsonWriter& json, const DecisionLog& log) {
  constexpr std::string_view kPrefix = "contract:";
  std::map<std::string, const Decision*> answers;
  for (const Decision& d : log) {
    if (d.what.starts_with(kPrefix)) answers[d.what.substr(kPrefix.size())] = &d;
  }
  json.begin_array();
  for (const auto& [name, answer] : answers) {
    json.begin_object();
    json.key("name").text(name);
    json.key("answer").text(answer->chosen);
    json.key("reason").text(answer->reason);
    json.key("detail").text(answer->detail);
    json.end_object();
  }
  json.end_array();
}

void write_contract(JsonWriter& json, int64_t budget, int64_t peak, const DecisionLog& log) {
  json.begin_object();
  json.key("memory_budget");
  if (budget == 0) {
    json.null();
  } else {
    json.integer(budget);
  }
  json.key("peak_bytes").integer(peak);
  json.key("kept").boolean(budget == 0 || peak <= budget);
  json.key("clauses");
  write_clauses(json, log);
  json.end_object();
}

void write(JsonWriter& json, const session::BreakReport& breaks) {
  json.begin_object();
  json.key("nodes").integer(breaks.nodes);
  json.key("compiled");
  breaks.open_shapes ? json.null() : json.integer(breaks.compiled);
  json.key("compilability_score").number(breaks.compilability_score());
  json.key("count").integer(breaks.breaks);
  json.key("ops").begin_object();
  for (const auto& [op, count] : breaks.ops) json.key(op).integer(count);
  json.end_object();
  json.key("first");
  if (breaks.breaks > 0) {
    json.begin_object();
    json.key("node").text(breaks.first_node);
    json.key("op").text(breaks.first_op);
    json.key("reason").text(breaks.first_reason);
    json.end_object();
  } else {
    json.null();
  }
  json.key("summary").text(breaks.summary);
  json.end_object();
}

const ReasonInfo& reason_at(size_t index) {
  static constexpr ReasonInfo kNone{"", "", ""};
  return index < reason_table().size() ? reason_table()[index] : kNone;
}

std::string log_document(const pyc_model& model) {
  const session::SessionStats stats = model.session->stats();
  JsonWriter json(2);
  json.begin_object();
  json.key("schema").text("pyc.decision_log.v1");
  json.key("device").text(model.options.device);
  json.key("determinism").text(driver::determinism_name(model.options.determinism));
  json.key("options").begin_object();
  for (const driver::OptionRow& row : driver::option_rows()) {
    if (row.offer != driver::OptionOffer::kInternal) {
      json.key(row.name).text(row.text(model.options));
    }
  }
  json.end_object();
  json.key("fingerprint").text(model.session->fingerprint());
  json.key("contract");
  write_contract(json, model.options.memory_budget, model.session->memory().peak_bytes,
                 model.session->decisions());
  json.key("fallback").begin_object();
  json.key("policy").text("host");
  json.key("count").integer(stats.fallbacks);
  json.end_object();
  json.key("runs").integer(stats.runs);
  json.key("guard_miss_count").integer(stats.guard_misses);
  json.key("breaks");
  write(json, model.session->breaks());
  json.key("decisions");
  write(json, model.session->decisions());
  json.key("refusals");
  write(json, model.session->refusals());
  json.end_object();
  return std::move(json).take();
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
    PYC_TRY(check_out_struct(alternative, "pyc_alternative", kFirstAlternative));
    PYC_TRY(require_index(decision, model->session->log().size(), "decision"));
    const auto& rows = model->session->log().at(decision).alternatives;
    PYC_TRY(require_index(index, rows.size(), "alternative"));
    pyc_alternative out{};
    out.name = rows[index].name.c_str();
    out.rejected = rows[index].rejected.c_str();
    out.cost_ns = rows[index].cost_ns;
    out.measured_ns = rows[index].measured_ns;
    write_struct(alternative, out);
    return {};
  });
}

pyc_status pyc_model_last_decision_log(const pyc_model* model, char** json, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(model, "model"));
    return give_text(log_document(*model), json);
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

pyc_status pyc_replay_decision(const pyc_decision* decision, pyc_error** error) {
  return guard(error, [&]() -> Status {
    PYC_TRY(require(decision, "decision"));
    PYC_TRY(check_struct_size(decision->struct_size, sizeof(pyc_decision), "pyc_decision"));
    for (const char* text :
         {decision->what, decision->chosen, decision->reason, decision->detail}) {
      PYC_TRY(require(text, "decision"));
    }
    return rails::replay({{.what = decision->what,
                           .chosen = decision->chosen,
                           .reason = decision->reason,
                           .detail = decision->detail,
                           .alternatives = {}}});
  });
}

size_t pyc_reason_count(void) { return reason_table().size(); }

const char* pyc_reason_name(size_t index) { return reason_at(index).code.data(); }

const char* pyc_reason_where(size_t index) { return reason_at(index).where.data(); }

const char* pyc_reason_meaning(size_t index) { return reason_at(index).meaning.data(); }
