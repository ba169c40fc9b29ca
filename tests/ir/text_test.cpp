#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/convert.h"
#include "ir/graph.h"
#include "ir/random_graph.h"

namespace pyc::ir {
namespace {

using testing::kSample;
using testing::must;
using testing::random_graph;
using testing::test_ops;

TEST(Text, PrintOfParseIsTheSameText) {
  EXPECT_EQ(print(must(parse(kSample, test_ops()))), kSample);
}

TEST(Text, FixpointOnRandomGraphs) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Graph graph = random_graph(seed);
    ASSERT_TRUE(verify_graph(graph).ok()) << seed << verify_graph(graph).status().to_string();
    const std::string text = print(graph);
    const auto parsed = parse(text, test_ops());
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string() << "\n" << text;
    EXPECT_EQ(print(*parsed), text);
    EXPECT_TRUE(verify_graph(*parsed).ok());
  }
}

TEST(Text, FillsInDefaultsAndTypes) {
  const auto graph = must(parse(R"(graph @g(%x:f32[4])->(%t){#no blanks needed
      %a,%b=split(%x)
      # a comment
      %t=tag(%a){weights=[1,2],alpha=2}  # integers for floats
      %e=const f64[0]splat(1) %f = const f16[] dense(1) # statements need no line of their own
    })",
                                test_ops()));
  EXPECT_EQ(print(graph), R"(graph @g(%x: f32[4]) -> (%t) {
  %e = const f64[0] dense()
  %f = const f16[] dense(1.0)
  %a, %b = split(%x) {axis=-1, keep=false} : f32[2], f32[2]
  %t = tag(%a) {alpha=2.0, note="none", sizes=[], weights=[1.0, 2.0]} : f32[2]
}
)");
}

TEST(Text, NodesSayWhereTheyCameFrom) {
  const auto graph =
      must(parse("graph @g(%x: f32[]) -> (%z) {\n\n %y = relu(%x)\n %z = relu(%y)}", test_ops()));
  EXPECT_EQ(graph.nodes[0].loc, "line 3");
  EXPECT_EQ(graph.nodes[1].loc, "line 4");
}

TEST(Text, DenseConstantsOfEveryType) {
  const std::string text = R"(graph @g() -> (%bool) {
  %bool = const bool[2] dense(true, false)
  %i2 = const i2[2] dense(-2, 1)
  %i4 = const i4[2] dense(-8, 7)
  %i8 = const i8[2] dense(-128, 127)
  %i16 = const i16[2] dense(-32768, 32767)
  %i32 = const i32[2] dense(-2147483648, 2147483647)
  %i64 = const i64[2] dense(-9223372036854775808, 9223372036854775807)
  %u2 = const u2[2] dense(0, 3)
  %u4 = const u4[2] dense(0, 15)
  %u8 = const u8[2] dense(0, 255)
  %u16 = const u16[2] dense(0, 65535)
  %u32 = const u32[2] dense(0, 4294967295)
  %u64 = const u64[1,2] dense(0, 18446744073709551615)
  %e2 = const f4e2m1[4] dense(6.0, -0.0, 0.5, -1.5)
  %e8 = const f8e8m0[4] dense(nan, 1.0, 1.7014118e+38, 5.877472e-39)
  %e4z = const f8e4m3fnuz[3] dense(240.0, nan, -0.001)
  %e5z = const f8e5m2fnuz[3] dense(57344.0, nan, -8e-06)
  %e4 = const f8e4m3fn[4] dense(448.0, nan, 0xff, -0.0)
  %e5 = const f8e5m2[4] dense(inf, nan, 0x7d, 2e-05)
  %f16 = const f16[4] dense(inf, nan, 0x7e01, 6e-08)
  %bf16 = const bf16[4] dense(-inf, nan, 0xffc0, 3.39e+38)
  %f32 = const f32[6] dense(-inf, nan, 0x7fc00001, 1e-45, 3.4028235e+38, 0.1)
  %f64 = const f64[4] dense(inf, nan, 0xfff8000000000000, 5e-324)
  %splat = const u64[3] splat(18446744073709551615)
  %random = const f32[3] random(seed=18446744073709551615, lo=-1e-05, hi=0.0)
}
)";
  const Graph graph = must(parse(text, test_ops()));
  EXPECT_EQ(print(graph), text);
  EXPECT_TRUE(verify_graph(graph).ok());
  EXPECT_EQ(load_word(&graph.values[23].constant->bytes[16], DType::kU64), UINT64_MAX);
}

TEST(Text, QuotedNames) {
  std::string every;
  for (int c = 1; c < 256; ++c) every += static_cast<char>(c);
  every += '\0';
  GraphBuilder builder(test_ops(), every);
  const ValueId x = must(builder.input(every, testing::f32({})));
  must(builder.op("tag", {x}, {{"note", every}}, "a b"));
  ASSERT_TRUE(builder.output(x).ok());
  const Graph graph = must(parse(print(builder.graph()), test_ops()));
  EXPECT_EQ(graph.name, every);
  EXPECT_EQ(graph.values[0].name, every);
  EXPECT_EQ(graph.values[1].name, "a b");
  EXPECT_EQ(graph.nodes[0].attrs.at("note"), Attr(every));
  // A quoted name that needs no quotes is the same name.
  EXPECT_TRUE(parse("graph @\"g\"(%\"x\": f32[]) -> (%x) {}", test_ops()).ok());
}

TEST(Text, ExampleOfTheDocumentation) {
  std::ifstream file(PYC_SOURCE_DIR "/docs/IR.md");
  std::stringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  int examples = 0;
  for (size_t at = text.find("```pyc\n"); at != std::string::npos; at = text.find("```pyc\n", at)) {
    at += 7;
    const std::string example = text.substr(at, text.find("```", at) - at);
    const auto graph = parse(example, test_ops());
    ASSERT_TRUE(graph.ok()) << graph.status().to_string() << "\n" << example;
    EXPECT_TRUE(verify_graph(*graph).ok());
    // The last one is what is printed for the one before.
    if (++examples == 2) {
      EXPECT_EQ(print(*graph), example);
    }
  }
  EXPECT_EQ(examples, 2);
}

}  // namespace
}  // namespace pyc::ir
