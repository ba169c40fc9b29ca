// exp where its result is below all normal numbers, and where it is 0: what a mask hides; and where
// its argument is never positive.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "loop/loop.h"
#include "lower/lower.h"
#include "session/model.h"
#include "support/run_groups.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

std::string digest_of_exp(const std::string& text, const char* device, int lanes) {
  CompileOptions options;
  options.device = device;
  options.lanes = lanes;
  auto model = session::compile(parse_model(text).value(), options);
  if (!model.ok()) return model.status().to_string();
  const auto seeded = tooling::SeededRun::create(**model, 1);
  if (!seeded.ok()) return seeded.status().to_string();
  const Status status = (*model)->run(seeded->inputs(), seeded->outputs());
  return status.ok() ? seeded->digest(0).hex() : status.to_string();
}

// Each of them in every lane of a vector of 16, the others beside it.
TEST(CpuExp, LowArgumentsHaveTheBitsOfTheReference) {
  std::vector<std::string> values = {
      "-104.0", "-104.00001", "-103.99999", "-103.98", "-103.97", "-103.9", "-100.0", "-88.0",
      "nan",    "-inf",       "-3.4e+38",   "inf",     "0.0",     "-0.0",   "-87.0",  "1.5"};
  std::string list;
  for (size_t turn = 0; turn < values.size(); ++turn) {
    for (const std::string& v : values) list += (list.empty() ? "" : ", ") + v;
    std::rotate(values.begin(), values.begin() + 1, values.end());
  }
  const std::string text = "graph @g(%x: f32[256]) -> (%y) {\n  %zero = const f32[] splat(0)\n" +
                           ("  %c = const f32[256] dense(" + list + ")\n") +
                           "  %z = mul(%x, %zero)\n  %s = add(%z, %c)\n  %y = exp(%s)\n}\n";
  const std::string expected = digest_of_exp(text, "reference", 0);
  for (const int lanes : {4, 8, 16}) EXPECT_EQ(digest_of_exp(text, "cpu", lanes), expected);
}

// Whether some kernel of the body has the short exp, and whether one has the other.
struct Kinds {
  bool is_short = false;
  bool is_long = false;
};

Kinds kinds_of_exp(const std::string& body, bool fuse) {
  const auto graph = parse_model("graph @g(%x: f32[4,4], %z: f32[4,4]) -> (%y) {\n" + body + "}\n");
  EXPECT_TRUE(graph.ok()) << graph.status().to_string();
  const auto lowered = lower::lower_graph(test::canonical(*graph), {.fuse = fuse});
  EXPECT_TRUE(lowered.ok()) << lowered.status().to_string();
  Kinds kinds;
  for (const lower::Group& group : lowered->groups) {
    const std::string text = loop::print(group.kernel);
    kinds.is_short |= text.find("call exp_nonpositive(") != std::string::npos;
    kinds.is_long |= text.find("call exp(") != std::string::npos;
  }
  return kinds;
}

TEST(Exp, IsShortWhereItsArgumentIsKnownNotToBePositive) {
  for (const char* body : {
           "  %m = reduce_max(%x) {axes=[1]}\n  %s = sub(%x, %m)\n  %y = exp(%s)\n",
           "  %m = reduce_max(%x)\n  %s = sub(%x, %m)\n  %y = exp(%s)\n",
           "  %a = abs(%x)\n  %s = neg(%a)\n  %y = exp(%s)\n",
           "  %a = abs(%x)\n  %s = neg(%a)\n  %h = cast(%s) {to=f16}\n  %y = exp(%h)\n",
           "  %y = softmax(%x)\n",
           "  %y = softmax(%x) {axis=0}\n",
           "  %y = log_softmax(%x)\n",
           "  %h = cast(%x) {to=bf16}\n  %y = softmax(%h)\n",
           "  %y = sigmoid(%x)\n",
           "  %y = softplus(%x)\n",
       }) {
    for (const bool fuse : {true, false}) {
      EXPECT_TRUE(kinds_of_exp(body, fuse).is_short) << body;
      EXPECT_FALSE(kinds_of_exp(body, fuse).is_long) << body;
    }
  }
}

TEST(Exp, IsTheOneForAllArgumentsElsewhere) {
  for (const char* body : {
           "  %y = exp(%x)\n",
           "  %m = reduce_max(%z) {axes=[1]}\n  %s = sub(%x, %m)\n  %y = exp(%s)\n",
           "  %m = reduce_min(%x) {axes=[1]}\n  %s = sub(%x, %m)\n  %y = exp(%s)\n",
           "  %m = reduce_max(%x) {axes=[1]}\n  %s = sub(%m, %x)\n  %y = exp(%s)\n",
           // Each row's maximum stands beside a column.
           "  %m = reduce_max(%x) {axes=[1], keepdims=false}\n  %s = sub(%x, %m)\n"
           "  %y = exp(%s)\n",
           "  %a = abs(%x)\n  %y = exp(%a)\n",
           "  %a = neg(%x)\n  %y = exp(%a)\n",
           // A NaN becomes 6.
           "  %a = abs(%x)\n  %s = neg(%a)\n  %b = cast(%s) {to=f4e2m1}\n"
           "  %h = cast(%b) {to=f32}\n  %y = exp(%h)\n",
           // An infinity less itself is left out.
           "  %y = reduce_log_sum_exp(%x) {axes=[1]}\n",
       }) {
    for (const bool fuse : {true, false}) {
      EXPECT_FALSE(kinds_of_exp(body, fuse).is_short) << body;
      EXPECT_TRUE(kinds_of_exp(body, fuse).is_long) << body;
    }
  }
}

}  // namespace
}  // namespace pyc::driver
