// What `pyc explain` answers, and that its log is what the schema says.

#include <set>

#include "cli/json_output.h"

namespace pyc::test {
namespace {

const std::string kOpen = std::string(PYC_SOURCE_DIR) + "/tests/open_models/branch_loop.ir";

TEST(DecisionLogSchema, HoldsForLogsOfManyKinds) {
  const TempFolder temp;
  const std::string contract = temp.file("contract.txt");
  std::ofstream(contract) << "memory_budget = 1000000\nthreads = 2\ndevice = cpu\n";
  // json_of checks every log it sees.
  for (const std::string& arguments :
       {"explain " + kMlp, "explain " + kModels + "cnn.ir",
        "run " + kModels + "transformer_block.ir --determinism strict",
        "run " + kMlp + " --contract " + contract, "run " + kOpen + " --shape x=2,4",
        "explain " + kOpen + " --shape x=2,4", "run " + kMlp + " --cache-dir " + temp.path(),
        "run " + kMlp + " --cache-dir " + temp.path(), "run " + kMlp + " --no-fuse --no-reuse",
        "explain " + kMlp + " --device cuda --fallback allow"}) {
    const Json document = json_of(arguments);
    const Json& log = document.contains("log") ? document["log"] : document;
    EXPECT_FALSE(log["decisions"].empty()) << arguments;
  }
}

// The check is one that can fail: every part of a log is needed, and every reason looked up.
TEST(DecisionLogSchema, RefusesWhatIsNoLog) {
  Json log = json_of("explain " + kMlp);
  log.erase("pass_report");
  ASSERT_EQ(log_problem(log), "");
  for (const auto& [name, member] : log.items()) {
    Json without = log;
    without.erase(name);
    EXPECT_NE(log_problem(without), "") << name;
    Json other = log;
    other[name] = Json::array({1});
    EXPECT_NE(log_problem(other), "") << name;
  }
  for (const auto& [name, member] : log["decisions"][0].items()) {
    Json without = log;
    without["decisions"][0].erase(name);
    EXPECT_NE(log_problem(without), "") << name;
  }
  Json other = log;
  other["decisions"][0]["reason"] = "because";
  EXPECT_NE(log_problem(other), "");
  other = log;
  other["decisions"][0]["chosen"] = "";
  EXPECT_NE(log_problem(other), "");
  other = log;
  other["surprise"] = 1;
  EXPECT_NE(log_problem(other), "");
  other = log;
  other["decisions"][0]["alternatives"] = Json::array({{{"name", "x"}, {"rejected", "because"}}});
  EXPECT_NE(log_problem(other), "");
}

std::set<std::string> reasons_of(const Json& log) {
  std::set<std::string> out;
  for (const Json& d : log["decisions"]) out.insert(d["reason"].get<std::string>());
  return out;
}

TEST(DecisionLog, OfModelsThatAreNotOneProgram) {
  const std::set<std::string> run =
      reasons_of(json_of("run " + kOpen + " --shape x=2,4 --rails on")["log"]);
  EXPECT_TRUE(run.contains("open_region"));
  EXPECT_TRUE(run.contains("not_one_program"));
}

TEST(Replay, TakesAControllersDecisionsAgain) {
  const TempFolder temp;
  const std::string path = temp.file("log.json");
  const std::string numbers =
      "4 2 2 0.08 0.05 0.2 0 0 0 24 1 0 0 4 6000 100000 0.25 0 0 0 0 0 7200 90000 0.25 0";
  const auto write = [&](const std::string& chosen) {
    Json log;
    log["decisions"] = Json::array();
    log["decisions"].push_back(
        {{"what", "rails:window"},
         {"chosen", chosen},
         {"reason", "latency_breach"},
         {"detail",
          "latency 7200 ns after 6000, 90000.0 runs a second after 100000.0, memory 0.25 "
          "after 0.25; limits, state, reading: " +
              numbers}});
    std::ofstream(path) << log;
  };
  write("switch");
  EXPECT_EQ(json_of("replay " + path)["decisions"], 1);
  write("rollback");
  const Outcome other = pyc("replay " + path);
  EXPECT_EQ(other.exit, 4);
  EXPECT_TRUE(has(other, "expected the decision 'rails:window -> rollback")) << other.text;
  std::ofstream(path) << "{}";
  EXPECT_EQ(pyc("replay " + path).exit, 3);
  EXPECT_EQ(pyc("replay " + temp.file("none")).exit, 9);
}

TEST(WhyNot, NamesEveryRefusal) {
  const std::string model = write_model("cycle.ir", R"(graph @g(%x: f32[4,4]) -> (%y, %z) {
  %a = exp(%x)
  %t = transpose(%a) {perm=[1,0]}
  %s = softmax(%t) {axis=-1}
  %u = transpose(%s) {perm=[1,0]}
  %y = add(%a, %u)
  %z = cumsum(%x) {axis=1}
}
)");
  const std::string command = "explain " + model + " --why-not ";
  const Outcome cycle = pyc(command + "y,a");
  EXPECT_EQ(cycle.exit, 0);
  EXPECT_TRUE(has(cycle, "could not join")) << cycle.text;
  EXPECT_TRUE(has(cycle, "[would_make_cycle] the groups would wait for one another")) << cycle.text;
  EXPECT_EQ(pyc(command + "a,%y").text, cycle.text) << "either order";
  EXPECT_TRUE(has(pyc(command + "y,z"), "there is nothing to join"));
  EXPECT_TRUE(has(pyc(command + "y,x"), "%x is in no group: it is an input or a constant"));
  const Outcome same = pyc("explain " + kMlp + " --why-not h1,h1");
  EXPECT_TRUE(has(same, "%h1 and %h1 share the group g")) << same.text;
  EXPECT_EQ(json_of(command + "a,y")["text"], cycle.text);
}

TEST(WhyNot, RefusesWhatIsNoPair) {
  const Outcome one = pyc("explain " + kMlp + " --why-not h1");
  EXPECT_EQ(one.exit, 2);
  EXPECT_TRUE(has(one, "expected two values A,B, found 'h1'")) << one.text;
  EXPECT_TRUE(has(pyc("explain " + kMlp + " --why-not h1,logitz"), "did you mean 'logits'?"));
  const Outcome open = pyc("explain " + kOpen + " --why-not h,y");
  EXPECT_EQ(open.exit, 5);
  EXPECT_TRUE(has(open, "not one graph")) << open.text;
}

}  // namespace
}  // namespace pyc::test
