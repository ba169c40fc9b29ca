// Every operator of ONNX has run in a test: in a case of an op that is written as it, or in a model
// of these tests. Counted from what ran, in this test and in a process that runs all the others.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/sanitizers.h"
#include "export/case_graph.h"
#include "export/round_trip.h"
#include "host/regex.h"
#include "import/onnx/rules.h"
#include "onnx/ran_operators.h"
#include "onnx/run_model.h"
#include "ops/registry.h"
#include "support/temp_folder.h"

namespace pyc::onnx::test {
namespace {

// Takes the operators that cases of ops are written as and that run.
void run_cases(std::set<std::string>& missing) {
  for (const ir::OpDef* op : ops::all_ops().all()) {
    for (const pyc::test::Case& c : pyc::test::cases_of(*op)) {
      if (c.refusal) continue;
      const auto graph = ir::parse(pyc::test::graph_text(c, *op), ops::all_ops());
      ASSERT_TRUE(graph.ok()) << graph.status().to_string();
      const auto bytes = export_model(*graph);
      if (!bytes.ok()) continue;
      const std::set<std::string> has = operators_of(*bytes);
      if (std::ranges::none_of(has, [&](const auto& name) { return missing.contains(name); })) {
        continue;
      }
      auto again = pyc::test::import_again(*bytes);
      ASSERT_TRUE(again.ok()) << again.status().to_string();
      if (!pyc::test::outputs_of(std::move(*again)).ok()) continue;
      for (const std::string& name : has) missing.erase(name);
    }
  }
}

// Runs all other tests of this program.
int run_others(const std::string& file) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(kRanOperators, file.c_str(), 1);
    unsetenv("GTEST_TOTAL_SHARDS");
    const int quiet = dup2(fileno(std::tmpfile()), STDOUT_FILENO);
    if (quiet < 0) _exit(1);
    execl("/proc/self/exe", "pyc_onnx_tests", "--gtest_filter=-EveryOperator.*", nullptr);
    _exit(1);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(EveryOperator, HasRun) {
  if (kSanitized) GTEST_SKIP() << "each test has run with sanitizers by itself";
  std::set<std::string> missing;
  for (const std::string_view name : rule_names("")) missing.emplace(name);
  ASSERT_GT(missing.size(), 190U);
  run_cases(missing);
  const TempFolder folder;
  const std::string file = folder.file("ran");
  ASSERT_EQ(run_others(file), 0);
  std::ifstream in(file);
  for (std::string name; std::getline(in, name);) missing.erase(name);
  // What an optional library is needed for.
  const auto matched = host::match_fully(DynValue::of_strings({1}, {"a"}), "a");
  if (matched.status().code() == Code::kUnsupported) missing.erase("RegexFullMatch");
  EXPECT_EQ(missing, std::set<std::string>{});
}

}  // namespace

}  // namespace pyc::onnx::test
