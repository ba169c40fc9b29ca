#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.h"

namespace pyc::test {

using Json = nlohmann::json;

// What the program says with --json, on standard output.
inline Json json_of(const std::string& arguments, int exit = 0) {
  const Outcome o = pyc_out(arguments + " --json");
  EXPECT_EQ(o.exit, exit) << arguments << "\n" << o.text;
  Json parsed = Json::parse(o.text, nullptr, false);
  EXPECT_FALSE(parsed.is_discarded()) << o.text;
  return parsed;
}

}  // namespace pyc::test
