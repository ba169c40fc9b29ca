#include <gtest/gtest.h>

#include <chrono>

#include "ir/graph.h"
#include "ir/mutate.h"
#include "ir/random_graph.h"

namespace pyc::ir {
namespace {

using testing::kSample;
using testing::mutate;
using testing::Random;
using testing::random_graph;
using testing::test_ops;

// A mutated dim must not make a test fill gigabytes.
constexpr int64_t kFewBytes = 1 << 16;

// Parses, and does with the graph what would come next: whatever the text, nothing may crash.
bool survives(std::string_view text) {
  auto graph = parse(text, test_ops(), kFewBytes);
  if (!graph.ok()) {
    EXPECT_LT(graph.status().message().size(), 1000u);
    return false;
  }
  const std::string printed = print(*graph);
  const auto again = parse(printed, test_ops(), kFewBytes);
  EXPECT_TRUE(again.ok()) << again.status().to_string() << "\n" << text;
  EXPECT_EQ(again.ok() ? print(*again) : "", printed);
  // Text can leave out the outputs; everything else the parser has checked already.
  EXPECT_EQ(verify_graph(*graph).ok(), !graph->outputs.empty());
  return true;
}

std::string repeated(std::string_view text, size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(ParseHostile, TruncatedAtEveryByte) {
  for (size_t n = 0; n < kSample.size(); ++n) {
    // The text is whole but for the line end after the last brace.
    EXPECT_EQ(survives(kSample.substr(0, n)), n + 1 >= kSample.size()) << n;
  }
}

TEST(ParseHostile, MegabytesOfGarbage) {
  constexpr size_t kBytes = 1 << 20;
  Random random(3);
  std::string garbage(kBytes, ' ');
  for (char& c : garbage) c = static_cast<char>(random.bits());
  EXPECT_FALSE(survives(garbage));
  const std::string head = "graph @g(%x: f32[2]) -> (%x) {\n";
  EXPECT_FALSE(survives(head + garbage));
  for (const char* part :
       {"(",  "[", "{",  "\"",    "%",    "@",  "-",    "->",      "9",    "a",  ",",
        "\n", "#", "\\", "%x = ", "%x, ", "((", "\xc3", "= relu(", "f32[", "0x", "1e"}) {
    const std::string text = repeated(part, kBytes / 4);
    EXPECT_FALSE(survives(text)) << part;
    EXPECT_FALSE(survives(head + text)) << part;
    EXPECT_FALSE(survives(head + "%y = relu(" + text)) << part;
    EXPECT_FALSE(survives(head + "%y = tag(%x) {sizes=[" + text)) << part;
    EXPECT_FALSE(survives(head + "%y = const f32[" + text)) << part;
    EXPECT_FALSE(survives(head + "%y = const f32[1000000] dense(" + text)) << part;
  }
}

TEST(ParseHostile, HugeDims) {
  for (const char* dims : {"99999999999999999999", "9223372036854775807", "1099511627777",
                           "4294967296,4294967296", "0,9223372036854775807,9223372036854775807",
                           "1048576,1048576,1048576,1048576", "-9223372036854775808"}) {
    const std::string type = std::string("u8[") + dims + "]";
    EXPECT_FALSE(survives("graph @g(%x: " + type + ") -> (%x) {}")) << dims;
    EXPECT_FALSE(survives("graph @g() -> () { %c = const " + type + " splat(1) }")) << dims;
    EXPECT_FALSE(survives("graph @g() -> () { %c = const " + type + " dense(1) }")) << dims;
  }
}

// Time grows with the length of the text, not with its square: 1 MB within seconds even when slow.
TEST(ParseHostile, LargeTextsTakeLinearTime) {
  std::string chain = "graph @g(%x0: f32[2]) -> (%x0) {\n";
  for (int i = 0; i < 50000; ++i) {
    chain += "%x" + std::to_string(i + 1) + " = relu(%x" + std::to_string(i) + ")\n";
  }
  const std::string wide =
      "graph @g(%x: f32[2]) -> (%y) { %y = stack(%x" + repeated(", %x", 300000) + ") }";
  const std::string outputs = "graph @g(%x: f32[2]) -> (%x" + repeated(", %x", 300000) + ") {}";
  const std::string dense =
      "graph @g() -> (%y) { %y = const i8[500001] dense(1" + repeated(",1", 500000) + ") }";
  const std::string name(1 << 20, 'n');
  const std::string named = "graph @g(%" + name + ": f32[]) -> (%" + name + ") {}";
  const std::string comments = repeated("# comment\n", 100000) + "graph @g() -> () {}";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(survives(chain + "}"));
  EXPECT_TRUE(survives(wide));
  EXPECT_TRUE(survives(outputs));
  EXPECT_TRUE(survives(dense));
  EXPECT_TRUE(survives(named));
  EXPECT_TRUE(survives(comments));
  EXPECT_FALSE(survives(chain + "%y = relu(%unknown) }"));
  // Well under a second on a free core; anything quadratic takes many minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

constexpr std::string_view kWords[] = {
    "graph",   "f32",    "bool[]", "const",    "dense(", "splat(1)", "nan",
    "-inf",    "0x7fc1", "%x",     "relu(%x)", "1e999",  "true",     "99999999999999999999",
    "{axis=1}"};

TEST(ParseHostile, MutatedTextsDoNotCrash) {
  std::vector<std::string> texts = {std::string(kSample)};
  for (uint64_t seed = 0; seed < 40; ++seed) texts.push_back(print(random_graph(seed)));
  Random random(12345);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = texts[random.below(texts.size())];
    const size_t edits = random.chance(2) ? 1 : 1 + random.below(4);
    for (size_t k = 0; k < edits; ++k) mutate(random, text, kWords);
    accepted += survives(text) ? 1 : 0;
  }
  // Edits of names and numbers often leave the text valid: both ways were taken.
  EXPECT_GT(accepted, 300);
  EXPECT_LT(accepted, 15000);
}

}  // namespace
}  // namespace pyc::ir
