// The controller's rules, checked over every sequence of a few kinds of readings.

#include "rails/controller.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/reasons.h"

namespace pyc::rails {
namespace {

constexpr Reading kGood{1000, 100, 0.5, false};
constexpr Reading kSlow{1090, 100, 0.5, false};
constexpr Reading kRare{1000, 94, 0.5, false};
constexpr Reading kTight{1000, 100, 0.71, false};
constexpr Reading kSlower{1200, 90, 0.5, false};  // a breach beside kSlow too
constexpr Reading kFailed{1000, 100, 0.5, true};
// Just inside of every limit.
constexpr Reading kNear{1079, 95.1, 0.69, false};

struct Window {
  Reading reading;
  State before;
  Verdict verdict;
  State after;
};
using History = std::vector<Window>;

void add(const Limits& limits, State& state, const Reading& reading, History& history) {
  const State before = state;
  const Verdict verdict = step(limits, state, reading);
  history.push_back({reading, before, verdict, state});
}

History run(const std::vector<Reading>& readings, bool shadow = false, const Limits& limits = {}) {
  State state{.shadow = shadow};
  History history;
  for (const Reading& r : readings) add(limits, state, r, history);
  return history;
}

std::string actions(const History& history) {
  std::string out;
  for (const Window& w : history) out += ".SRB"[static_cast<size_t>(w.verdict.action)];
  return out;
}

// Visits every sequence of `kinds` up to `length` readings.
void every(const std::vector<Reading>& kinds, size_t length, const Limits& limits, bool shadow,
           const std::function<void(const History&)>& look) {
  History history;
  const std::function<void(const State&)> visit = [&](const State& state) {
    if (!history.empty()) look(history);
    if (history.size() == length) return;
    for (const Reading& r : kinds) {
      State next = state;
      add(limits, next, r, history);
      visit(next);
      history.pop_back();
    }
  };
  visit(State{.shadow = shadow});
}

bool changed(const Window& w) { return w.verdict.action != Action::kHold; }

// Windows since the change before the last window, the last included; all when there was none.
size_t since_change(const History& history) {
  size_t count = 1;
  for (size_t i = history.size() - 1; i-- > 0 && !changed(history[i]);) ++count;
  return count;
}

bool worse(const Limits& l, const Reading& level, const Reading& r) {
  return r.latency_ns > level.latency_ns * (1 + l.latency) ||
         r.throughput < level.throughput * (1 - l.throughput) ||
         r.pressure > level.pressure + l.pressure;
}

// What holds for the last window of any history.
void check_last(const Limits& l, const History& history) {
  const Window& last = history.back();
  const size_t lasted = since_change(history);
  const auto is = [&](Action action) { return last.verdict.action == action; };
  ASSERT_EQ(last.verdict.reason.empty(), is(Action::kHold)) << actions(history);
  if (changed(last)) {
    ASSERT_TRUE(is_reason(last.verdict.reason)) << last.verdict.reason;
  }
  if (is(Action::kSwitch)) {
    ASSERT_EQ(last.before.program, Program::kKnownGood);
    ASSERT_FALSE(last.before.barred);
    ASSERT_GE(lasted, static_cast<size_t>(l.dwell)) << actions(history);
    for (int i = 0; i < l.breach_windows; ++i) {  // all of them breaches, none in the cooldown
      ASSERT_GT(lasted - static_cast<size_t>(i), static_cast<size_t>(l.cooldown));
      const Window& w = history[history.size() - 1 - static_cast<size_t>(i)];
      ASSERT_TRUE(worse(l, w.after.norm, w.reading)) << actions(history);
      ASSERT_FALSE(w.reading.failed);
    }
  }
  if (is(Action::kRollback) || is(Action::kReturn)) {
    ASSERT_EQ(last.before.program, Program::kOther);
    ASSERT_EQ(last.after.program, Program::kKnownGood);
    if (!last.reading.failed) {
      ASSERT_GT(lasted, static_cast<size_t>(l.cooldown)) << actions(history);
    }
  }
  if (is(Action::kReturn)) {
    ASSERT_GE(lasted, static_cast<size_t>(l.dwell + l.cooldown)) << actions(history);
  }
  // A failure of the other program: at once, and for ever.
  if (last.before.program == Program::kOther && last.reading.failed) {
    ASSERT_TRUE(is(Action::kRollback)) << actions(history);
    ASSERT_EQ(last.verdict.reason, "hard_failure");
  }
  for (size_t i = 0; i + 1 < history.size(); ++i) {
    if (history[i].before.program == Program::kOther && history[i].reading.failed) {
      ASSERT_EQ(last.after.program, Program::kKnownGood) << actions(history);
    }
  }
  if (last.before.program == Program::kKnownGood && last.after.program == Program::kOther) {
    ASSERT_TRUE(is(Action::kSwitch) && last.verdict.applied);
  }
}

TEST(Controller, KeepsItsRulesOverEveryShortSequence) {
  int64_t sequences = 0;
  int64_t switches = 0;
  int64_t rollbacks = 0;
  int64_t returns = 0;
  const auto look = [&](const Limits& limits) {
    return [&, limits](const History& h) {
      ++sequences;
      switches += h.back().verdict.action == Action::kSwitch ? 1 : 0;
      rollbacks += h.back().verdict.action == Action::kRollback ? 1 : 0;
      returns += h.back().verdict.action == Action::kReturn ? 1 : 0;
      check_last(limits, h);
    };
  };
  every({kGood, kSlow, kSlower, kFailed}, 9, {}, false, look({}));
  every({kGood, kSlower, kFailed}, 11, {}, false, look({}));
  // Limits under which changes come sooner, so that short sequences have many.
  const Limits eager{.dwell = 1, .cooldown = 0, .breach_windows = 1};
  every({kGood, kSlow, kSlower, kRare, kFailed}, 8, eager, false, look(eager));
  const Limits lasting{.dwell = 2, .cooldown = 3, .breach_windows = 1};
  every({kGood, kSlow, kSlower, kTight}, 9, lasting, false, look(lasting));
  EXPECT_GT(sequences, 1'000'000);
  EXPECT_GT(switches, 1000);
  EXPECT_GT(rollbacks, 1000);
  EXPECT_GT(returns, 100);
}

TEST(Controller, NothingHappensWithoutBreachesInARow) {
  every({kGood, kNear}, 14, {}, false,
        [](const History& h) { ASSERT_EQ(h.back().verdict.action, Action::kHold) << actions(h); });
  EXPECT_EQ(actions(run({kGood, kGood, kGood, kGood, kSlow, kGood, kSlow, kGood, kSlow, kGood})),
            "..........");
}

TEST(Controller, EachLimitIsABreach) {
  for (const auto& [reading, reason] : std::vector<std::pair<Reading, std::string_view>>{
           {kSlow, "latency_breach"}, {kRare, "throughput_breach"}, {kTight, "pressure_breach"}}) {
    const History h = run({kGood, kGood, kGood, kGood, reading, reading});
    EXPECT_EQ(actions(h), ".....S") << reason;
    EXPECT_EQ(h.back().verdict.reason, reason);
  }
}

TEST(Controller, TheOtherProgramHasToBeNoWorseThanWhatWasLeft) {
  const std::vector<Reading> left = {kGood, kGood, kGood, kGood, kSlow, kSlow};
  std::vector<Reading> stays = left;
  stays.insert(stays.end(), 8, kGood);
  EXPECT_EQ(actions(run(stays)), ".....S........");
  std::vector<Reading> ends = left;
  ends.insert(ends.end(), 4, kSlower);
  EXPECT_EQ(actions(run(ends)), ".....S...R");
  std::vector<Reading> fails = left;
  fails.push_back(kFailed);
  fails.insert(fails.end(), 400, kSlower);
  const std::string barred = actions(run(fails));
  EXPECT_EQ(barred.substr(0, 7), ".....SR");
  EXPECT_EQ(barred.find_first_not_of('.', 7), std::string::npos) << "never again";
}

// A disturbance that lasts: the known good program is tried again, each time later.
TEST(Controller, ChangesGetRare) {
  std::vector<Reading> readings(4, kGood);
  readings.insert(readings.end(), 2000, kSlow);
  const std::string found = actions(run(readings));
  std::vector<size_t> at;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] != '.') at.push_back(i);
  }
  ASSERT_GT(at.size(), 4u);
  EXPECT_EQ(run(readings)[at[1]].verdict.reason, "worse_than_norm");
  EXPECT_LT(at.size(), 20u);
  for (size_t i = 2; i + 1 < at.size(); ++i) EXPECT_GE(at[i + 1] - at[i] + 2, at[i] - at[i - 1]);
}

// The known good program is all there is when it fails.
TEST(Controller, AFailureOfTheKnownGoodProgramChangesNothing) {
  EXPECT_EQ(actions(run({kGood, kFailed, kFailed, kFailed, kFailed, kFailed, kFailed})), ".......");
}

TEST(Controller, ShadowModeSaysAndDoesNothing) {
  int64_t recommended = 0;
  every({kGood, kSlow, kFailed}, 9, {}, true, [&](const History& h) {
    ASSERT_EQ(h.back().after.program, Program::kKnownGood);
    ASSERT_FALSE(h.back().verdict.applied);
    recommended += changed(h.back()) ? 1 : 0;
  });
  EXPECT_GT(recommended, 0);
  const std::vector<Reading> readings = {kGood, kGood, kGood, kGood, kSlow, kSlow};
  const History shadow = run(readings, true);
  EXPECT_EQ(actions(shadow), actions(run(readings))) << "the first is what would have been done";
  const Decision d =
      decision_of({}, shadow.back().before, shadow.back().reading, shadow.back().verdict);
  EXPECT_EQ(d.chosen, "recommend switch");
}

DecisionLog log_of(const History& history) {
  DecisionLog log;
  for (const Window& w : history) {
    if (changed(w)) log.push_back(decision_of({}, w.before, w.reading, w.verdict));
  }
  return log;
}

TEST(Controller, ALogIsReplayedFromItsReadings) {
  int64_t replayed = 0;
  every({kGood, kSlow, {1234.5678901234567, 81.3, 1.0 / 3.0, false}, kFailed}, 8, {}, false,
        [&](const History& h) {
          if (!changed(h.back())) return;
          const DecisionLog log = log_of(h);
          ASSERT_TRUE(replay(log).ok()) << replay(log).to_string();
          ASSERT_TRUE(check_decisions(log).ok());
          ++replayed;
        });
  EXPECT_GT(replayed, 100);
}

TEST(Controller, AReplayFindsOtherDecisionsAndNonsense) {
  const DecisionLog log = log_of(run({kGood, kGood, kGood, kGood, kSlow, kSlow}));
  ASSERT_EQ(log.size(), 1u);
  const auto with = [&](const std::function<void(Decision&)>& change) {
    DecisionLog changed_log = log;
    change(changed_log[0]);
    return replay(changed_log).code();
  };
  EXPECT_EQ(with([](Decision&) {}), Code::kOk);
  EXPECT_EQ(with([](Decision& d) { d.chosen = "rollback"; }), Code::kVerifyFailed);
  EXPECT_EQ(with([](Decision& d) { d.reason = "throughput_breach"; }), Code::kVerifyFailed);
  const auto replaced = [](std::string_view from, std::string_view to) {
    return [=](Decision& d) {
      const size_t at = d.detail.rfind(from);
      ASSERT_NE(at, std::string::npos);
      d.detail.replace(at, from.size(), to);
    };
  };
  EXPECT_EQ(with(replaced("1090", "1050")), Code::kVerifyFailed) << "another reading";
  EXPECT_EQ(with(replaced("1090", "nan")), Code::kParseError);
  EXPECT_EQ(with(replaced("1090", "1e300")), Code::kParseError);
  EXPECT_EQ(with(replaced(" 1090", "")), Code::kParseError);
  EXPECT_EQ(with(replaced("1090", "x")), Code::kParseError);
  EXPECT_EQ(with([](Decision& d) { d.detail.clear(); }), Code::kParseError);
  EXPECT_EQ(with([](Decision& d) { d.detail += " 1"; }), Code::kParseError);
}

}  // namespace
}  // namespace pyc::rails
