// Policies: samples change choices and no bit; nonsense, crashes and endless loops are refused.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/clock.h"
#include "base/files.h"
#include "base/reasons.h"
#include "driver/compile.h"
#include "plan/plan.h"
#include "policy/child.h"
#include "session/model.h"
#include "support/compare.h"
#include "support/temp_folder.h"

namespace pyc::test {
namespace {

const std::string kFolder = std::string(PYC_POLICIES) + "/";
const std::string kSamples = std::string(PYC_SOURCE_DIR) + "/tests/policy/samples";
const std::string kModels = std::string(PYC_SOURCE_DIR) + "/tests/models/";

std::vector<std::string> sample_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSamples)) {
    names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

driver::CompileOptions with_policy(const std::string& name, bool isolated = false) {
  driver::CompileOptions o = cpu_options(0, 2);
  o.policy = kFolder + name + ".so";
  o.policy_isolated = isolated;
  return o;
}

ir::Graph model(const std::string& name) {
  return driver::parse_model(read_file(kModels + name, 1 << 20).value()).value();
}

Result<std::unique_ptr<runtime::Model>> compiled(const std::string& name, bool isolated = false) {
  return session::compile(model("mlp.ir"), with_policy(name, isolated));
}

std::string said(const runtime::Model& model) {
  std::string out;
  for (const Decision& d : model.decisions()) out += d.to_string() + "\n";
  return out;
}

TEST(PolicySamples, AreThreeOfUnder200Lines) {
  EXPECT_EQ(sample_names().size(), 3u);
  for (const std::string& name : sample_names()) {
    std::ifstream in(kSamples + "/" + name + ".c");
    const auto lines = std::count(std::istreambuf_iterator<char>(in), {}, '\n');
    EXPECT_GT(lines, 10) << name;
    EXPECT_LT(lines, 200) << name;
  }
}

// The same bits as one group per node on the reference, over many graphs.
TEST(PolicySamples, ChangeNoBit) {
  for (const std::string& name : sample_names()) {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      const DrawnGraph drawn = draw_graph(seed, {.max_nodes = 6});
      ASSERT_EQ(difference(drawn, {with_policy(name)}), "") << name << ", seed " << seed;
    }
  }
}

TEST(PolicySamples, AnswerTheSameEveryTimeAndInAChild) {
  for (const std::string& name : sample_names()) {
    for (const char* file : {"mlp.ir", "cnn.ir", "transformer_block.ir"}) {
      const auto log = [&](bool isolated) {
        auto made = session::compile(model(file), with_policy(name, isolated));
        EXPECT_TRUE(made.ok()) << made.status().to_string();
        if (!made.ok()) return std::string();
        EXPECT_TRUE(check_decisions((*made)->decisions()).ok());
        std::string text = said(**made);
        for (const std::string_view where : {"in a child process", "in this process",
                                             "policy_isolated=on", "policy_isolated=off"}) {
          for (size_t at = text.find(where); at != std::string::npos; at = text.find(where)) {
            text.erase(at, where.size());
          }
        }
        std::erase(text, ' ');
        return text;
      };
      const std::string first = log(false);
      EXPECT_EQ(log(false), first) << name << " " << file;
      EXPECT_EQ(log(true), first) << name << " " << file;
    }
  }
}

TEST(PolicySamples, DecideWhatTheySay) {
  const auto plain = session::compile(model("mlp.ir"), cpu_options(0, 2)).value();
  const auto order = compiled("little_memory_order").value();
  EXPECT_NE(said(*order).find("policy -> little memory order [asked]"), std::string::npos);
  EXPECT_NE(said(*order).find("plan:order -> given_order [chosen_by_policy]"), std::string::npos);
  const auto apart = session::compile(model("transformer_block.ir"), with_policy("store_shared"));
  EXPECT_NE(said(**apart).find("[kept_apart]"), std::string::npos);
  const auto kernels = compiled("plain_kernels").value();
  EXPECT_NE(said(*kernels).find("[chosen_by_policy]"), std::string::npos);
  EXPECT_NE(said(*kernels).find("policy:memory_budget -> 1073741824 bytes"), std::string::npos);
  EXPECT_EQ(said(*plain).find("policy"), std::string::npos);
}

// On a graph whose written order keeps four large values at a time.
TEST(PolicySamples, AnOrderNeedsLessMemory) {
  constexpr std::string_view text = R"(graph @g(%x: f32[256,64], %w: f32[64,64]) -> (%y) {
  %a = matmul(%x, %w)
  %b = matmul(%a, %w)
  %c = matmul(%b, %w)
  %ra = reduce_sum(%a) {axes=[0]}
  %rb = reduce_sum(%b) {axes=[0]}
  %rc = reduce_sum(%c) {axes=[0]}
  %s = add(%ra, %rb)
  %y = add(%s, %rc)
}
)";
  driver::CompileOptions o = with_policy("little_memory_order");
  const auto by_policy = session::compile(driver::parse_model(text).value(), o).value();
  o.policy.clear();
  const auto plain = session::compile(driver::parse_model(text).value(), o).value();
  EXPECT_LE(by_policy->memory().arena_bytes, plain->memory().arena_bytes);
  EXPECT_EQ(difference(DrawnGraph{driver::parse_model(text).value(),
                                  {std::vector<std::byte>(256 * 64 * 4),
                                   std::vector<std::byte>(64 * 64 * 4)},
                                  {}},
                       {with_policy("little_memory_order")}),
            "");
}

struct Planted {
  const char* name;
  Code code;
  const char* message;
};

void expect_refused(const Planted& p, bool isolated) {
  driver::CompileOptions o = with_policy(std::string("bad_") + p.name, isolated);
  if (std::string_view(p.name) == "LARGE_BUDGET") o.memory_budget = 1 << 20;
  if (std::string_view(p.name) == "REJECTED_KERNEL") o.kernels = {"f32_matmul"};
  const auto made = session::compile(model("mlp.ir"), o);
  ASSERT_FALSE(made.ok()) << p.name;
  EXPECT_EQ(made.status().code(), p.code) << made.status().to_string();
  EXPECT_NE(made.status().message().find(p.message), std::string::npos)
      << made.status().to_string();
  EXPECT_NE(made.status().message().find("policy"), std::string::npos);
}

constexpr std::array kNonsense = {
    Planted{"NO_SUCH_KERNEL", Code::kInvalidArgument, "policy 'planted': group g0: expected -1 or"},
    Planted{"REJECTED_KERNEL", Code::kInvalidArgument, "(excluded_by_caller)"},
    Planted{"STEP_TWICE", Code::kInvalidArgument, "found 0 twice"},
    Planted{"STEP_BEYOND", Code::kInvalidArgument, "policy 'planted': order: expected each step"},
    Planted{"BACKWARDS", Code::kVerifyFailed, "policy 'planted': order of steps: [wrong_contents]"},
    Planted{"LARGE_BUDGET", Code::kInvalidArgument, "expected 0 to 1048576 bytes, found 1048577"},
    Planted{"NEGATIVE_BUDGET", Code::kInvalidArgument, "expected 0 or more, found -5"},
    Planted{"TINY_BUDGET", Code::kBudgetExceeded, "at most 1 bytes"},
    Planted{"OTHER_VERSION", Code::kInvalidArgument, "expected version 1"},
    Planted{"SHORT_STRUCT", Code::kInvalidArgument, "found version 1 with 8"},
    Planted{"NO_NAME", Code::kInvalidArgument, "expected a name"},
    Planted{"ODD_NAME", Code::kInvalidArgument, "expected a name"},
    Planted{"NOTHING", Code::kInvalidArgument, "it gave no policy"},
};

TEST(BadPolicies, NonsenseIsRefusedByName) {
  for (const Planted& p : kNonsense) {
    expect_refused(p, false);
    expect_refused(p, true);
  }
}

TEST(BadPolicies, ACrashIsARefusalInAChild) {
  expect_refused({"CRASH", Code::kInvalidArgument, "it crashed (signal 6)"}, true);
  expect_refused({"CRASH_LATE", Code::kInvalidArgument, "it crashed (signal "}, true);
  expect_refused({"EXIT", Code::kInvalidArgument, "its process gave no answer"}, true);
  EXPECT_TRUE(compiled("plain_kernels", true).ok()) << "the next compile is right";
}

TEST(BadPolicies, AnEndlessLoopIsEndedAtItsLimit) {
  const int64_t start = now_ns();
  expect_refused({"HANG", Code::kBudgetExceeded, "it was ended after 2000 ms"}, true);
  const int64_t ms = (now_ns() - start) / 1'000'000;
  EXPECT_GE(ms, 2000);
  EXPECT_LT(ms, 20'000);
}

TEST(BadPolicies, FilesThatAreNone) {
  driver::CompileOptions o = cpu_options(0, 2);
  for (const bool isolated : {false, true}) {
    o.policy_isolated = isolated;
    o.policy = "/no/such/policy.so";
    EXPECT_EQ(session::compile(model("mlp.ir"), o).status().code(), Code::kUnsupported);
    const TempFolder temp;
    o.policy = temp.file("text.so");
    std::ofstream(o.policy) << "not a library";
    EXPECT_EQ(session::compile(model("mlp.ir"), o).status().code(), Code::kUnsupported);
  }
}

// A library that changed is asked again.
TEST(Policies, NothingIsKeptForThem) {
  const TempFolder temp;
  driver::CompileOptions o = with_policy("little_memory_order");
  o.cache = true;
  o.cache_dir = temp.path();
  o.policy = temp.file("now.so");
  for (const char* name : {"little_memory_order", "plain_kernels"}) {
    std::filesystem::copy_file(kFolder + name + ".so", o.policy,
                               std::filesystem::copy_options::overwrite_existing);
    const auto made = session::compile(model("mlp.ir"), o);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    const bool ordered = said(**made).find("little memory order") != std::string::npos;
    EXPECT_EQ(ordered, std::string_view(name) == "little_memory_order");
    EXPECT_FALSE((*made)->stats().cache_hit);
  }
}

TEST(Policies, TheProgramTakesThem) {
  const std::string command = std::string(PYC_CLI) + " run " + kModels + "mlp.ir --policy " +
                              kFolder + "plain_kernels.so --policy-isolated --explain 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> chunk{};
  while (const size_t n = fread(chunk.data(), 1, chunk.size(), pipe)) text.append(chunk.data(), n);
  EXPECT_EQ(pclose(pipe), 0) << text;
  EXPECT_NE(text.find("policy"), std::string::npos) << text;
}

TEST(Child, ReturnsWhatItWasGiven) {
  EXPECT_EQ(policy::run_in_child(2000, [] { return std::string("an answer"); }).value(),
            "an answer");
  EXPECT_EQ(policy::run_in_child(2000, [] { return std::string(); }).value(), "");
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(policy::run_in_child(5000, [&] { return large; }).value(), large);
  EXPECT_EQ(policy::run_in_child(2000, []() -> std::string { throw 1; }).status().code(),
            Code::kInvalidArgument);
}

TEST(Child, IsEndedWhenItSaysNothingOrNeverEnds) {
  const auto endless = [] {
    volatile bool on = true;
    while (on) {
    }
    return std::string();
  };
  EXPECT_EQ(policy::run_in_child(50, endless).status().code(), Code::kBudgetExceeded);
}

TEST(GivenOrder, HasEveryStepOnce) {
  const auto check = [](std::vector<int64_t> order, size_t count) {
    return plan::check_order(order, count).code();
  };
  EXPECT_EQ(check({2, 0, 1}, 3), Code::kOk);
  EXPECT_EQ(check({2, 0}, 3), Code::kInvalidArgument);
  EXPECT_EQ(check({2, 0, 1, 1}, 3), Code::kInvalidArgument);
  EXPECT_EQ(check({0, 1, -1}, 3), Code::kInvalidArgument);
  EXPECT_EQ(check({0, 1, int64_t{1} << 40}, 3), Code::kInvalidArgument);
}

}  // namespace
}  // namespace pyc::test
