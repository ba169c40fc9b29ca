// Steps that read the same large packed constant go through it in turn from the first byte and
// from the last. No bit depends on it.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "driver/compile.h"
#include "session/model.h"
#include "support/verified.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

// Products with a B of four MiB, three with the same, and one with a B of 128 KiB, twice.
constexpr std::string_view kSteps =
    R"(graph @steps(%x: f32[1,1024]) -> (%y) {
  %w = const f32[1024,1024] random(seed=1, lo=-0.1, hi=0.1)
  %v = const f32[1024,1024] random(seed=2, lo=-0.1, hi=0.1)
  %u = const f32[1024,32] random(seed=3, lo=-0.1, hi=0.1)
  %t = const f32[32,1024] random(seed=4, lo=-0.1, hi=0.1)
  %h1 = matmul(%x, %w)
  %h2 = matmul(%h1, %w)
  %h3 = matmul(%h2, %v)
  %h4 = matmul(%h3, %w)
  %s1 = matmul(%h4, %u)
  %h5 = matmul(%s1, %t)
  %s2 = matmul(%h5, %u)
  %y = matmul(%s2, %t)
}
)";

bool is_backwards(const runtime::Step& step) { return step.kernel().symbol.ends_with("_back"); }

// By the program's steps: 'b' of those that go backwards, '.' of the others.
std::string directions(std::string_view text, const CompileOptions& options) {
  const auto made = compile_program(test::verified(parse_model(text).value()), options);
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  std::string out;
  if (!made.ok()) return out;
  for (const runtime::Step& step : made->program->steps) out += is_backwards(step) ? 'b' : '.';
  return out;
}

std::string digest(std::string_view text, const CompileOptions& options) {
  auto model = session::compile(parse_model(text).value(), options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  auto data = tooling::SeededRun::create(**model, 1);
  EXPECT_TRUE(data.ok());
  const Status status = (*model)->run(data->inputs(), data->outputs());
  EXPECT_TRUE(status.ok()) << status.to_string();
  return data->digest(0).hex();
}

std::string with_rows(std::string_view rows) {
  std::string text(kSteps);
  const std::string_view one = "f32[1,1024]";
  text.replace(text.find(one), one.size(), "f32[" + std::string(rows) + ",1024]");
  return text;
}

TEST(BothWays, EverySecondStepOfAConstantGoesBackwards) {
  for (const char* target : {"", "aarch64_neon", "x86_avx2", "x86_avx512"}) {
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(std::string(target) + ", threads " + std::to_string(threads));
      const CompileOptions options{.threads = threads, .target = target};
      EXPECT_EQ(directions(kSteps, options), ".b......");
      EXPECT_NE(directions(with_rows("3"), options).find('b'), std::string::npos);
    }
  }
}

// Arithmetic takes longer there than B needs to come.
TEST(BothWays, ManyRowsGoAhead) {
  EXPECT_EQ(directions(with_rows("64"), {.threads = 1, .target = "x86_avx512"}), "........");
}

TEST(BothWays, GiveTheBitsOfTheReference) {
  for (const char* rows : {"1", "3"}) {
    const std::string text = with_rows(rows);
    const std::string expected = digest(text, {.device = "reference"});
    for (const int threads : {1, 2, 3, 16}) {
      SCOPED_TRACE(std::string(rows) + " rows, threads " + std::to_string(threads));
      EXPECT_EQ(digest(text, {.threads = threads}), expected);
    }
  }
}

}  // namespace
}  // namespace pyc::driver
