// Traces through the C ABI.

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "capi/calls.h"

namespace pyc::test {
namespace {

using Json = nlohmann::json;

constexpr const char* kNet =
    "graph @net(%x: f32[64,64]) -> (%y) {\n"
    "  %w = const f32[64,64] random(seed=1, lo=-0.5, hi=0.5)\n"
    "  %product = matmul(%x, %w)\n"
    "  %sum = add(%product, %x)\n"
    "  %y = softmax(%sum) {axis=-1}\n"
    "}\n";

CompileOptions traced(const Trace& trace, int threads = 2) {
  CompileOptions options;
  options.set("threads", threads);
  options.set("cache", false);
  options.trace(trace.get());
  return options;
}

std::vector<Json> events_of(const Trace& trace, const std::string& category) {
  std::vector<Json> out;
  const Json document = Json::parse(trace.json());
  for (const Json& event : document["traceEvents"]) {
    if (event.value("cat", "") == category && event["ph"] == "X") out.push_back(event);
  }
  return out;
}

double end_of(const Json& slice) { return slice["ts"].get<double>() + slice["dur"].get<double>(); }

TEST(Traces, HaveTheStagesOfACompileOneAfterTheOther) {
  const Trace trace;
  const Model model(Graph::parse(kNet), traced(trace));
  std::vector<std::string> stages;
  double end = 0.0;
  for (const Json& stage : events_of(trace, "compile")) {
    const auto name = stage["name"].get<std::string>();
    if (name.starts_with("generate")) continue;
    EXPECT_GE(stage["ts"].get<double>(), end - 0.001) << name;
    end = end_of(stage);
    stages.push_back(name);
  }
  EXPECT_EQ(stages, (std::vector<std::string>{"passes", "lower", "select", "plan", "code",
                                              "assemble", "load"}));
}

TEST(Traces, HaveEveryKernelOfARunOnItsThreads) {
  const Trace trace;
  Model model(Graph::parse(kNet), traced(trace));
  model(Tensor::random(PYC_DTYPE_F32, {64, 64}, 7));
  model(Tensor::random(PYC_DTYPE_F32, {64, 64}, 8));
  const std::vector<Json> runs = events_of(trace, "run");
  ASSERT_EQ(runs.size(), 2u);
  std::set<std::pair<int, int>> steps;        // with their run
  std::set<std::tuple<int, int, int>> parts;  // the same with the part
  for (const Json& kernel : events_of(trace, "kernel")) {
    const int run = kernel["ts"] < runs[1]["ts"] ? 0 : 1;
    EXPECT_GE(kernel["ts"].get<double>(), runs[run]["ts"].get<double>());
    EXPECT_LE(end_of(kernel), end_of(runs[run]) + 0.001);
    EXPECT_NE(kernel["args"]["kernel"], "");
    const int step = kernel["args"]["step"].get<int>();
    steps.insert({run, step});
    EXPECT_TRUE(parts.insert({run, step, kernel["args"]["part"].get<int>()}).second);
  }
  EXPECT_EQ(steps.size(), 2 * pyc_model_step_count(model.get()));
}

TEST(Traces, LeadFromNodesToTheirKernels) {
  const Trace trace;
  Model model(Graph::parse(kNet), traced(trace));
  for (int i = 0; i < 3; ++i) model(Tensor::random(PYC_DTYPE_F32, {64, 64}, 7));
  const Json document = Json::parse(trace.json());
  std::set<std::string> nodes;
  std::map<int, std::pair<int, int>> flows;  // by id: begins, ends
  for (const Json& event : document["traceEvents"]) {
    if (event.value("cat", "") != "node") continue;
    if (event["ph"] == "X") nodes.insert(event["name"].get<std::string>());
    if (event["ph"] == "s") ++flows[event["id"].get<int>()].first;
    if (event["ph"] == "f") ++flows[event["id"].get<int>()].second;
  }
  EXPECT_EQ(nodes, (std::set<std::string>{"product (line 3)", "sum (line 4)", "y (line 5)"}));
  EXPECT_EQ(flows.size(), nodes.size());
  for (const auto& [id, ends] : flows) EXPECT_EQ(ends, std::pair(1, 1)) << id;
}

TEST(Traces, CountTheMemoryOfRuns) {
  const Trace trace;
  Model model(Graph::parse(kNet), traced(trace));
  model(Tensor::random(PYC_DTYPE_F32, {64, 64}, 7));
  const Json document = Json::parse(trace.json());
  std::vector<int64_t> bytes;
  for (const Json& event : document["traceEvents"]) {
    if (event["ph"] == "C") bytes.push_back(event["args"]["bytes"].get<int64_t>());
  }
  EXPECT_EQ(bytes, (std::vector<int64_t>{model.memory().measured_arena_bytes, 0}));
}

TEST(Traces, StopWhenTold) {
  Trace trace;
  Model model(Graph::parse(kNet), traced(trace));
  model(Tensor::random(PYC_DTYPE_F32, {64, 64}, 7));
  trace.stop();
  model(Tensor::random(PYC_DTYPE_F32, {64, 64}, 7));
  const Model other(Graph::parse(kNet), traced(trace));
  EXPECT_EQ(events_of(trace, "run").size(), 1u);
  const Json document = Json::parse(trace.json());
  EXPECT_EQ(document["runs_left_out"], 0);
}

// A run of one small step is shorter than what its record is worth, or nearly so: how many are
// recorded is the machine's to say, that none is lost is not.
constexpr const char* kTiny =
    "graph @tiny(%x: f32[4]) -> (%y) {\n"
    "  %y = relu(%x)\n"
    "}\n";

TEST(Traces, CountTheRunsThatTheyPassOver) {
  constexpr int kRuns = 1000;
  const Trace trace;
  Model model(Graph::parse(kTiny), traced(trace, 1));
  for (int i = 0; i < kRuns; ++i) model(Tensor::random(PYC_DTYPE_F32, {4}, 7));
  const Trace::Runs runs = trace.runs();
  EXPECT_GE(runs.recorded, 32);
  EXPECT_EQ(runs.recorded + runs.passed_over, kRuns);
  const Json document = Json::parse(trace.json());
  EXPECT_EQ(document["runs"], runs.recorded);
  EXPECT_EQ(document["runs_passed_over"], runs.passed_over);
  int64_t lane = 0;
  for (const Json& event : document["traceEvents"]) {
    if (event["name"] == "runs not recorded") lane = event["args"]["runs"].get<int64_t>();
  }
  EXPECT_LE(lane, runs.passed_over);  // those behind the last that is recorded are not in it
  EXPECT_GE(lane, runs.passed_over - 1000);
}

TEST(Traces, HaveEveryRunWhereThatIsAsked) {
  Trace trace;
  trace.every_run();
  Model model(Graph::parse(kTiny), traced(trace, 1));
  for (int i = 0; i < 1000; ++i) model(Tensor::random(PYC_DTYPE_F32, {4}, 7));
  EXPECT_EQ(events_of(trace, "run").size(), 1000u);
  EXPECT_EQ(trace.runs().passed_over, 0);
}

TEST(Traces, OutliveTheirHandleInModels) {
  auto trace = std::make_unique<Trace>();
  Model model(Graph::parse(kNet), traced(*trace));
  trace.reset();
  EXPECT_EQ(model(Tensor::random(PYC_DTYPE_F32, {64, 64}, 7)).size(), 1u);
}

// Tracing changes no bit, and what is not traced allocates nothing.
TEST(Traces, ChangeNothing) {
  const Trace trace;
  CompileOptions plain = traced(trace);
  plain.trace(nullptr);
  Model watched(Graph::parse(kNet), traced(trace));
  Model other(Graph::parse(kNet), plain);
  const auto digest = [](Model& model) {
    return model(Tensor::random(PYC_DTYPE_F32, {64, 64}, 7))[0].digest();
  };
  EXPECT_EQ(digest(watched), digest(other));
  EXPECT_EQ(events_of(trace, "run").size(), 1u);
}

TEST(Traces, RefuseNull) {
  EXPECT_EQ(pyc_trace_create(nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_trace_stop(nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  char* json = nullptr;
  EXPECT_EQ(pyc_trace_json(nullptr, &json, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_trace_every_run(nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  int64_t count = 0;
  EXPECT_EQ(pyc_trace_runs(nullptr, &count, &count, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_trace_runs(Trace().get(), &count, nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  EXPECT_EQ(pyc_compile_options_trace(nullptr, nullptr, nullptr), PYC_STATUS_NULL_POINTER);
  pyc_trace_destroy(nullptr);
}

}  // namespace
}  // namespace pyc::test
