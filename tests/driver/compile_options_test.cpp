// The table of compile options keeps what it says of each row.

#include "driver/compile_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "session/cache.h"

namespace pyc::driver {
namespace {

// A value other than the default.
std::string other_value(const OptionRow& row) {
  if (row.kind == OptionKind::kSwitch) return row.text({}) == "on" ? "off" : "on";
  if (row.accepts.words != nullptr) return std::string(row.accepts.words().back());
  if (!row.accepts.among.empty()) return std::to_string(row.accepts.among.back());
  if (row.kind == OptionKind::kInteger) return std::to_string(row.accepts.lo + 7);
  return row.accepts.form.empty() ? "name" : "name=2";
}

TEST(OptionTable, TheKeyHasExactlyWhatReachesTheProgram) {
  for (const OptionRow& row : option_rows()) {
    CompileOptions options;
    ASSERT_TRUE(row.set(row, options, other_value(row)).ok()) << row.name;
    const bool keyed = options_key(options) != options_key({});
    EXPECT_EQ(keyed, row.effect != OptionEffect::kRun) << row.name;
    const std::vector<std::string_view> decided = decided_options(options);
    EXPECT_EQ(std::find(decided.begin(), decided.end(), row.name) != decided.end(),
              row.effect == OptionEffect::kProgram)
        << row.name;
    EXPECT_EQ(options_summary(options).substr(0, row.name.size() + 1), std::string(row.name) + "=");
    row.reset(options);
    EXPECT_EQ(options_summary(options), "defaults");
  }
}

// Whatever may change bits is part of the program.
TEST(OptionTable, WhatMayChangeBitsIsInTheKey) {
  for (const OptionRow& row : option_rows()) {
    if (row.bits != OptionBits::kOtherBits) continue;
    EXPECT_EQ(row.effect, OptionEffect::kProgram) << row.name;
  }
}

TEST(OptionTable, DefaultsAreAcceptedAndNamesDiffer) {
  EXPECT_TRUE(check_options({}).ok());
  std::set<std::string_view> names;
  for (const OptionRow& row : option_rows()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

TEST(OptionTable, InternalRowsHaveNoPublicName) {
  EXPECT_EQ(find_option("passes_off").status().code(), Code::kUnknownOption);
  EXPECT_TRUE(find_option("threads").ok());
}

TEST(OptionTable, FieldsSetByHandAreChecked) {
  const auto refused = [](auto change) {
    CompileOptions options;
    change(options);
    return check_options(options);
  };
  EXPECT_EQ(refused([](auto& o) { o.threads = -1; }).code(), Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.lanes = 5; }).code(), Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.target = "abacus"; }).code(), Code::kUnknownOption);
  EXPECT_EQ(refused([](auto& o) { o.device = "abacus"; }).code(), Code::kUnknownOption);
  EXPECT_EQ(refused([](auto& o) { o.memory_budget = -1; }).code(), Code::kInvalidArgument);
}

TEST(OptionTable, TheKeyOfAProgramHasItsThreads) {
  CompileOptions one;
  one.threads = thread_count({});
  EXPECT_EQ(session::program_key(one), session::program_key({})) << "0 is one per core";
}

}  // namespace
}  // namespace pyc::driver
