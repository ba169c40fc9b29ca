// `pyc reasons`: the reason codes of decisions, and the schema of decision logs made of them.

#include <fmt/format.h>

#include "command.h"
#include "report.h"
#include "say.h"

namespace pyc::tool {
namespace {

void print_page() {
  say("# Reason codes\n\n"
      "Every decision of a compile or a run has one of these codes, and so has every alternative "
      "that was out; a refused run has the name of\n"
      "its [error code](errors.md). *about* is the text before the colon of the decision's "
      "`what`. `pyc explain MODEL` shows a model's decisions. Written by\n"
      "`pyc reasons --markdown` from the table in `src/base/reasons.inc`; tests keep this page "
      "equal to it, check every decision they see against it, and\n"
      "`tests/driver/reasons_test.cpp` provokes the codes.\n\n"
      "| code | about | meaning |\n|---|---|---|\n");
  for (size_t i = 0; i < pyc_reason_count(); ++i) {
    say("| `{}` | {} | {} |\n", pyc_reason_name(i), pyc_reason_where(i), pyc_reason_meaning(i));
  }
}

Json type(const char* name) { return {{"type", name}}; }
Json reference(const std::string& name) { return {{"$ref", "#/$defs/" + name}}; }
Json list_of(Json item) { return {{"type", "array"}, {"items", std::move(item)}}; }
Json or_null(const char* name) { return {{"type", std::vector<std::string>{name, "null"}}}; }
Json map_of(Json item) { return {{"type", "object"}, {"additionalProperties", std::move(item)}}; }

// An object that has all of these members.
Json object_of(const Json& members) {
  return {{"type", "object"}, {"properties", members}, {"required", Json(members.names())}};
}

Json all_reasons() {
  Json codes = Json::array();
  for (size_t i = 0; i < pyc_reason_count(); ++i) codes.push_back(pyc_reason_name(i));
  for (pyc_status s = PYC_STATUS_OK + 1; s <= PYC_STATUS_INTERNAL; ++s) {
    codes.push_back(pyc_status_name(s));
  }
  return codes;
}

// One of the two stands in an alternative: its cost, or why it was out.
Json alternative_schema() {
  Json out = object_of({{"name", type("string")}});
  out["properties"]["cost_ns"] = or_null("number");
  out["properties"]["measured_ns"] = type("number");
  out["properties"]["rejected"] = reference("reason");
  return out;
}

Json definitions() {
  Json some_text = type("string");
  some_text["minLength"] = 1;
  return {
      {"reason", {{"enum", all_reasons()}}},
      {"alternative", alternative_schema()},
      {"decision", object_of({{"what", some_text},
                              {"chosen", some_text},
                              {"reason", reference("reason")},
                              {"detail", type("string")},
                              {"alternatives", list_of(reference("alternative"))}})},
      {"clause", object_of({{"name", some_text},
                            {"answer", {{"const", "kept"}}},
                            {"reason", reference("reason")},
                            {"detail", type("string")}})},
      {"break",
       object_of({{"node", type("string")}, {"op", some_text}, {"reason", reference("reason")}})},
  };
}

Json contract_schema() {
  return object_of({{"memory_budget", or_null("integer")},
                    {"peak_bytes", type("integer")},
                    {"kept", type("boolean")},
                    {"clauses", list_of(reference("clause"))}});
}

Json breaks_schema() {
  Json first;
  first["oneOf"] = Json::array();
  first["oneOf"].push_back(reference("break"));
  first["oneOf"].push_back(type("null"));
  return object_of({{"nodes", type("integer")},
                    {"compiled", or_null("integer")},
                    {"compilability_score", or_null("number")},
                    {"count", type("integer")},
                    {"ops", map_of(type("integer"))},
                    {"first", first},
                    {"summary", type("string")}});
}

Json log_schema() {
  const Json log = object_of(
      {{"schema", {{"const", "pyc.decision_log.v1"}}},
       {"device", type("string")},
       {"determinism", {{"enum", std::vector<std::string>{"strict", "balanced", "fast"}}}},
       {"options", map_of(type("string"))},
       {"fingerprint", type("string")},
       {"contract", contract_schema()},
       {"fallback", object_of({{"policy", type("string")}, {"count", type("integer")}})},
       {"runs", type("integer")},
       {"guard_miss_count", type("integer")},
       {"breaks", breaks_schema()},
       {"decisions", list_of(reference("decision"))},
       {"refusals", list_of(reference("decision"))}});
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "The decision log of a PyC model, version 1"},
              {"description",
               "Keys and reasons are added, never removed. Written by `pyc reasons --schema`."}};
  for (size_t i = 0; i < log.names().size(); ++i) out[log.names()[i]] = log.items()[i];
  out["$defs"] = definitions();
  return out;
}

class Reasons final : public Command {
 public:
  std::string name() const override { return "reasons"; }
  std::string summary() const override { return "List the reason codes of decisions"; }
  std::string examples() const override {
    return "  pyc reasons\n"
           "  pyc reasons --markdown > docs/reasons.md\n"
           "  pyc reasons --schema > docs/decision_log.schema.json\n";
  }
  void declare(Options& options) override {
    options.flag("--markdown", markdown_, "Print the page docs/reasons.md");
    options.flag("--schema", schema_, "Print the JSON schema of decision logs");
  }

  int run() override {
    if (schema_) {
      print(log_schema());
      return kExitOk;
    }
    if (markdown_ && !json) {
      print_page();
      return kExitOk;
    }
    Json report = Json::array();
    for (size_t i = 0; i < pyc_reason_count(); ++i) {
      report.push_back({{"code", pyc_reason_name(i)},
                        {"about", pyc_reason_where(i)},
                        {"meaning", pyc_reason_meaning(i)}});
      if (!json) {
        say("{} ({}): {}\n", pyc_reason_name(i), pyc_reason_where(i), pyc_reason_meaning(i));
      }
    }
    if (json) print(report);
    return kExitOk;
  }

 private:
  bool markdown_ = false;
  bool schema_ = false;
};

}  // namespace

std::unique_ptr<Command> make_reasons() { return std::make_unique<Reasons>(); }

}  // namespace pyc::tool
