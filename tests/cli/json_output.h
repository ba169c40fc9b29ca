#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/json_schema.h"
#include "cli/program.h"

namespace pyc::test {

using Json = nlohmann::json;

// What is wrong with a decision log by docs/decision_log.schema.json; "" when nothing is.
inline std::string log_problem(const Json& log) {
  static const JsonSchema schema(
      Json::parse(std::ifstream(std::string(PYC_SOURCE_DIR) + "/docs/decision_log.schema.json"),
                  nullptr, false));
  return schema.problem(log);
}

// Every decision log of the document fits its schema; pyc explain adds a pass report to one.
inline void expect_sound_logs(const Json& document) {
  if (document.is_object() && document.value("schema", Json()) == "pyc.decision_log.v1") {
    Json log = document;
    log.erase("pass_report");
    EXPECT_EQ(log_problem(log), "");
  }
  if (!document.is_structured()) return;
  for (const Json& item : document) expect_sound_logs(item);
}

// What the program says with --json, on standard output.
inline Json json_of(const std::string& arguments, int exit = 0) {
  const Outcome o = pyc_out(arguments + " --json");
  EXPECT_EQ(o.exit, exit) << arguments << "\n" << o.text;
  Json parsed = Json::parse(o.text, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << o.text;
  expect_sound_logs(parsed);
  return parsed;
}

}  // namespace pyc::test
