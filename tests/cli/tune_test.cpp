// pyc tune as a user calls it.

#include "cli/json_output.h"
#include "cli/program.h"

namespace pyc::test {
namespace {

std::string digests(const std::string& arguments) {
  const Json report = json_of("run " + arguments);
  std::string all;
  for (const Json& output : report.at("outputs")) {
    all += output.at("digest").get<std::string>() + " ";
  }
  return all;
}

TEST(TuneCommand, MeasuresOnceAndChangesNoBit) {
  const TempFolder folder;
  const std::string model = kMlp + " --threads 1";
  const std::string kept = model + " --cache-dir " + folder.file("store");
  const std::string before = digests(model);

  const Json first = json_of("tune " + kept);
  EXPECT_GT(first.at("measured"), 0);
  EXPECT_EQ(first.at("known"), 0);
  EXPECT_EQ(first.at("left"), 0);
  EXPECT_EQ(first.at("wrong"), 0);
  EXPECT_EQ(first.at("groups").size(), first.at("measured"));
  EXPECT_GT(first.at("machine").at("gflops"), 0.0);
  for (const Json& group : first.at("groups")) {
    EXPECT_GT(group.at("chosen_us"), 0.0) << group;
    EXPECT_GE(group.at("candidates"), 1) << group;
  }

  const Json again = json_of("tune " + kept);
  EXPECT_EQ(again.at("measured"), 0);
  EXPECT_EQ(again.at("known"), first.at("measured"));
  EXPECT_EQ(again.at("machine"), first.at("machine"));

  EXPECT_EQ(digests(kept), before);
  const Outcome explained = pyc("explain " + kept);
  EXPECT_EQ(explained.exit, 0) << explained.text;
  EXPECT_TRUE(has(explained, "[tuned]")) << explained.text;
}

TEST(TuneCommand, GoesOnWhereABudgetEndedIt) {
  const TempFolder folder;
  const std::string kept = kMlp + " --threads 1 --cache-dir " + folder.file("store");
  const Json none = json_of("tune " + kept + " --budget 0.001");
  EXPECT_EQ(none.at("measured"), 0);
  EXPECT_GT(none.at("left"), 0);
  const Json rest = json_of("tune " + kept);
  EXPECT_EQ(rest.at("measured"), none.at("left"));
  const Outcome said = pyc("tune " + kept);
  EXPECT_EQ(said.exit, 0) << said.text;
  EXPECT_TRUE(has(said, "0 of ")) << said.text;
  EXPECT_TRUE(has(said, "this machine: ")) << said.text;
}

TEST(TuneCommand, RefusesWithoutAFolder) {
  const Outcome o =
      shell("env -u PYC_CACHE_DIR " + std::string(PYC_CLI) + " tune " + kMlp + " 2>&1");
  EXPECT_EQ(o.exit, 2) << o.text;
  EXPECT_TRUE(has(o, "cache_dir: what is measured is kept in a folder")) << o.text;
  EXPECT_TRUE(has(o, "--cache-dir FOLDER")) << o.text;
  EXPECT_EQ(pyc("tune " + kMlp + " --cache-dir x --budget -1").exit, 2);
}

}  // namespace
}  // namespace pyc::test
