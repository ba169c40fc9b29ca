// What each command says, as text and as JSON by the schema of docs/cli.md.

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <pyc/pyc.hpp>

#include "base/files.h"
#include "cli/json_output.h"
#include "cli/program.h"

namespace pyc::test {
namespace {

TEST(Commands, RunJson) {
  const Json r = json_of("run " + kMlp + " --memory-budget 1000000");
  ASSERT_EQ(r["outputs"].size(), 1u);
  EXPECT_EQ(r["outputs"][0]["name"], "probabilities");
  EXPECT_EQ(r["outputs"][0]["shape"], Json({8, 10}));
  EXPECT_EQ(r["outputs"][0]["digest"].get<std::string>().size(), 32u);
  EXPECT_GT(r["compile_ms"].get<double>(), 0.0);
  EXPECT_GT(r["run_us"].get<double>(), 0.0);
  EXPECT_GT(r["memory"]["peak_bytes"].get<int64_t>(), 0);
  const Json& log = r["log"];
  EXPECT_EQ(log["schema"], "pyc.decision_log.v1");
  EXPECT_EQ(log["device"], "cpu");
  EXPECT_EQ(log["determinism"], "balanced");
  EXPECT_EQ(log["fingerprint"].get<std::string>().size(), 32u);
  EXPECT_EQ(log["contract"]["memory_budget"], 1000000);
  EXPECT_EQ(log["contract"]["kept"], true);
  EXPECT_EQ(log["fallback"]["count"], 0);
  EXPECT_EQ(log["runs"], 1);
  EXPECT_EQ(log["guard_miss_count"], 0);
  EXPECT_TRUE(log["refusals"].empty());
  for (const Json& d : log["decisions"]) {
    EXPECT_FALSE(d["what"].get<std::string>().empty());
    EXPECT_FALSE(d["reason"].get<std::string>().empty());
  }
}

TEST(Commands, RunReadsAndWritesTensorFiles) {
  const TempFolder temp;
  const std::string& folder = temp.path();
  const std::string copy =
      write_model("copy.ir", "graph @g(%x: f32[2,2]) -> (%y) {\n  %y = identity(%x)\n}\n");
  EXPECT_EQ(pyc("run " + copy + " --seed 4 --output-dir " + folder).exit, 0);
  const Json made = json_of("run " + copy + " --seed 4");
  const Json again = json_of("run " + copy + " --input x=" + folder + "/y.npy");
  EXPECT_EQ(made["outputs"][0]["digest"], again["outputs"][0]["digest"]);
  const Json tensor = json_of("inspect " + folder + "/y.npy");
  EXPECT_EQ(tensor["dtype"], "f32");
  EXPECT_EQ(tensor["shape"], Json({2, 2}));
  EXPECT_EQ(tensor["digest"], made["outputs"][0]["digest"]);

  const Outcome unknown = pyc("run " + copy + " --input z=" + folder + "/y.npy");
  EXPECT_EQ(unknown.exit, 2);
  EXPECT_TRUE(has(unknown, "no input 'z', it has x")) << unknown.text;
  EXPECT_EQ(pyc("run " + copy + " --input x").exit, 2);
  EXPECT_EQ(pyc("run " + copy + " --input x=/no/such.npy").exit, 9);
  const Outcome shape = pyc("run " + kMlp + " --input x=" + folder + "/y.npy");
  EXPECT_EQ(shape.exit, 4);
  EXPECT_TRUE(has(shape, "expected f32[8,64], found f32[2,2]")) << shape.text;
}

TEST(Commands, RunKeepsState) {
  const std::string decoder = "run " + kModels + "decoder_step.ir --threads 1";
  const std::string states = " --state keys=keys.next --state values=values.next";
  const Json once = json_of(decoder + states);
  ASSERT_EQ(once["outputs"].size(), 1u);
  EXPECT_EQ(once["memory"]["state_bytes"], 4096);
  EXPECT_EQ(once["copied_bytes"], 0);
  // The second token finds the first one's key and value.
  const Json twice = json_of(decoder + states + " --repeat 2");
  EXPECT_EQ(once["outputs"][0]["digest"], twice["outputs"][0]["digest"])
      << "the same token at the same place again";
  const Json apart = json_of(decoder + states + " --no-reuse");
  EXPECT_EQ(apart["copied_bytes"], 4096);
  EXPECT_EQ(apart["outputs"][0]["digest"], once["outputs"][0]["digest"]);
  const Outcome text = pyc(decoder + states + " --explain");
  EXPECT_TRUE(has(text, "state   4096 B kept, 0 B copied in the last run")) << text.text;
  EXPECT_TRUE(has(text, "state:keys -> in_place [kernel_allows_it]")) << text.text;
  const std::string counter =
      write_model("counter.ir",
                  "graph @g(%x: f32[2], %n: f32[2]) -> (%y, %m) { %m = add(%n, %x)\n %y = "
                  "mul(%m, %x) }\n");
  EXPECT_NE(json_of("run " + counter + " --state n=m --repeat 2")["outputs"][0]["digest"],
            json_of("run " + counter + " --state n=m")["outputs"][0]["digest"]);
  EXPECT_EQ(json_of("run " + counter + " --state n=k", 2)["error"]["code"], "unknown_option");
  // One kernel stores both results and reads n for each: only a copy brings m home.
  const Outcome plan = pyc("dump " + counter + " --stage plan --state n=m");
  EXPECT_TRUE(has(plan, "i1 state[0] n: 8 bytes, host")) << plan.text;
  EXPECT_TRUE(has(plan, "  state 64\n  copied 8 a run\n")) << plan.text;
}

TEST(Commands, ErrorsAreJsonToo) {
  const Json missing = json_of("run /no/such/model.ir", 9)["error"];
  EXPECT_EQ(missing["code"], "not_found");
  EXPECT_EQ(missing["exit"], 9);
  EXPECT_FALSE(missing["cure"].get<std::string>().empty());
  const std::string path =
      write_model("bad.ir", "graph @g(%x: f32[8,64]) -> (%y) {\n  %y = matmul(%x, %x)\n}\n");
  EXPECT_EQ(json_of("run " + path, 4)["error"]["node"], "y");
  EXPECT_EQ(json_of("rnu", 2)["error"]["code"], "unknown_option");
  EXPECT_EQ(json_of("run " + kMlp + " --memory-budget 1", 6)["error"]["code"], "budget_exceeded");
}

TEST(Commands, BenchTakesAModelThatKeepsState) {
  const std::string path = write_model("sum.ir",
                                       "graph @sum(%x: f32[4], %past: f32[4]) -> (%next) {\n"
                                       "  %next = add(%past, %x)\n"
                                       "}\n");
  const Json r = json_of("bench " + path + " --state past=next --runs 3");
  EXPECT_EQ(r["runs"], 3);
  EXPECT_EQ(r["steps"].size(), 1U);
}

TEST(Commands, Bench) {
  const Json r = json_of("bench " + kMlp + " --runs 20");
  EXPECT_EQ(r["runs"], 20);
  const Json& us = r["latency_us"];
  EXPECT_LE(us["min"], us["p50"]);
  EXPECT_LE(us["p50"], us["p90"]);
  EXPECT_LE(us["p90"], us["p95"]);
  EXPECT_LE(us["p95"], us["p99"]);
  EXPECT_LE(us["p99"], us["max"]);
  EXPECT_GT(r["runs_per_second"].get<double>(), 0.0);
  EXPECT_GT(r["compile_ms_cold"].get<double>(), r["compile_ms_warm"].get<double>());
  const Json& memory = r["memory"];
  EXPECT_EQ(memory["measured_arena_bytes"].get<int64_t>(),
            memory["arena_bytes"].get<int64_t>() + memory["scratch_bytes"].get<int64_t>());
  EXPECT_GT(r["process"]["resident_bytes"].get<int64_t>(), r["planned_peak_bytes"].get<int64_t>());
  EXPECT_GT(r["process"]["code_bytes"].get<int64_t>(), 0);
  EXPECT_GE(r["process"]["kept_program_bytes"].get<int64_t>(),
            r["process"]["code_bytes"].get<int64_t>());
  const Json& bound = r["bound"];
  EXPECT_NEAR(bound["arithmetic"].get<double>() + bound["memory"].get<double>() +
                  bound["other"].get<double>(),
              1.0, 1e-9);
  ASSERT_FALSE(r["steps"].empty());
  for (const Json& step : r["steps"]) {
    EXPECT_FALSE(step["kernel"].get<std::string>().empty());
    EXPECT_GT(step["reached"].get<double>(), 0.0);
  }
  EXPECT_EQ(r["roofs"]["byte_product_gflops"], 0.0);
  const Outcome text = pyc("bench " + kMlp + " --runs 5 --device reference");
  EXPECT_EQ(text.exit, 0) << text.text;
  for (const char* word :
       {"latency p50", "runs/s", "compile cold", "peak    planned", "process ", "bound "}) {
    EXPECT_TRUE(has(text, word)) << text.text;
  }
}

// A machine multiplies more bytes than floats, or fewer.
TEST(Commands, BenchComparesProductsOfBytesWithSuchProducts) {
  const std::string path = write_model("bytes.ir",
                                       "graph @bytes(%x: u8[64,256]) -> (%y) {\n"
                                       "  %w = const i8[256,64] random(seed=1, lo=-9, hi=9)\n"
                                       "  %y = matmul_integer(%x, %w)\n"
                                       "}\n");
  const Json r = json_of("bench " + path + " --runs 3");
  ASSERT_EQ(r["steps"].size(), 1U);
  const Json& step = r["steps"][0];
  const bool units = step["kernel"].get<std::string>().starts_with("i8_matmul");
  const double rate = r["roofs"]["byte_product_gflops"].get<double>();
  EXPECT_EQ(rate > 0.0, units);
  const double roof = units ? rate : r["roofs"]["gflops"].get<double>();
  const double memory = step["bytes"].get<double>() / r["roofs"]["gbytes_per_second"].get<double>();
  const double least = std::max(step["flops"].get<double>() / roof, memory);
  EXPECT_NEAR(step["reached"].get<double>(), least / step["ns"].get<double>(), 1e-6);
}

TEST(Commands, TuneMeasuresOnceAndExplainShowsIt) {
  const TempFolder folder;
  const std::string rest = " " + kMlp + " --threads 1 --cache-dir " + folder.file("cache");
  const Json first = json_of("tune" + rest);
  ASSERT_FALSE(first["groups"].empty());
  EXPECT_EQ(first["measured"], first["groups"].size());
  EXPECT_EQ(first["left"], 0);
  EXPECT_EQ(first["wrong"], 0);
  EXPECT_GT(first["groups"][0]["chosen_us"].get<double>(), 0.0);
  EXPECT_GT(first["machine"]["gflops"].get<double>(), 0.0);
  const Json again = json_of("tune" + rest);
  EXPECT_EQ(again["measured"], 0);
  EXPECT_EQ(again["known"], first["measured"]);
  const Outcome text = pyc("tune" + rest);
  EXPECT_TRUE(has(text, " kernels measured now, ")) << text.text;
  EXPECT_TRUE(has(pyc("explain" + rest), "[tuned]"));
}

TEST(Commands, ExplainOneNode) {
  const Outcome o = pyc("explain " + kMlp + " --node %h1");
  EXPECT_EQ(o.exit, 0) << o.text;
  EXPECT_TRUE(has(o, "%h1 = relu")) << o.text;
  EXPECT_TRUE(has(o, "kernel:g0")) << o.text;
  EXPECT_FALSE(has(o, "kernel:g1")) << o.text;
  EXPECT_FALSE(json_of("explain " + kMlp)["decisions"].empty());
}

TEST(Commands, Inspect) {
  const Json r = json_of("inspect " + kMlp);
  EXPECT_EQ(r["inputs"][0]["name"], "x");
  EXPECT_EQ(r["outputs"][0]["name"], "probabilities");
  EXPECT_EQ(r["nodes"], 9);
  EXPECT_EQ(r["ops"]["matmul"], 3);
  EXPECT_EQ(r["constants"], 6);
  const Json node = json_of("inspect " + kMlp + " --node h1");
  EXPECT_EQ(node["op"], "relu");
  EXPECT_EQ(node["inputs"][0]["name"], "a1");
  EXPECT_TRUE(has(pyc("inspect " + kMlp), "3×matmul"));
}

TEST(Commands, CompareFindsTheFirstDivergentNode) {
  const Json same = json_of("compare " + kMlp + " --a reference --b cpu");
  EXPECT_EQ(same["equal"], true);
  EXPECT_EQ(same["first_divergent"], nullptr);
  EXPECT_EQ(same["nodes"].size(), 9u);
}

// The device "planted" computes one element of %a2, in the middle of the model, wrongly.
TEST(Commands, CompareNamesTheNodeWithAWrongKernel) {
  const std::string compare = std::string(PYC_PLANTED_CLI) + " compare " + kMlp +
                              " --a reference --b planted --determinism fast";
  const Outcome json = shell(compare + " --json 2>/dev/null");
  ASSERT_EQ(json.exit, 1) << json.text;
  const Json different = Json::parse(json.text);
  EXPECT_EQ(different["equal"], false);
  EXPECT_EQ(different["first_divergent"], "a2");
  for (const Json& node : different["nodes"]) {
    const std::string name = node["name"];
    const bool before = name == "m1" || name == "a1" || name == "h1" || name == "m2";
    EXPECT_EQ(node["same_bits"] == true, before) << name;
    if (name == "a2") {
      EXPECT_EQ(node["beyond"], 1);
    }
  }
  const Outcome text = shell(compare + " 2>&1");
  EXPECT_EQ(text.exit, 1);
  EXPECT_TRUE(has(text, "first divergent node: a2 = add, from element 5 on")) << text.text;
  EXPECT_EQ(shell(compare + " --atol 1e9 > /dev/null 2>&1").exit, 0);
}

TEST(Commands, LevelsNeedADeviceThatRounds) {
  const std::string run = std::string(PYC_PLANTED_CLI) + " run " + kMlp + " --device planted";
  EXPECT_EQ(shell(run + " --determinism fast > /dev/null 2>&1").exit, 0);
  for (const std::string level : {"strict", "balanced"}) {
    const Outcome refused = shell(run + " --determinism " + level + " 2>&1");
    EXPECT_NE(refused.exit, 0);
    EXPECT_TRUE(has(refused, "does not keep the determinism level " + level)) << refused.text;
  }
}

// A device that computes nothing, and one that refuses the level.
TEST(Commands, TheCpuTakesADevicesPlaceWhereAllowed) {
  const Outcome refused = pyc("run " + kMlp + " --device null");
  EXPECT_NE(refused.exit, 0);
  EXPECT_TRUE(has(refused, "cannot be run; with the option fallback=allow")) << refused.text;
  const Outcome allowed = pyc("run " + kMlp + " --device null --fallback allow");
  EXPECT_EQ(allowed.exit, 0) << allowed.text;
  EXPECT_TRUE(has(allowed, "note: runs on the cpu: device 'null' computes nothing"))
      << allowed.text;
  const Json run = json_of("run " + kMlp + " --device null --fallback allow");
  EXPECT_EQ(run["log"]["device"], "cpu");
  EXPECT_EQ(run["outputs"], json_of("run " + kMlp)["outputs"]);
  const Outcome planted = shell(std::string(PYC_PLANTED_CLI) + " run " + kMlp +
                                " --device planted --fallback allow 2>&1");
  EXPECT_EQ(planted.exit, 0) << planted.text;
  EXPECT_TRUE(has(planted, "note: runs on the cpu: device 'planted' does not round"))
      << planted.text;
  const std::string path = std::string(PYC_BINARY_DIR) + "/fallback_test.pycm";
  EXPECT_NE(pyc("compile " + kMlp + " --device null -o " + path).exit, 0);
  EXPECT_EQ(json_of("compile " + kMlp + " --device null --fallback allow -o " + path)["device"],
            "cpu");
}

TEST(Commands, AContractIsKeptOrRefusedByName) {
  const std::string path = std::string(PYC_BINARY_DIR) + "/contract_test.txt";
  std::ofstream(path) << "memory_budget = 100000\nthreads = 2\n";
  const Outcome kept = pyc("run " + kMlp + " --contract " + path);
  EXPECT_EQ(kept.exit, 0) << kept.text;
  EXPECT_TRUE(has(kept, "contract memory_budget kept [within_budget] peak ")) << kept.text;
  EXPECT_TRUE(has(kept, "contract threads kept [threads_used] 2 threads")) << kept.text;
  const Json clauses = json_of("run " + kMlp + " --contract " + path)["log"]["contract"]["clauses"];
  ASSERT_EQ(clauses.size(), 2U);
  EXPECT_EQ(clauses[0]["name"], "memory_budget");
  EXPECT_EQ(clauses[0]["answer"], "kept");
  const Outcome other = pyc("run " + kMlp + " --threads 1 --contract " + path);
  EXPECT_EQ(other.exit, 2) << other.text;
  EXPECT_TRUE(has(other, "contract, line 2: threads: the contract says '2'")) << other.text;
  std::ofstream(path) << "memory_budget = 1\n";
  const Outcome refused = pyc("run " + kMlp + " --contract " + path);
  EXPECT_EQ(refused.exit, 6) << refused.text;
  EXPECT_TRUE(has(refused, "memory_budget of host")) << refused.text;
  EXPECT_TRUE(has(pyc("run " + kMlp + " --contract /nowhere"), "cannot read /nowhere"));
}

TEST(Commands, Export) {
  const std::string path = std::string(PYC_BINARY_DIR) + "/commands_test.onnx";
  const Json r = json_of("export " + kMlp + " --optimized -o " + path);
  EXPECT_EQ(r["file"], path);
  EXPECT_EQ(r["optimized"], true);
  EXPECT_GT(r["bytes"].get<int>(), 0);
  EXPECT_EQ(json_of("inspect " + path)["outputs"][0]["shape"], Json({8, 10}));
  EXPECT_EQ(pyc("export " + kMlp).exit, 2);
  EXPECT_EQ(pyc("export " + kMlp + " -o /no/such/folder/m.onnx").exit, 9);
}

TEST(Commands, DumpAndOpt) {
  EXPECT_EQ(json_of("dump " + kMlp + " --stage plan")["stage"], "plan");
  EXPECT_EQ(pyc("opt " + kMlp).text, pyc("dump " + kMlp + " --stage passes").text);
  const Json r = json_of("opt " + kMlp + " --passes decompose,eliminate_dead");
  EXPECT_EQ(r["passes"], Json({"decompose", "eliminate_dead"}));
  EXPECT_GT(r["nodes_after"].get<int>(), r["nodes_before"].get<int>());
}

// pyc.pass_report.v1 of docs/cli.md.
void check_pass_report(const Json& report) {
  EXPECT_EQ(report["schema"], "pyc.pass_report.v1");
  EXPECT_EQ(report["stages"], Json({"verify", "passes", "lower", "select", "plan", "code"}));
  ASSERT_EQ(report["passes"].size(), pyc_pass_count());
  for (size_t i = 0; i < report["passes"].size(); ++i) {
    const Json& pass = report["passes"][i];
    auto info = pyc::sized<pyc_pass_info>();
    ASSERT_EQ(pyc_pass(i, &info, nullptr), PYC_STATUS_OK);
    EXPECT_EQ(pass["name"], info.name);
    EXPECT_EQ(pass["value_changing"], info.value_changing != 0);
    EXPECT_FALSE(pass["summary"].get<std::string>().empty());
    EXPECT_TRUE(pass["required"].is_boolean() && pass["changed"].is_boolean());
    EXPECT_EQ(pass["on"], pass["runs"].get<int>() > 0);
    EXPECT_EQ(pass["ns"].get<int64_t>() > 0, pass["on"]);
    EXPECT_EQ(pass["nodes_before"].get<int>() > 0, pass["on"]);
    EXPECT_EQ(pass["nodes_after"].get<int>() > 0, pass["on"]);
    EXPECT_EQ(pass.size(), 11u) << pass;
    for (const auto& [rule, count] : pass["rewrites"].items()) {
      EXPECT_FALSE(rule.empty());
      EXPECT_GT(count.get<int>(), 0);
    }
  }
}

TEST(Commands, PassReport) {
  const std::string path = std::string(PYC_BINARY_DIR) + "/commands_test_report.json";
  ASSERT_EQ(pyc("opt " + kMlp + " --report " + path).exit, 0);
  const Json whole = Json::parse(read_file(path, 1 << 20).value());
  check_pass_report(whole);
  const auto pass = [](const Json& report, const std::string& name) {
    for (const Json& p : report["passes"]) {
      if (p["name"] == name) return p;
    }
    return Json();
  };
  EXPECT_EQ(pass(whole, "decompose")["rewrites"], Json({{"softmax", 1}}));
  EXPECT_EQ(pass(whole, "decompose")["changed"], true);
  check_pass_report(json_of("explain " + kMlp)["pass_report"]);

  ASSERT_EQ(pyc("opt " + kMlp + " --passes simplify --report " + path).exit, 0);
  const Json one = Json::parse(read_file(path, 1 << 20).value());
  check_pass_report(one);
  EXPECT_EQ(pass(one, "simplify")["on"], true);
  EXPECT_EQ(pass(one, "decompose")["on"], false);

  EXPECT_EQ(pyc("opt " + kMlp + " --report /no/such/folder/r.json").exit, 9);
  const Outcome reordered = pyc("opt " + kMlp + " --passes cse,decompose");
  EXPECT_EQ(reordered.exit, 2);
  EXPECT_TRUE(has(reordered, "their order is fixed")) << reordered.text;
}

TEST(Commands, DoctorRunsEveryDevice) {
  const Json r = json_of("doctor");
  EXPECT_EQ(r["ok"], true);
  EXPECT_EQ(r["checks"].size(), r["cuda"]["available"] == true ? 4u : 3u);
  for (const Json& c : r["checks"]) EXPECT_EQ(c["ok"], true) << c;
  EXPECT_EQ(r["cuda"]["available"].get<bool>(), r["cuda"]["reason"].get<std::string>().empty());
  EXPECT_TRUE(has(pyc("doctor"), "works   device cpu: ran a kernel of each kind"));
}

TEST(Commands, CapabilitiesAndOpsAsJson) {
  const Json r = json_of("capabilities --op matmul");
  ASSERT_EQ(r["ops"].size(), 1u);
  EXPECT_EQ(r["ops"][0]["name"], "matmul");
  EXPECT_FALSE(r["ops"][0]["dtypes"]["cpu"].empty());
  const Json op = json_of("ops --name softmax");
  EXPECT_EQ(op[0]["attributes"][0]["name"], "axis");
}

// docs/ops.md, docs/options.md, docs/errors.md and what else stands below are what the program
// prints; PYC_UPDATE_GOLDEN=1 rewrites them.
void check_page(const std::string& page, const std::string& command,
                const std::string& form = "--markdown") {
  const std::string path = std::string(PYC_SOURCE_DIR) + "/docs/" + page;
  const Outcome o = pyc_out(command + " " + form);
  ASSERT_EQ(o.exit, 0);
  if (std::getenv("PYC_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomic(path, o.text).ok());
  }
  const auto committed = read_file(path, 1 << 20);
  ASSERT_TRUE(committed.ok()) << committed.status().to_string();
  EXPECT_EQ(*committed, o.text);
}

TEST(GeneratedPages, Ops) { check_page("ops.md", "ops"); }
TEST(GeneratedPages, Options) { check_page("options.md", "options"); }
TEST(GeneratedPages, Errors) { check_page("errors.md", "errors"); }
TEST(GeneratedPages, Reasons) { check_page("reasons.md", "reasons"); }
TEST(GeneratedPages, SchemaOfDecisionLogs) {
  check_page("decision_log.schema.json", "reasons", "--schema");
}

}  // namespace
}  // namespace pyc::test
