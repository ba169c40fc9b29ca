// Plans made by hand: a group that runs twice, values that are copied to another place
// and back on a queue of their own, results in place. They are accepted as they are and refused
// with any part of them spoilt.

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "lowered_builder.h"
#include "plan/liveness.h"
#include "plan/metrics.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

constexpr int64_t kBytes = 256;

// x → a → b → c → y = c + a, element by element, 256 bytes each; g1 takes its elements reversed.
class HandMade : public testing::Test {
 protected:
  HandMade() : lowered_(make()) { plan_.instances = {instance("x", BufferClass::kHostInput, x_)}; }

  lower::LoweredGraph make() {
    x_ = builder_.input("x", kBytes);
    a_ = builder_.elementwise({x_}, "a");
    b_ = builder_.reversed({a_}, "b");
    c_ = builder_.elementwise({b_}, "c");
    y_ = builder_.elementwise({c_, a_}, "y");
    builder_.output(y_);
    return std::move(builder_).finish();
  }

  static Instance instance(std::string name, BufferClass cls, ir::ValueId value) {
    Instance i;
    i.name = std::move(name);
    i.cls = cls;
    i.value = value;
    i.bytes = kBytes;
    return i;
  }
  // Gives its number.
  uint32_t temporary(std::string name, ir::ValueId value, int64_t offset, uint32_t place = 0) {
    Instance i = instance(std::move(name), BufferClass::kTemporary, value);
    i.offset = offset;
    i.place = place;
    plan_.instances.push_back(std::move(i));
    return static_cast<uint32_t>(plan_.instances.size() - 1);
  }
  uint32_t output() {
    plan_.instances.push_back(instance("y", BufferClass::kOutput, y_));
    return static_cast<uint32_t>(plan_.instances.size() - 1);
  }

  void run(uint32_t group, std::vector<uint32_t> reads, uint32_t write) {
    Step step;
    step.group = group;
    step.reads = std::move(reads);
    step.writes = {write};
    plan_.steps.push_back(std::move(step));
  }
  void copy(uint32_t from, uint32_t to, uint32_t queue) {
    Step step;
    step.kind = StepKind::kCopy;
    step.queue = queue;
    step.reads = {from};
    step.writes = {to};
    plan_.steps.push_back(std::move(step));
  }
  void event(StepKind kind, uint32_t number, uint32_t queue) {
    Step step;
    step.kind = kind;
    step.queue = queue;
    step.event = number;
    plan_.steps.push_back(std::move(step));
  }
  void record(uint32_t number, uint32_t queue) { event(StepKind::kRecord, number, queue); }
  void wait(uint32_t number, uint32_t queue) { event(StepKind::kWait, number, queue); }
  void drop(size_t step) { plan_.steps.erase(plan_.steps.begin() + static_cast<int>(step)); }

  // Both verifiers' answer to the plan with uses and metrics made from it, "" when they accept it.
  std::string verdict() {
    if (Status s = verify_schedule(lowered_, plan_); !s.ok()) return s.message();
    set_uses(plan_);
    for (uint32_t p = 0; p < plan_.places.size(); ++p) plan_.places[p].metrics = measure(plan_, p);
    return verify_allocation(plan_).message();
  }

  LoweredBuilder builder_;
  ir::ValueId x_{}, a_{}, b_{}, c_{}, y_{};
  lower::LoweredGraph lowered_;
  ExecutionPlan plan_;
};

// a is computed, its memory given to c, and a computed again where b was.
class Recompute : public HandMade {
 protected:
  Recompute() {
    const uint32_t a1 = temporary("a", a_, 0);
    const uint32_t b = temporary("b", b_, 256);
    const uint32_t c = temporary("c", c_, 0);
    const uint32_t a2 = temporary("a again", a_, 256);
    const uint32_t y = output();
    run(0, {0}, a1);
    run(1, {a1}, b);
    run(2, {b}, c);
    run(0, {0}, a2);
    run(3, {c, a2}, y);
  }
};

TEST_F(Recompute, IsAccepted) {
  EXPECT_EQ(verdict(), "");
  EXPECT_EQ(plan_.host().arena_bytes, 512);
  EXPECT_EQ(plan_.host().lower_bound_bytes, 512);
  EXPECT_EQ(print(plan_), R"(instances:
  i0 host_input[0] x: 256 bytes, host, steps 0-4
  i1 temporary a: 256 bytes, host at 0, steps 0-1
  i2 temporary b: 256 bytes, host at 256, steps 1-2
  i3 temporary c: 256 bytes, host at 0, steps 2-4
  i4 temporary a again: 256 bytes, host at 256, steps 3-4
  i5 output[0] y: 256 bytes, host, steps 4-4
steps:
  0 run g0 on host reads i0 writes i1
  1 run g1 on host reads i1 writes i2
  2 run g2 on host reads i2 writes i3
  3 run g0 on host reads i0 writes i4
  4 run g3 on host reads i3 i4 writes i5
metrics of host:
  host_input 256
  parameter 0 (packed 0)
  temporary 1024
  output 256
  workspace 0
  arena 512 (requested 1024, lower bound 512 at step 1)
  arena instances 4 (reused 2, in place 0, largest 256, overlapping pairs 3)
  scratch 0 per thread
  peak 1024
)");
}

TEST_F(Recompute, RefusesADroppedRecompute) {
  drop(3);
  EXPECT_EQ(verdict(),
            "[wrong_contents] step 3 (g3) reads i4 'a again', which holds what step 1 left in its "
            "memory");
}

TEST_F(Recompute, RefusesTheInstanceThatIsGone) {
  plan_.steps[4].reads[1] = 1;
  EXPECT_EQ(
      verdict(),
      "[wrong_contents] step 4 (g3) reads i1 'a', which holds what step 2 left in its memory");
}

TEST_F(Recompute, RefusesAnEarlyReuse) {
  std::swap(plan_.steps[2], plan_.steps[3]);
  EXPECT_EQ(
      verdict(),
      "[wrong_contents] step 3 (g2) reads i2 'b', which holds what step 2 left in its memory");
}

TEST_F(Recompute, RefusesAnOutputThatIsLost) {
  plan_.steps[4].writes = {3};
  EXPECT_EQ(verdict(), "[missing_write] step 4 (g3) does not name 'y', which its group writes");
  plan_.steps.pop_back();
  plan_.steps.push_back(plan_.steps[1]);
  EXPECT_EQ(
      verdict(),
      "[wrong_contents] step 4 (g1) reads i1 'a', which holds what step 2 left in its memory");
  plan_.steps.pop_back();
  EXPECT_EQ(verdict(), "[missing_step] group 'g3' never runs");
}

// a is copied away on queue 1 while b is computed, and back while queue 0 has nothing to do.
class Offload : public HandMade {
 protected:
  Offload() {
    plan_.places.push_back({"far"});
    a1 = temporary("a", a_, 0);
    b = temporary("b", b_, 256);
    c = temporary("c", c_, 0);
    away = temporary("a away", a_, 0, 1);
    a2 = temporary("a back", a_, 256);
    const uint32_t y = output();
    run(0, {0}, a1);     // 0
    record(0, 0);        // 1
    wait(0, 1);          // 2
    copy(a1, away, 1);   // 3
    record(1, 1);        // 4
    run(1, {a1}, b);     // 5
    wait(1, 0);          // 6
    run(2, {b}, c);      // 7
    record(2, 0);        // 8
    wait(2, 1);          // 9
    copy(away, a2, 1);   // 10
    record(3, 1);        // 11
    wait(3, 0);          // 12
    run(3, {c, a2}, y);  // 13
  }
  uint32_t a1 = 0, b = 0, c = 0, away = 0, a2 = 0;
};

TEST_F(Offload, IsAcceptedAndCountedPerPlace) {
  EXPECT_EQ(verdict(), "");
  EXPECT_EQ(plan_.places[0].metrics.arena_bytes, 512);
  EXPECT_EQ(plan_.places[1].metrics.arena_bytes, 256);
  EXPECT_EQ(plan_.places[1].metrics.peak_bytes, 256);
  const std::string text = print(plan_);
  EXPECT_NE(text.find("  i4 temporary a away: 256 bytes, far at 0, steps 3-10\n"),
            std::string::npos);
  EXPECT_NE(text.find("  3 copy reads i1 writes i4 queue 1\n  4 record e1 queue 1\n"),
            std::string::npos);
  EXPECT_NE(text.find("  6 wait e1\n"), std::string::npos);
  EXPECT_NE(text.find("metrics of far:\n"), std::string::npos);
}

TEST_F(Offload, BudgetsAreOfPlaces) {
  ASSERT_EQ(verdict(), "");
  plan_.places[0].budget = 1024;
  plan_.places[1].budget = 256;
  EXPECT_TRUE(check_budgets(plan_, 1).ok());
  plan_.places[1].budget = 255;
  EXPECT_EQ(check_budgets(plan_, 1).to_string().substr(0, 82),
            "budget_exceeded: memory_budget of far: expected a peak of at most 255 bytes, found");
}

TEST_F(Offload, RefusesEveryDroppedWait) {
  const struct {
    size_t step;
    const char* message;
  } cases[] = {
      {2, "[not_waited] step 2 (copy) reads i1 'a' without waiting for step 0, which writes it"},
      {6,
       "[overlap] i1 'a' and i3 'c' share memory at offset 0: step 3 need not be over at step 6"},
      {9,
       "[overlap] i2 'b' and i5 'a back' share memory at offset 256: step 5 need not be over at "
       "step 9"},
      {12,
       "[not_waited] step 12 (g3) reads i5 'a back' without waiting for step 10, which writes it"},
  };
  const ExecutionPlan whole = plan_;
  for (const auto& c : cases) {
    plan_ = whole;
    drop(c.step);
    EXPECT_EQ(verdict(), c.message);
  }
}

TEST_F(Offload, RefusesEveryDroppedRecord) {
  const ExecutionPlan whole = plan_;
  for (const size_t step : {1, 4, 8, 11}) {
    plan_ = whole;
    drop(step);
    EXPECT_EQ(verdict().substr(0, 15), "[unknown_event]");
  }
  plan_ = whole;
  plan_.steps[4].event = 0;
  EXPECT_EQ(verdict(), "[double_record] steps 1 and 4 record event 0");
}

TEST_F(Offload, RefusesSwappedCopies) {
  std::swap(plan_.steps[3].reads, plan_.steps[3].writes);
  EXPECT_EQ(verdict(), "[wrong_contents] step 3 (copy) reads i4 'a away', which holds nothing yet");
  std::swap(plan_.steps[3].reads, plan_.steps[3].writes);
  plan_.steps[10].reads = {c};
  EXPECT_EQ(verdict(), "[wrong_contents] step 10 (copy) copies i3 'c' into i5 'a back'");
}

TEST_F(Offload, RefusesACopyThatNobodyWaitsFor) {
  const uint32_t late = temporary("late", a_, 256, 1);
  copy(away, late, 1);
  EXPECT_EQ(verdict(),
            "[not_waited] the run ends without waiting for step 14 (copy), which uses i7 'late'");
}

TEST_F(Offload, RefusesAWrongPlace) {
  plan_.steps[5].place = 1;
  EXPECT_EQ(verdict(), "[wrong_place] step 5 (g1) runs on far but i1 'a' lies in host");
  plan_.steps[5].place = 0;
  plan_.steps[13].reads[1] = away;
  EXPECT_EQ(verdict(), "[wrong_place] step 13 (g3) runs on host but i4 'a away' lies in far");
  plan_.steps[13].reads[1] = a2;
  plan_.instances[b].place = 7;
  EXPECT_EQ(verdict(), "[unknown_place] i2 'b' lies in place 7 of 2");
}

TEST_F(Offload, RefusesAnEarlyReuse) {
  plan_.instances[c].offset = 256;
  EXPECT_EQ(verdict(),
            "[wrong_contents] step 13 (g3) reads i3 'c', which holds what step 10 left in its "
            "memory");
}

// c in place of b, which is allowed; b in place of a would not be.
class InPlace : public HandMade {
 protected:
  InPlace() {
    a = temporary("a", a_, 0);
    b = temporary("b", b_, 256);
    c = temporary("c", c_, 256);
    const uint32_t y = output();
    run(0, {0}, a);
    run(1, {a}, b);
    run(2, {b}, c);
    run(3, {c, a}, y);
    plan_.steps[2].in_place = {{b, c}};
  }
  uint32_t a = 0, b = 0, c = 0;
};

TEST_F(InPlace, IsAccepted) {
  EXPECT_EQ(verdict(), "");
  EXPECT_EQ(plan_.host().arena_bytes, 512);
  EXPECT_EQ(plan_.host().lower_bound_bytes, 512);
  EXPECT_EQ(plan_.host().in_place, 1);
}

TEST_F(InPlace, RefusesMemorySharedWithoutSayingSo) {
  plan_.steps[2].in_place.clear();
  EXPECT_EQ(verdict(), "[overlap] i2 'b' and i3 'c' share memory at offset 256: step 2 uses both");
}

TEST_F(InPlace, RefusesWhatTheKernelDoesNotAllow) {
  plan_.steps[1].in_place = {{a, b}};
  plan_.instances[b].offset = plan_.instances[c].offset = 0;
  EXPECT_EQ(verdict(),
            "[false_in_place] step 1 (g1) writes i2 'b' in place of i1 'a': its kernel does not "
            "allow it");
}

TEST_F(InPlace, RefusesPairsOfOtherMemoryOrOtherInstances) {
  plan_.instances[c].offset = 512;
  EXPECT_EQ(
      verdict(),
      "[false_in_place] step 2 (g2) writes i3 'c' in place of i2 'b': their memory is not the "
      "same");
  plan_.steps[2].in_place = {{a, c}};
  EXPECT_EQ(
      verdict(),
      "[false_in_place] step 2 (g2) writes i3 'c' in place of i1 'a': it does not read the one "
      "and write the other");
  plan_.steps[2].in_place.clear();
  plan_.steps[0].in_place = {{0, a}};
  EXPECT_EQ(verdict(),
            "[false_in_place] step 0 (g0) writes i1 'a' in place of i0 'x': only temporaries and "
            "states may be");
}

// The code of c's group is made for memory that it shares.
TEST_F(InPlace, RefusesAGroupThatAlsoRunsElsewhere) {
  const uint32_t b2 = temporary("b again", b_, 512);
  const uint32_t c2 = temporary("c again", c_, 768);
  run(1, {a}, b2);
  run(2, {b2}, c2);
  EXPECT_EQ(verdict(),
            "[false_in_place] step 2 (g2) writes in place, but its group runs more than once");
  plan_.steps[2].in_place.clear();
  plan_.instances[c].offset = 1024;
  EXPECT_EQ(verdict(), "");
}

TEST_F(InPlace, RefusesWhatIsReadAgain) {
  plan_.steps.push_back(plan_.steps[2]);
  plan_.steps.back().in_place.clear();
  EXPECT_EQ(
      verdict(),
      "[wrong_contents] step 4 (g2) reads i2 'b', which holds what step 2 left in its memory");
}

}  // namespace
}  // namespace pyc::plan
