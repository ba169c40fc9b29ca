// States: where their outputs are written, what that costs, and plans that get it wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "lowered_builder.h"
#include "plan/liveness.h"
#include "plan/metrics.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

constexpr int64_t kStateBytes = 256;

struct Lowered {
  lower::LoweredGraph graph;
  std::vector<lower::KernelNeeds> needs;
};

// The state `past`, x beside it, and what `make` builds of them; its result is the state's output.
template <class Make>
Lowered with_state(Make make, int64_t bytes = kStateBytes) {
  LoweredBuilder builder;
  const ir::ValueId past = builder.input("past", bytes);
  const ir::ValueId x = builder.input("x", bytes);
  builder.output(make(builder, past, x));
  std::vector<lower::KernelNeeds> needs = builder.needs;
  return {std::move(builder).finish(), std::move(needs)};
}

Lowered added() {
  return with_state([](LoweredBuilder& b, ir::ValueId past, ir::ValueId x) {
    return b.elementwise({past, x}, "next");
  });
}

Lowered reversed() {
  return with_state([](LoweredBuilder& b, ir::ValueId past, ir::ValueId x) {
    return b.reversed({past, x}, "next");
  });
}

const std::vector<StatePair> kOneState = {{.input = 0, .output = 0}};

ExecutionPlan plan_of(const Lowered& lowered, std::vector<StatePair> states = kOneState,
                      bool reuse = true) {
  auto plan =
      build_plan(lowered.graph, lowered.needs, {.reuse = reuse, .states = std::move(states)});
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return plan.ok() ? std::move(plan).value() : ExecutionPlan();
}

int64_t state_bytes(const ExecutionPlan& plan) {
  return plan.host().class_bytes[static_cast<size_t>(BufferClass::kState)];
}

std::string decision(const ExecutionPlan& plan) {
  for (const Decision& d : plan.decisions) {
    if (d.what == "state:past") return d.chosen + " " + d.reason + " " + d.detail;
  }
  return "none";
}

// Both verifiers' answer with uses and metrics made from the plan, "" when they accept it.
std::string verdict(const Lowered& lowered, ExecutionPlan plan) {
  if (Status s = verify_schedule(lowered.graph, plan); !s.ok()) return s.message();
  set_uses(plan);
  const int64_t scratch = plan.host().scratch_bytes;
  plan.host() = measure(plan, 0);
  plan.host().scratch_bytes = scratch;
  return verify_allocation(plan).message();
}

TEST(States, AreWrittenWhereTheyLie) {
  const Lowered lowered = added();
  const ExecutionPlan plan = plan_of(lowered);
  EXPECT_EQ(print(plan), R"(instances:
  i0 state[0] past: 256 bytes, host, steps 0-0
  i1 host_input[0] x: 256 bytes, host, steps 0-0
  i2 state[0] next: 256 bytes, host, steps 0-0
steps:
  0 run g0 on host reads i0 i1 writes i2 i2 in place of i0
metrics of host:
  host_input 256
  parameter 0 (packed 0)
  temporary 0
  output 0
  workspace 0
  state 256
  copied 0 a run
  arena 0 (requested 0, lower bound 0 at step 0)
  arena instances 0 (reused 0, in place 0, largest 0, overlapping pairs 0)
  scratch 0 per thread
  peak 512
)");
  EXPECT_EQ(decision(plan), "in_place kernel_allows_it 256 bytes, written as next");
}

TEST(States, AreCountedAsTheyAreAllocated) {
  const Lowered lowered = with_state(
      [](LoweredBuilder& b, ir::ValueId past, ir::ValueId x) {
        return b.elementwise({past, x}, "next");
      },
      100);
  const ExecutionPlan plan = plan_of(lowered);
  EXPECT_EQ(state_bytes(plan), 128);
  EXPECT_EQ(plan.host().peak_bytes, 128 + 100);
}

TEST(States, AreCopiedWhereTheKernelReadsWhatItOverwrote) {
  const Lowered lowered = reversed();
  const ExecutionPlan plan = plan_of(lowered);
  EXPECT_EQ(decision(plan), "copied kernel_reads_what_it_overwrote 256 bytes, written as next");
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[1].kind, StepKind::kCopy);
  EXPECT_EQ(plan.host().copied_bytes, kStateBytes);
  EXPECT_EQ(plan.host().arena_bytes, kStateBytes);
  EXPECT_EQ(plan.host().peak_bytes, 3 * kStateBytes);
  EXPECT_NE(print(plan).find("  1 copy reads i2 writes i3\n"), std::string::npos) << print(plan);
  EXPECT_NE(print(plan).find("  copied 256 a run\n"), std::string::npos);
}

TEST(States, AreCopiedWhereReuseIsOff) {
  const ExecutionPlan plan = plan_of(added(), kOneState, false);
  EXPECT_EQ(decision(plan), "copied reuse_off 256 bytes, written as next");
  EXPECT_EQ(plan.host().copied_bytes, kStateBytes);
}

TEST(States, NeedNoPairWhereTheyWereReadBefore) {
  const Lowered lowered = with_state([](LoweredBuilder& b, ir::ValueId past, ir::ValueId x) {
    const ir::ValueId seen = b.reversed({past, x}, "seen");
    return b.reversed({seen, x}, "next");
  });
  const ExecutionPlan plan = plan_of(lowered);
  EXPECT_EQ(decision(plan), "in_place read_before 256 bytes, written as next");
  EXPECT_TRUE(plan.steps[1].in_place.empty());
  EXPECT_EQ(plan.host().copied_bytes, 0);
}

TEST(States, AreCopiedWhereTheOldValueIsReadWithTheNewOne) {
  LoweredBuilder builder;
  const ir::ValueId past = builder.input("past", kStateBytes);
  const ir::ValueId next = builder.elementwise({past}, "next");
  builder.output(next);
  builder.output(builder.elementwise({next, past}, "y"));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const Lowered lowered{std::move(builder).finish(), needs};
  const ExecutionPlan plan = plan_of(lowered);
  EXPECT_EQ(decision(plan), "copied read_later 256 bytes, written as next");
  EXPECT_EQ(plan.host().copied_bytes, kStateBytes);
}

// g0 writes the state, g1 reads what it was and needs nothing of g0: it can run before.
Lowered read_beside() {
  LoweredBuilder builder;
  const ir::ValueId past = builder.input("past", kStateBytes);
  const ir::ValueId next = builder.elementwise({past}, "next");
  builder.output(next);
  builder.output(builder.reversed({past}, "y"));
  builder.output(builder.elementwise({next}, "z"));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  return {std::move(builder).finish(), needs};
}

TEST(States, AreReadBeforeTheyAreWrittenIfTheOrderCanBeSo) {
  const ExecutionPlan plan = plan_of(read_beside());
  EXPECT_EQ(decision(plan), "in_place kernel_allows_it 256 bytes, written as next");
  ASSERT_EQ(plan.steps.size(), 3u);
  EXPECT_EQ(plan.steps[0].group, 1u);
  EXPECT_EQ(plan.steps[1].group, 0u);
  EXPECT_EQ(plan.host().copied_bytes, 0);
}

TEST(States, MayBeExchangedWithOneCopy) {
  LoweredBuilder builder;
  const ir::ValueId past = builder.input("past", kStateBytes);
  const ir::ValueId other = builder.input("other", kStateBytes);
  builder.output(builder.elementwise({other}, "past.next"));
  builder.output(builder.elementwise({past}, "other.next"));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const Lowered lowered{std::move(builder).finish(), needs};
  const ExecutionPlan plan =
      plan_of(lowered, {{.input = 0, .output = 0}, {.input = 1, .output = 1}});
  EXPECT_EQ(plan.host().copied_bytes, kStateBytes);
  EXPECT_EQ(state_bytes(plan), 2 * kStateBytes);
}

TEST(States, PairsThatAreNoneAreRefused) {
  const Lowered lowered = added();
  const auto refusal = [&](std::vector<StatePair> states) {
    auto plan = build_plan(lowered.graph, lowered.needs, {.states = std::move(states)});
    return plan.ok() ? "" : plan.status().to_string();
  };
  EXPECT_EQ(refusal({{.input = 2, .output = 0}}),
            "internal: plan: state 0 is no pair of an input and an output");
  EXPECT_EQ(refusal({{.input = 0, .output = 0}, {.input = 1, .output = 0}}),
            "internal: plan: state 1 shares its input or its output with another");
  LoweredBuilder builder;
  const ir::ValueId past = builder.input("past", kStateBytes);
  builder.output(builder.group({past}, {{"next", 2 * kStateBytes}}));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const lower::LoweredGraph grown = std::move(builder).finish();
  EXPECT_EQ(build_plan(grown, needs, {.states = kOneState}).status().to_string(),
            "internal: plan: state 0 has 256 bytes before a run and 512 after it");
}

TEST(States, AreInTheBudget) {
  const Lowered lowered = added();
  const auto budgeted = [&](int64_t bytes) {
    return build_plan(lowered.graph, lowered.needs, {.memory_budget = bytes, .states = kOneState})
        .status()
        .to_string();
  };
  EXPECT_EQ(budgeted(512), "ok");
  EXPECT_NE(budgeted(511).find("output 0, state 256, arena 0"), std::string::npos) << budgeted(511);
}

TEST(States, AFalsePairIsRefused) {
  const Lowered lowered = reversed();
  ExecutionPlan plan = plan_of(lowered);
  ASSERT_EQ(verdict(lowered, plan), "");
  // Written over the input, without the copy.
  plan.steps.pop_back();
  plan.instances.pop_back();
  plan.instances[2].cls = BufferClass::kState;
  plan.instances[2].offset = -1;
  plan.steps[0].in_place = {{0, 2}};
  EXPECT_EQ(verdict(lowered, plan),
            "[false_in_place] step 0 (g0) writes i2 'next' in place of i0 'past': its kernel does "
            "not allow it");
  plan.steps[0].in_place.clear();
  EXPECT_EQ(verdict(lowered, plan),
            "[overlap] i0 'past' and i2 'next' share memory of state 0: step 0 uses both");
}

TEST(States, ADroppedCopyIsRefused) {
  const Lowered lowered = reversed();
  ExecutionPlan plan = plan_of(lowered);
  plan.steps.pop_back();
  EXPECT_EQ(verdict(lowered, plan),
            "[wrong_state] at the end i3 'next', state 0, holds nothing yet");
  plan.instances.pop_back();
  EXPECT_EQ(verdict(lowered, plan), "[wrong_state] state 0 has no instance after the run");
}

TEST(States, AnEarlyCopyIsRefused) {
  const Lowered lowered = with_state([](LoweredBuilder& b, ir::ValueId past, ir::ValueId x) {
    const ir::ValueId next = b.reversed({past}, "next");
    b.output(next);
    return b.elementwise({next, past, x}, "y");
  });
  ExecutionPlan plan = plan_of(lowered);
  ASSERT_EQ(plan.steps.size(), 3u);
  ASSERT_EQ(verdict(lowered, plan), "");
  std::swap(plan.steps[1], plan.steps[2]);
  EXPECT_EQ(verdict(lowered, plan),
            "[wrong_contents] step 2 (g1) reads i0 'past', which holds what step 1 left in its "
            "memory");
}

TEST(States, AReadOfWhatWasOverwrittenIsRefused) {
  const Lowered lowered = read_beside();
  ExecutionPlan plan = plan_of(lowered);
  std::swap(plan.steps[0], plan.steps[1]);
  EXPECT_EQ(verdict(lowered, plan),
            "[wrong_contents] step 1 (g1) reads i0 'past', which holds what step 0 left in its "
            "memory");
}

TEST(States, OtherPairsThanThePlansAreRefused) {
  const Lowered lowered = added();
  const ExecutionPlan whole = plan_of(lowered);
  ExecutionPlan plan = whole;
  plan.states[0].input = 1;
  EXPECT_EQ(verdict(lowered, plan), "[wrong_value] i0 'past' is no value of its state");
  plan.states[0].input = 7;
  EXPECT_EQ(verdict(lowered, plan),
            "[wrong_state] state 0 is input 7 and output 0: one of them does not exist or is "
            "another state's");
  plan = whole;
  plan.states.clear();
  EXPECT_EQ(verdict(lowered, plan), "[wrong_value] i0 'past' is no value of its state");
  plan = whole;
  plan.instances[2].bytes = 128;
  EXPECT_EQ(verify_allocation(plan).message(),
            "[wrong_state] i0 'past' and i2 'next' are no one memory");
}

TEST(States, WrongCountsAreRefused) {
  const Lowered lowered = reversed();
  ExecutionPlan plan = plan_of(lowered);
  plan.host().copied_bytes = 0;
  EXPECT_EQ(verify_allocation(plan).message(),
            "[wrong_metrics] copied_bytes: expected 256, found 0");
  plan = plan_of(lowered);
  plan.host().class_bytes[static_cast<size_t>(BufferClass::kState)] = 0;
  EXPECT_EQ(verify_allocation(plan).message(),
            "[wrong_metrics] bytes of class state: expected 256, found 0");
}

// Each state is read by a step that stands behind its writer once the other's is moved: no single
// move helps, the order of least memory does.
TEST(States, AnOrderThatCopiesLessIsTaken) {
  LoweredBuilder b;
  const ir::ValueId first = b.input("first", kStateBytes);
  const ir::ValueId second = b.input("second", kStateBytes);
  const ir::ValueId x = b.input("x", kStateBytes);
  const ir::ValueId next_first = b.group({x}, {{"next_first", kStateBytes}, {"small", 512}});
  const ir::ValueId reads_second = b.group({second, next_first + 1}, {{"u", 64}});
  const ir::ValueId next_second = b.group({x}, {{"next_second", kStateBytes}, {"large", 2048}});
  const ir::ValueId reads_first = b.group({first}, {{"v", 64}});
  const ir::ValueId last = b.group({next_second + 1}, {{"w", 64}});
  for (const ir::ValueId v : {next_first, next_second, reads_second, reads_first, last}) {
    b.output(v);
  }
  std::vector<lower::KernelNeeds> needs = b.needs;
  const Lowered lowered{std::move(b).finish(), std::move(needs)};
  const ExecutionPlan plan =
      plan_of(lowered, {{.input = 0, .output = 0}, {.input = 1, .output = 1}});
  EXPECT_EQ(plan.host().copied_bytes, 0);
  const auto order = std::ranges::find(plan.decisions, "plan:order", &Decision::what);
  ASSERT_NE(order, plan.decisions.end());
  EXPECT_EQ(order->reason, "fewer_copied_bytes") << order->to_string();
}

}  // namespace
}  // namespace pyc::plan
