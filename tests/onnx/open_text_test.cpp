// The text form of open graphs.

#include "open/text.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "import/onnx/rules.h"
#include "ir/mutate.h"
#include "ir/random_graph.h"
#include "onnx/run_model.h"
#include "onnx/seeds.h"

namespace pyc::onnx::test {
namespace {

using ir::testing::mutate;
using ir::testing::Random;
using open::OpenGraph;
using open::parse_open;
using Shared = std::shared_ptr<const OpenGraph>;

// A mutated dim must not make a test fill gigabytes.
constexpr int64_t kFewBytes = 1 << 16;

constexpr std::string_view kSample =
    R"(open graph @"every kind"(%x: f32[N,3], %c: bool[], %s: sequence(f32[?]), %o: optional(string[*]), %"a b": ?[batch=4,"n-1",0], %u: ?) -> (%y, %x) {
  %w = const f32[2,3] dense(1.0, -0.5, nan, inf, 0x7fc00001, 3e-10)
  %z = const i64[4] splat(-1)
  %e = const u8[0] dense()
  %words = const string[2] dense("a\n\"", "") : string[K]
  %seq = const sequence(f32[1] dense(1.0), f32[2] splat(2.0))
  %none = const nothing
  %a, _ = onnx.TopK[18](%x, %z) {axis=-1, largest=1} @top : f32[N,1], ?
  %b = onnx.Transpose[18](%x) {perm=[1,0]}
  () = onnx.Relu[18](_) {empty=[], f=0.5, floats=floats[], many=[0.5,1.0,nan], "odd name"="text", strings=strings[], t=const f32[] dense(7.0), ty=type optional(sequence(i64[?])), words=["a","b"]} @"relu ü"
  %y = onnx.If[18](%c) {else_branch=region @no() captures (%k = %b) -> (%k) {
  }, then_branch=region @yes() captures (%x = %x : f32[N,3], %b = %b) -> (%r) {
    %w = outer %w
    %one = const i64[] dense(1)
    %r = onnx.Loop[18](%one, _, %x) {body=region @""(%i: i64[], %go: bool[], %v: f32[*]) captures (%b = %b) -> (%go, %t) {
      %w = outer %w
      %t = onnx.Add[18](%v, %w)
    }} @loop
  }} @choice
}
)";

std::string text_of(const Result<Shared>& graph) {
  return graph.ok() ? open::print(**graph) : graph.status().to_string();
}

// Prints, parses and prints again.
void expect_round_trip(const OpenGraph& graph, const std::string& what) {
  const std::string text = open::print(graph);
  EXPECT_EQ(text_of(parse_open(text, open_ops())), text) << what;
}

TEST(OpenText, PrintOfParseIsTheSameText) {
  EXPECT_EQ(text_of(parse_open(kSample, open_ops())), kSample);
}

TEST(OpenText, TheDocumentsExampleIsAsPrinted) {
  std::ifstream file(PYC_SOURCE_DIR "/docs/IR.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string fence = "```pyc-open\n";
  const size_t begin = page.find(fence) + fence.size();
  const std::string text = page.substr(begin, page.find("```", begin) - begin);
  EXPECT_EQ(text_of(parse_open(text, open_ops())), text);
}

TEST(OpenText, ModelsRoundTrip) {
  for (const auto& [name, bytes] : seeds()) {
    const auto imported = read(bytes);
    ASSERT_TRUE(imported.ok()) << imported.status().to_string();
    expect_round_trip(*imported->graph, name);
  }
}

TEST(OpenText, ALoopIsReadable) {
  const auto imported = read(loop_seed());
  ASSERT_TRUE(imported.ok());
  EXPECT_EQ(open::print(*imported->graph), R"(open graph @g(%x: f32[2,3]) -> (%y) {
  %n = const i64[] dense(3)
  %y = onnx.Loop[18](%n, _, %x) {body=region @g(%i: i64[], %go: bool[], %s: f32[2,3]) captures (%x = %x) -> (%go, %t) {
    %t = onnx.Add[18](%s, %x) @n : f32[*]
  }} @n : f32[*]
}
)");
}

// Functions are written out: their values have one name more than once.
TEST(OpenText, EqualNamesAreToldApart) {
  const Bytes twice = function("Twice", {"a"}, {"b"}, {node("Add", {"a", "a"}, {"b"})});
  const auto imported = read(model({.inputs = {value("x", kF32, {2})},
                                    .outputs = {unshaped("z", kF32)},
                                    .nodes = {node("Twice", {"x"}, {"y"}, {}, "first", "f"),
                                              node("Twice", {"y"}, {"z"}, {}, "second", "f")}},
                                   18, with_functions({twice})));
  ASSERT_TRUE(imported.ok()) << imported.status().to_string();
  expect_round_trip(*imported->graph, "functions");
  OpenGraph nameless;
  nameless.values.resize(3);
  nameless.values[2].name = "v1";
  nameless.inputs = {0, 1, 2};
  EXPECT_EQ(open::print(nameless), "open graph @\"\"(%v0: ?, %v1: ?, %v1.2: ?) -> () {\n}\n");
  for (open::OpenValue& v : nameless.values) v.name = "a";
  nameless.values[0].name = "a.2";
  EXPECT_EQ(open::print(nameless), "open graph @\"\"(%a.2: ?, %a: ?, %a.3: ?) -> () {\n}\n");
}

// Whatever cases lie beside the checkout.
TEST(OpenText, BackendCasesRoundTrip) {
  const char* given = std::getenv("PYC_ONNX_BACKEND");
  const std::filesystem::path folder =
      given != nullptr ? given : PYC_SOURCE_DIR "/../shared/onnx-backend";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no cases in " << folder;
  constexpr uintmax_t kMost = 1 << 20;  // text is several times as long
  int compared = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx" || entry.file_size() > kMost) continue;
    const auto imported = import_file(entry.path());
    if (!imported.ok()) continue;  // without a meaning here
    expect_round_trip(*imported->graph, entry.path());
    ++compared;
  }
  EXPECT_GT(compared, 0);
  RecordProperty("compared", compared);
}

Result<std::vector<DynValue>> run_graph(Shared graph, const std::vector<DynValue>& inputs) {
  driver::CompileOptions options;
  options.device = "reference";
  options.threads = 1;
  options.cache = false;
  PYC_ASSIGN(const auto made, session::Session::create(std::move(graph), options));
  return made->run(inputs);
}

TEST(OpenText, AReadGraphComputesTheSame) {
  const DynValue x = f32({2, 3}, {1, -2, 3, 0.5F, 0, -0.25F});
  for (const auto& [name, bytes] : seeds()) {
    const auto imported = read(bytes);
    ASSERT_TRUE(imported.ok());
    const auto parsed = parse_open(open::print(*imported->graph), open_ops());
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
    std::vector<DynValue> inputs{x};
    if (name == "regions") inputs = {DynValue::of_bool(true), x};
    const auto expected = run_graph(imported->graph, inputs);
    const auto found = run_graph(*parsed, inputs);
    ASSERT_TRUE(expected.ok()) << name << expected.status().to_string();
    ASSERT_TRUE(found.ok()) << name << found.status().to_string();
    EXPECT_EQ((*found)[0].to_string(), (*expected)[0].to_string());
    EXPECT_TRUE((*found)[0].bytes == (*expected)[0].bytes) << name;
  }
}

TEST(OpenText, RefusalsSayWhere) {
  const std::string head = "open graph @g(%x: f32[N]) -> (%x) {\n";
  const std::pair<std::string, std::string> cases[] = {
      {"graph @g() -> () {}", "1:1: expected 'open', found 'graph'"},
      {"open graph @g(%x: f33[N]) -> () {}", "1:19: expected a type, like f32[N,3], found 'f33'"},
      {"open graph @g(%x: f32[-1]) -> () {}", "1:23: expected a dim from 0 to"},
      {"open graph @g(%x: f32[\"\"]) -> () {}", "1:23: expected a name that is not empty"},
      {"open graph @g(%x: sequence(f32[]) -> () {}", "1:35: expected ',' or ')', found '->'"},
      {"open graph @g() captures (%x = %x) -> () {}", "1:17: expected '->', found 'captures'"},
      {"open graph @g(%x: ?, %x: ?) -> () {}", "1:22: %x is defined twice"},
      {"open graph @g() -> (%y) {}", "1:21: %y is not defined before it is used"},
      {head + " %y = onnx.Rellu[14](%x) }",
       "2:7: unknown op 'onnx.Rellu', did you mean 'onnx.Relu'?"},
      {head + " %y = onnx.Relu[0](%x) }", "2:7: op 'onnx.Relu' is not known in version 0"},
      {head + " %y = onnx.Relu(%x) }", "2:16: expected '[', found '('"},
      {head + " %y = onnx.Relu[x](%x) }", "2:17: expected the version of the op's set"},
      {head + " %y = onnx.Relu[14](%z) }", "2:21: %z is not defined before it is used"},
      {head + " %y = onnx.Relu[14](%x) {a=1, a=2} }", "2:31: attribute 'a' is given twice"},
      {head + " %y = onnx.Relu[14](%x) {a=[1, 0.5]} }", "2:32: expected a value of type i64"},
      {head + " %y = onnx.Relu[14](%x) {a=99999999999999999999} }",
       "2:28: expected a value of type i64"},
      {head + " %y = onnx.Relu[14](%x) {a=b} }", "2:28: expected a value of type f64, found 'b'"},
      {head + " %c = const f32[2] dense(1) }", "2:26: expected 2 elements for f32[2], found 1"},
      {head + " %c = const f32[N] dense(1) }", "2:17: expected a dim from 0"},
      {head + " %c = const string[2] dense(\"a\") }", "2:19: expected 2 strings for string[2]"},
      {head + " %c = const digest(1) }", "2:13: expected a type, like f32[2,3], found 'digest'"},
      {head + " %c, %d = const nothing }", "2:11: expected one name for a constant"},
      {head + " %c = outer %x }", "2:13: there is no graph around this one"},
      {head + " %y = onnx.If[18](%x) {b=region @b() -> (%r) { %r = onnx.Relu[18](%x) }} }",
       "2:67: %x is not defined before it is used; it is one to capture"},
      {head + " %y = onnx.If[18](%x) {b=region @b() -> () { %r = outer %x }} }",
       "2:57: '%x' is no constant"},
      {head + "} trailing", "2:3: expected end of text after the graph"},
  };
  for (const auto& [text, message] : cases) {
    const auto graph = parse_open(text, open_ops());
    ASSERT_FALSE(graph.ok()) << text;
    EXPECT_EQ(graph.status().message().substr(0, message.size()), message) << text;
    const Code code = graph.status().code();
    EXPECT_TRUE(code == Code::kParseError || code == Code::kUnknownOp) << text;
  }
  const auto generated =
      parse_open(head + " %c = const f32[1000000] splat(1) }", open_ops(), kFewBytes);
  EXPECT_EQ(generated.status().code(), Code::kBudgetExceeded);
}

TEST(OpenText, DeepTextsAreRefused) {
  std::string types = "open graph @g(%x: ";
  std::string regions = "open graph @g(%x: ?) -> () {";
  std::string items = regions + " %c = const ";
  for (int i = 0; i < 100000; ++i) {
    types += "sequence(";
    items += "sequence(";
    regions += "() = onnx.If[18]() {b=region @b() -> () {";
  }
  for (const std::string& text : {types, regions, items}) {
    expect_refused(parse_open(text, open_ops()), Code::kParseError, "128 levels of nesting");
  }
}

TEST(OpenText, LargeTextsTakeLinearTime) {
  std::string chain = "open graph @g(%x0: f32[N]) -> (%x0) {\n";
  for (int i = 0; i < 50000; ++i) {
    chain += "%x" + std::to_string(i + 1) + " = onnx.Relu[14](%x" + std::to_string(i) + ")\n";
  }
  const auto graph = parse_open(chain + "}", open_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  EXPECT_EQ((*graph)->nodes.size(), 50000U);
}

constexpr std::string_view kWords[] = {
    "open",        "f32[N]",   "const",    "outer %w",
    "region @b()", "captures", "dense(",   "splat(1)",
    "sequence(",   "type ?",   "%x",       "nothing",
    "string[",     "-inf",     "{axis=1}", "99999999999999999999"};

// Whether it was accepted; then it is as good as any.
bool text_survives(const std::string& text) {
  const auto graph = parse_open(text, open_ops(), kFewBytes);
  if (!graph.ok()) {
    const std::string& message = graph.status().message();
    const size_t colon = message.find(": ");
    EXPECT_NE(colon, std::string::npos) << message;
    EXPECT_EQ(message.substr(0, colon).find_first_not_of("0123456789:"), std::string::npos)
        << message;
    EXPECT_LT(message.size(), 1000U);
    return false;
  }
  const std::string printed = open::print(**graph);
  EXPECT_EQ(text_of(parse_open(printed, open_ops(), kFewBytes)), printed) << text;
  (void)session::foresee_breaks(**graph);
  return true;
}

// Larger tensors beside the text, one content once, also where a region has its own.
TEST(OpenText, LargeTensorsAreStoredBesideTheText) {
  const std::string text = R"(open graph @g(%x: f32[100]) -> (%y) {
  %a = const f32[100] random(seed=1, lo=0.0, hi=1.0)
  %b = const f32[2] dense(1.0, 2.0)
  %y = onnx.Add[18](%x, %a)
})";
  const auto graph = parse_open(text, open_ops());
  ASSERT_TRUE(graph.ok()) << graph.status().to_string();
  const open::StoredText printed = open::print_stored(**graph);
  ASSERT_EQ(printed.stored.size(), 1U);
  EXPECT_EQ(printed.stored[0].size(), 400U);
  EXPECT_NE(printed.text.find("%a = const f32[100] stored(0)"), std::string::npos) << printed.text;
  EXPECT_NE(printed.text.find("%b = const f32[2] dense(1.0, 2.0)"), std::string::npos);
  const auto again = parse_open(printed.text, open_ops(), kFewBytes, printed.stored);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(open::print(**again), open::print(**graph));

  expect_refused(parse_open(printed.text, open_ops()), Code::kParseError,
                 "2:30: 0 tensors are stored beside the text");
  const std::vector<SharedBytes> wrong{SharedBytes(std::vector<std::byte>(8))};
  expect_refused(parse_open(printed.text, open_ops(), kFewBytes, wrong), Code::kParseError,
                 "expected 400 stored bytes for f32[100], found 8");
}

TEST(OpenText, DamagedTextsDoNotCrash) {
  std::vector<std::string> texts{std::string(kSample)};
  for (const auto& [name, bytes] : seeds()) texts.push_back(open::print(*read(bytes)->graph));
  Random random(2024);
  int accepted = 0;
  constexpr int kTimes = 10000;
  for (int i = 0; i < kTimes; ++i) {
    std::string text = texts[random.below(texts.size())];
    const size_t edits = random.chance(2) ? 1 : 1 + random.below(4);
    for (size_t k = 0; k < edits; ++k) mutate(random, text, kWords);
    accepted += text_survives(text) ? 1 : 0;
  }
  // Both ways were taken.
  EXPECT_GT(accepted, kTimes / 100);
  EXPECT_LT(accepted, kTimes / 2);
}

TEST(OpenText, TruncatedAtEveryByte) {
  for (size_t n = 0; n < kSample.size(); ++n) {
    EXPECT_EQ(text_survives(std::string(kSample.substr(0, n))), n + 1 >= kSample.size()) << n;
  }
}

}  // namespace
}  // namespace pyc::onnx::test
