// pyc report as a user calls it; tests/report/page_test.py opens what it writes.

#include <filesystem>

#include "base/files.h"
#include "cli/json_output.h"
#include "cli/program.h"

namespace pyc::test {
namespace {

TEST(ReportCommand, WritesAPageAndSaysWhere) {
  const TempFolder folder;
  const std::string path = folder.file("report.html");
  const Outcome o = pyc("report " + kMlp + " --runs 2 --no-probe -o " + path);
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(o.text.starts_with(path + ": ")) << o.text;
  EXPECT_TRUE(has(o, "2 runs measured")) << o.text;
  const auto page = read_file(path, 5'000'000);
  ASSERT_TRUE(page.ok()) << page.status().to_string();
  EXPECT_TRUE(page->starts_with("<!doctype html>"));
  EXPECT_NE(page->find("\"title\":\"mlp.ir\""), std::string::npos);
}

TEST(ReportCommand, QuietPrintsNothing) {
  const TempFolder folder;
  const std::string path = folder.file("report.html");
  EXPECT_EQ(pyc("report " + kMlp + " --runs 0 --quiet -o " + path).text, "");
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(ReportCommand, JsonIsTheDataAlone) {
  const Json r = json_of("report " + kMlp + " --runs 3 --memory-budget 1000000");
  EXPECT_EQ(r["schema"], "pyc.report.v1");
  EXPECT_EQ(r["device"], "cpu");
  ASSERT_EQ(r["runs"].size(), 3u);
  EXPECT_EQ(r["runs"][0].size(), r["steps"].size());
  EXPECT_EQ(r["groups"].size(), r["steps"].size());
  EXPECT_EQ(r["contract"]["memory_budget"], 1000000);
  EXPECT_EQ(r["contract"]["kept"], true);
  EXPECT_GT(r["roofs"]["gflops"], 0.0);  // the budget is the model's, not the probe's
  EXPECT_GT(r["graphs"]["before"]["nodes"].size(), 0u);
  EXPECT_GT(r["graphs"]["after"]["boxes"].size(), r["groups"].size());
  EXPECT_GE(r["places"][0]["arena"], r["places"][0]["lower_bound"]);
  EXPECT_FALSE(r["decisions"].empty());
  const auto texts = static_cast<int64_t>(r["strings"].size());
  for (const Json& d : r["decisions"]) {
    for (size_t i = 0; i < 4; ++i) EXPECT_LT(d[i].get<int64_t>(), texts);
  }
}

TEST(ReportCommand, TakesCompiledAndOpenModels) {
  const TempFolder folder;
  const std::string pycm = folder.file("mlp.pycm");
  ASSERT_EQ(pyc("compile " + kMlp + " -o " + pycm).exit, 0);
  const Json compiled = json_of("report " + pycm + " --runs 2 --no-probe");
  EXPECT_TRUE(compiled["graphs"].is_null());
  EXPECT_EQ(compiled["runs"].size(), 2u);
  const std::string open = std::string(PYC_SOURCE_DIR) + "/tests/open_models/branch_loop.ir";
  const Json parts = json_of("report " + open + " --shape x=2,4");
  EXPECT_EQ(parts["open"], true);
  EXPECT_TRUE(parts["steps"].empty());
  EXPECT_FALSE(parts["decisions"].empty());
}

TEST(ReportCommand, RefusesWithoutAFileOrWhereItCannotWrite) {
  const Outcome none = pyc("report " + kMlp);
  EXPECT_EQ(none.exit, 2);
  EXPECT_TRUE(has(none, "-o FILE.html")) << none.text;
  const Outcome nowhere = pyc("report " + kMlp + " --runs 0 -o /no/such/folder/report.html");
  EXPECT_EQ(nowhere.exit, 9);
  EXPECT_TRUE(has(nowhere, "cannot write /no/such/folder/report.html")) << nowhere.text;
}

}  // namespace
}  // namespace pyc::test
