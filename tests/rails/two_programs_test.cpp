// Two programs of the same bits under the controller, with readings that the test gives.

#include "session/two_programs.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/reasons.h"
#include "driver/compile.h"
#include "exec/run_values.h"
#include "host/values.h"
#include "session/model.h"
#include "session/session.h"

namespace pyc::session {
namespace {

using rails::Reading;

constexpr Reading kGood{1000, 100, 0.5, false};
constexpr Reading kSlow{2000, 50, 0.5, false};
constexpr Reading kSlower{4000, 25, 0.5, false};

constexpr std::string_view kText = R"(graph @g(%x: f32[8,64]) -> (%y) {
  %w = const f32[64,96] random(seed=1, lo=-0.5, hi=0.5)
  %h = matmul(%x, %w)
  %r = relu(%h)
  %y = softmax(%r) {axis=-1}
}
)";

ir::Graph graph() { return driver::parse_model(kText).value(); }

driver::CompileOptions with_threads(int threads) { return {.threads = threads, .cache = false}; }

DynValue input() {
  std::vector<double> numbers(8 * 64);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.01 * static_cast<double>(i % 97);
  return host::floats({8, 64}, numbers);
}

std::vector<std::byte> bytes_of(const Result<std::vector<DynValue>>& outputs) {
  EXPECT_TRUE(outputs.ok()) << outputs.status().to_string();
  return outputs.ok() ? outputs->at(0).bytes.copy() : std::vector<std::byte>();
}

// A known good program for two threads, and what stands for its measured windows.
struct Planted {
  std::vector<Reading> readings;
  size_t windows = 0;
  exec::GrowingLog log;
  std::unique_ptr<runtime::Model> known_good = compile(graph(), with_threads(2)).value();
  std::unique_ptr<TwoPrograms> two;

  explicit Planted(std::vector<Reading> given, bool shadow = false, TwoPrograms::Make make = {})
      : readings(std::move(given)) {
    if (!make) make = [] { return compile(graph(), with_threads(1)); };
    two = std::make_unique<TwoPrograms>(*known_good, std::move(make), shadow, log,
                                        [this](const Reading& measured) {
                                          EXPECT_TRUE(measured.failed || measured.throughput > 0);
                                          return readings[std::min(windows++, readings.size() - 1)];
                                        });
  }
  // As many runs as a window has.
  std::vector<std::byte> run_window() {
    std::vector<std::byte> found;
    for (size_t i = 0; i < TwoPrograms::kWindowRuns; ++i) {
      runtime::Model& model = two->current();
      runtime::RunStats stats;
      const DynValue given = input();
      const DynValue* const inputs[] = {&given};
      const auto outputs = exec::run_values(model, inputs, stats);
      two->note(model, stats.wall_ns, outputs.status());
      const std::vector<std::byte> bytes = bytes_of(outputs);
      EXPECT_TRUE(i == 0 || bytes == found);
      found = bytes;
    }
    return found;
  }
  // Where each window ran: "." the known good program, "o" the other.
  std::string run_windows(size_t count) {
    std::string where;
    std::vector<std::byte> first;
    for (size_t i = 0; i < count; ++i) {
      where += &two->current() == known_good.get() ? '.' : 'o';
      const std::vector<std::byte> bytes = run_window();
      if (i == 0) first = bytes;
      EXPECT_EQ(bytes, first) << "window " << i;
    }
    return where;
  }
  std::string said() const {
    std::string out;
    for (const Decision& d : log.copy()) out += d.what + " " + d.chosen + " " + d.reason + "\n";
    return out;
  }
};

TEST(TwoPrograms, TheOtherOneTakesThePlaceAndGivesItBackWithTheSameBits) {
  Planted p({kGood, kGood, kGood, kGood, kSlow, kSlow, kSlower, kSlower, kSlower, kSlower, kGood});
  EXPECT_EQ(p.run_windows(12), "......oooo..");
  EXPECT_EQ(p.said(), "rails:window switch latency_breach\nrails:window rollback latency_breach\n");
  EXPECT_TRUE(rails::replay(p.log.copy()).ok());
  EXPECT_TRUE(check_decisions(p.log.copy()).ok());
  ASSERT_NE(p.two->other(), nullptr);
  EXPECT_EQ(p.two->other()->stats().runs, 4 * static_cast<int64_t>(TwoPrograms::kWindowRuns));
}

TEST(TwoPrograms, ShadowModeRunsTheKnownGoodOne) {
  Planted p({kGood, kGood, kGood, kGood, kSlow}, true);
  EXPECT_EQ(p.run_windows(9), ".........");
  EXPECT_EQ(p.said(), "rails:window recommend switch latency_breach\n");
  EXPECT_EQ(p.two->other(), nullptr) << "nothing is compiled for it";
  EXPECT_TRUE(rails::replay(p.log.copy()).ok());
}

TEST(TwoPrograms, TheKnownGoodOneStaysWhenACompileFails) {
  int asked = 0;
  Planted p({kGood, kGood, kGood, kGood, kSlow}, false,
            [&]() -> Result<std::unique_ptr<runtime::Model>> {
              ++asked;
              return Status(Code::kCompileFailed, "no room for code");
            });
  EXPECT_EQ(p.run_windows(40), std::string(40, '.'));
  EXPECT_EQ(asked, 1) << "it is not asked for again";
  EXPECT_EQ(p.said(),
            "rails:window switch latency_breach\nrails:program known_good compile_failed\n");
  EXPECT_TRUE(check_decisions(p.log.copy()).ok());
}

TEST(TwoPrograms, AFailureOfTheOtherOneEndsItAtOnce) {
  Planted p({kGood, kGood, kGood, kGood, kSlow, kSlow, {1000, 100, 0.5, true}, kSlow});
  EXPECT_EQ(p.run_windows(6), "......");
  runtime::Model& other = p.two->current();
  ASSERT_NE(&other, p.known_good.get());
  p.two->note(other, 0, Status(Code::kShapeMismatch, "the caller's mistake"));
  EXPECT_EQ(&p.two->current(), &other);
  p.two->note(other, 0, Status(Code::kOutOfMemory, "planted"));
  EXPECT_EQ(&p.two->current(), p.known_good.get());
  EXPECT_EQ(p.run_windows(40), std::string(40, '.')) << "never again";
  EXPECT_EQ(p.said(), "rails:window switch latency_breach\nrails:window rollback hard_failure\n");
}

TEST(TwoPrograms, ManyThreadsRunWhileItChanges) {
  Planted p({kGood, kGood, kGood, kGood, kSlow, kSlow, kSlower, kSlower, kSlower, kSlower, kSlow});
  const std::vector<std::byte> expected = p.run_window();
  std::vector<std::thread> threads;
  std::atomic<int64_t> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 400; ++i) {
        runtime::Model& model = p.two->current();
        runtime::RunStats stats;
        const DynValue given = input();
        const DynValue* const inputs[] = {&given};
        const auto outputs = exec::run_values(model, inputs, stats);
        p.two->note(model, stats.wall_ns, outputs.status());
        if (!outputs.ok() || outputs->at(0).bytes.copy() != expected) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(p.log.size(), 2u);
  EXPECT_TRUE(rails::replay(p.log.copy()).ok());
}

std::string rails_log(const Session& session) {
  std::string out;
  for (const Decision& d : session.decisions()) {
    if (d.what.starts_with("rails")) out += d.chosen + " " + d.reason + "\n";
  }
  return out;
}

Result<std::unique_ptr<Session>> session_with(std::string_view rails_option, auto change) {
  driver::CompileOptions o = with_threads(2);
  o.rails = rails_option;
  change(o);
  return Session::create(graph(), o);
}

TEST(Rails, ASessionRunsTheSameWithAndWithout) {
  const auto none = [](driver::CompileOptions&) {};
  const auto off = session_with("off", none).value();
  const auto on = session_with("on", none).value();
  const std::vector<DynValue> values = {input()};
  const std::vector<std::byte> expected = bytes_of(off->run(values));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(bytes_of(on->run(values)), expected);
  EXPECT_EQ(on->stats().runs, 100);
  EXPECT_EQ(rails_log(*off), "");
  EXPECT_TRUE(rails::replay(on->decisions()).ok());
}

TEST(Rails, AreOffWhereThereIsNothingToChoose) {
  const auto said = [](auto change) {
    auto session = session_with("on", change);
    EXPECT_TRUE(session.ok()) << session.status().to_string();
    return session.ok() ? rails_log(**session) : "";
  };
  EXPECT_EQ(said([](auto& o) { o.determinism = driver::Determinism::kStrict; }),
            "off strict_keeps_one_program\n");
  EXPECT_EQ(said([](auto& o) { o.threads = 1; }), "off no_other_program\n");
  EXPECT_EQ(said([](auto& o) { o.device = "reference"; }), "off no_other_program\n");
}

TEST(Rails, RefuseABudgetThatASecondProgramWouldBreak) {
  const auto budget = session_with("on", [](auto& o) { o.memory_budget = 1 << 20; });
  ASSERT_FALSE(budget.ok());
  EXPECT_EQ(budget.status().code(), Code::kInvalidArgument);
  EXPECT_NE(budget.status().message().find("rails: "), std::string::npos);
}

}  // namespace
}  // namespace pyc::session
