// --trace: what commands compile and run, for Perfetto.

#include <map>
#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace pyc::test {
namespace {

using Json = nlohmann::json;

// How many slices of each category the file has; "s" and "f" are the ends of arrows.
std::map<std::string, int> slices_in(const std::string& path) {
  std::ifstream file(path);
  const Json document = Json::parse(file);
  EXPECT_EQ(document["schema"], "pyc.trace.v1");
  std::map<std::string, int> counts;
  for (const Json& event : document["traceEvents"]) {
    const auto phase = event["ph"].get<std::string>();
    if (phase == "X") ++counts[event["cat"].get<std::string>()];
    if (phase == "s" || phase == "f") ++counts[phase];
  }
  return counts;
}

TEST(TraceFiles, OfARunHaveItsStagesKernelsMemoryAndNodes) {
  const TempFolder folder;
  const std::string path = folder.file("t.json");
  ASSERT_EQ(pyc("run " + kMlp + " --threads 1 --repeat 3 --trace " + path).exit, 0);
  auto counts = slices_in(path);
  EXPECT_EQ(counts["run"], 3);
  EXPECT_EQ(counts["memory"], 3);
  EXPECT_EQ(counts["kernel"], 12);  // four steps on one thread
  EXPECT_GE(counts["compile"], 7);
  EXPECT_EQ(counts["node"], 9);  // as many as the model has
  EXPECT_EQ(counts["s"], counts["node"]);
  EXPECT_EQ(counts["f"], counts["node"]);
}

TEST(TraceFiles, OfACompileHaveItsStages) {
  const TempFolder folder;
  const std::string path = folder.file("t.json");
  const std::string artefact = folder.file("m.pycm");
  ASSERT_EQ(pyc("compile " + kMlp + " -o " + artefact + " --trace " + path).exit, 0);
  auto counts = slices_in(path);
  EXPECT_GE(counts["compile"], 6);
  EXPECT_EQ(counts["run"], 0);
  // What is loaded has no stages and no nodes; its runs are recorded.
  ASSERT_EQ(pyc("run " + artefact + " --trace " + path).exit, 0);
  counts = slices_in(path);
  EXPECT_EQ(counts["run"], 1);
  EXPECT_EQ(counts["node"], 0);
}

TEST(TraceFiles, OfABenchmarkHaveTheRunsBeforeThoseMeasured) {
  const TempFolder folder;
  const std::string path = folder.file("t.json");
  ASSERT_EQ(pyc("bench " + kMlp + " --warmup 4 --runs 10 --trace " + path).exit, 0);
  EXPECT_EQ(slices_in(path)["run"], 4);
}

TEST(TraceFiles, OfAnOpenModelHaveAllItsPrograms) {
  const TempFolder folder;
  const std::string path = folder.file("t.json");
  const std::string model = std::string(PYC_SOURCE_DIR) + "/tests/open_models/branch_loop.ir";
  ASSERT_EQ(pyc("run " + model + " --shape x=2,4 --trace " + path).exit, 0);
  auto counts = slices_in(path);
  EXPECT_GE(counts["run"], 2);
  EXPECT_GE(counts["compile"], 14);
}

// How many short runs are recorded is the machine's to say; that it is said is not.
TEST(TraceFiles, OfShortRunsSayHowManyTheyHave) {
  const TempFolder folder;
  const std::string path = folder.file("t.json");
  const std::string model = std::string(PYC_SOURCE_DIR) + "/tests/models/linear_relu.ir";
  const std::string command = "run " + model + " --threads 1 --repeat 2000 --trace " + path;
  Outcome o = pyc(command);
  ASSERT_EQ(o.exit, 0);
  std::ifstream file(path);
  const Json document = Json::parse(file);
  const auto runs = document["runs"].get<int>();
  const auto passed_over = document["runs_passed_over"].get<int>();
  EXPECT_EQ(runs + passed_over, 2000);
  const std::string said = "trace   " + std::to_string(runs) + " of 2000 runs recorded, so that";
  EXPECT_EQ(has(o, said), passed_over > 0) << o.text;

  o = pyc(command + " --trace-all");
  ASSERT_EQ(o.exit, 0);
  EXPECT_FALSE(has(o, "runs recorded")) << o.text;
  EXPECT_EQ(slices_in(path)["run"], 2000);
}

TEST(TraceFiles, ThatCannotBeWrittenAreRefused) {
  const Outcome o = pyc("run " + kMlp + " --trace /no/such/folder/t.json");
  EXPECT_EQ(o.exit, 9);
  EXPECT_TRUE(has(o, "--trace: cannot write /no/such/folder/t.json")) << o.text;
}

}  // namespace
}  // namespace pyc::test
