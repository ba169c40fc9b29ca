// Compile options by name.

#include <gtest/gtest.h>

#include <set>

#include "capi/calls.h"

namespace pyc::test {
namespace {

pyc_status set_status(const char* name, const std::string& value) {
  CompileOptions options;
  return pyc_compile_options_set(options.get(), name, value.c_str(), nullptr);
}

std::vector<pyc_option_info> rows() {
  std::vector<pyc_option_info> out(pyc_option_count(), sized<pyc_option_info>());
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(pyc_option(i, &out[i], nullptr), PYC_STATUS_OK);
  }
  return out;
}

// Two values that the option takes, other than its default.
std::vector<std::string> values_of(const pyc_option_info& row) {
  if (row.kind == PYC_OPTION_SWITCH) return {row.initial == std::string("on") ? "off" : "on"};
  if (row.kind == PYC_OPTION_LIST) {
    return *row.form == '\0' ? std::vector<std::string>{"a", "b"}
                             : std::vector<std::string>{"a=1", "b=2"};
  }
  if (row.word_count > 0) return {row.words, row.words + row.word_count};
  if (row.kind == PYC_OPTION_INTEGER) return {std::to_string(row.lo), std::to_string(row.hi)};
  return {"some text"};
}

TEST(CompileOptions, EveryRowIsSetReadAndReset) {
  std::set<std::string> names;
  for (const pyc_option_info& row : rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_GT(std::string(row.help).size(), 5u) << row.name;
    CompileOptions options;
    EXPECT_EQ(options.text(row.name), row.initial) << row.name;
    for (const std::string& value : values_of(row)) {
      options.set(row.name, value);
      const std::string read = options.text(row.name);
      EXPECT_NE(read.find(value), std::string::npos) << row.name << ": " << read;
      EXPECT_EQ(CompileOptions(options).text(row.name), read);
    }
    options.reset(row.name);
    EXPECT_EQ(options.text(row.name), row.initial) << row.name;
  }
  EXPECT_TRUE(names.contains("threads"));
}

TEST(CompileOptions, EveryRowRefusesWhatItDoesNotTake) {
  for (const pyc_option_info& row : rows()) {
    if (row.kind == PYC_OPTION_INTEGER) {
      EXPECT_EQ(set_status(row.name, ""), PYC_STATUS_INVALID_ARGUMENT) << row.name;
      EXPECT_EQ(set_status(row.name, "7q"), PYC_STATUS_INVALID_ARGUMENT) << row.name;
      const char* below = row.lo == -1 ? "-2" : "-1";
      EXPECT_EQ(set_status(row.name, below), PYC_STATUS_INVALID_ARGUMENT) << row.name;
      EXPECT_EQ(set_status(row.name, "99999999999999999999"), PYC_STATUS_INVALID_ARGUMENT)
          << row.name;
    } else if (row.kind == PYC_OPTION_SWITCH) {
      EXPECT_EQ(set_status(row.name, "maybe"), PYC_STATUS_INVALID_ARGUMENT) << row.name;
    } else if (row.kind == PYC_OPTION_WORD) {
      EXPECT_EQ(set_status(row.name, "gpu9"), PYC_STATUS_UNKNOWN_OPTION) << row.name;
    } else if (row.kind == PYC_OPTION_LIST) {
      EXPECT_EQ(set_status(row.name, ""), PYC_STATUS_INVALID_ARGUMENT) << row.name;
    }
  }
  EXPECT_EQ(set_status("lanes", "5"), PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(set_status("dim", "n"), PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(set_status("dim", "n=-2"), PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(set_status("shape", "x=2,,3"), PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(set_status("shape", "x=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"),
            PYC_STATUS_INVALID_ARGUMENT);
}

TEST(CompileOptions, RefusalsNameTheOptionAndChangeNothing) {
  CompileOptions options;
  options.set("threads", 3);
  const Refusal range = refusal(
      [&](pyc_error** e) { return pyc_compile_options_set(options.get(), "threads", "5000", e); });
  EXPECT_EQ(range.message, "threads: expected an integer from 0 to 1024, found '5000'");
  EXPECT_EQ(options.text("threads"), "3");
  const Refusal name = refusal(
      [&](pyc_error** e) { return pyc_compile_options_set(options.get(), "thread", "5", e); });
  EXPECT_EQ(name.status, PYC_STATUS_UNKNOWN_OPTION);
  EXPECT_NE(name.message.find("did you mean 'threads'?"), std::string::npos) << name.message;
  const Refusal word = refusal([&](pyc_error** e) {
    return pyc_compile_options_set(options.get(), "device", "refrence", e);
  });
  EXPECT_NE(word.message.find("did you mean 'reference'?"), std::string::npos) << word.message;
}

TEST(CompileOptions, NullPointersAreRefused) {
  CompileOptions options;
  char* text = nullptr;
  EXPECT_EQ(pyc_compile_options_create(nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_options_copy(nullptr, nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_options_set(nullptr, "threads", "1", nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_options_set(options.get(), nullptr, "1", nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_options_set(options.get(), "threads", nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_options_reset(nullptr, "threads", nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_options_get(nullptr, "threads", &text, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_options_get(options.get(), "threads", nullptr, nullptr),
            PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_options_contract(nullptr, "threads = 1", nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_options_contract(options.get(), nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  pyc_compile_options_destroy(nullptr);
  auto info = sized<pyc_option_info>();
  EXPECT_EQ(pyc_option(pyc_option_count(), &info, nullptr), PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(pyc_option(0, nullptr, nullptr), PYC_STATUS_NULL_POINTER);
}

TEST(CompileOptions, TakeTheClausesOfAContract) {
  CompileOptions options;
  options.contract("threads = 2  # cores\nmemory_budget = 4096\n");
  EXPECT_EQ(options.text("threads"), "2");
  EXPECT_EQ(options.text("memory_budget"), "4096");
  EXPECT_EQ(pyc_compile_options_contract(options.get(), "determinism", nullptr),
            PYC_STATUS_PARSE_ERROR);
  EXPECT_EQ(pyc_compile_options_contract(options.get(), "lanes = 4\nthreads = 3", nullptr),
            PYC_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(options.text("lanes"), "0") << "a refusal changes nothing";
}

TEST(CompileOptions, DecideTheCompile) {
  const auto status_of = [](const CompileOptions& options) {
    try {
      small_model(options);
    } catch (const Error& e) {
      return e.code();
    }
    return static_cast<pyc_status>(PYC_STATUS_OK);
  };
  EXPECT_EQ(status_of(CompileOptions().set("memory_budget", 1)), PYC_STATUS_BUDGET_EXCEEDED);
  EXPECT_EQ(status_of(CompileOptions().set("memory_budget", 0)), PYC_STATUS_OK);
  EXPECT_EQ(status_of(CompileOptions().set("target", "x86_avx2")), PYC_STATUS_UNSUPPORTED);
}

// What was chosen is in the log: all values of the caller, and the compile's own line.
TEST(CompileOptions, AreInTheDecisionLog) {
  const Model model =
      small_model(CompileOptions().set("threads", 2).set("fuse", false).set("cache", false));
  const std::string log = model.decision_log();
  EXPECT_NE(log.find("\"fuse\": \"off\""), std::string::npos) << log;
  EXPECT_NE(log.find("\"threads\": \"2\""), std::string::npos) << log;
  EXPECT_NE(log.find("threads=2 fuse=off"), std::string::npos) << log;
}

}  // namespace
}  // namespace pyc::test
