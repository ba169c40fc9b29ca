#include "plan/plan.h"

#include <gtest/gtest.h>

#include "lowered_builder.h"

namespace pyc::plan {
namespace {

ExecutionPlan must_build(const lower::LoweredGraph& lowered,
                         std::span<const lower::KernelNeeds> needs,
                         const PlanOptions& options = {}) {
  Result<ExecutionPlan> plan = build_plan(lowered, needs, options);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return plan.ok() ? std::move(plan).value() : ExecutionPlan{};
}

int64_t class_bytes(const ExecutionPlan& plan, BufferClass cls) {
  return plan.host().class_bytes[static_cast<size_t>(cls)];
}

const Decision* find_decision(const ExecutionPlan& plan, std::string_view what) {
  for (const Decision& decision : plan.decisions) {
    if (decision.what == what) return &decision;
  }
  return nullptr;
}

TEST(Plan, MetricsOfAChainAreTheHandComputedOnes) {
  Chain chain;
  const ExecutionPlan plan = must_build(chain.lowered, chain.builder.needs, {.threads = 3});
  const PlanMetrics& m = plan.host();
  EXPECT_EQ(class_bytes(plan, BufferClass::kHostInput), 256);
  EXPECT_EQ(class_bytes(plan, BufferClass::kParameter), 0);
  EXPECT_EQ(class_bytes(plan, BufferClass::kTemporary), 256 + 256 + 128);
  EXPECT_EQ(class_bytes(plan, BufferClass::kOutput), 256);
  EXPECT_EQ(class_bytes(plan, BufferClass::kWorkspace), 0);
  EXPECT_EQ(m.requested_bytes, 640);
  EXPECT_EQ(m.lower_bound_bytes, 512);  // a and b, while g1 runs
  EXPECT_EQ(m.peak_step, 1);
  EXPECT_EQ(m.arena_bytes, 512);
  EXPECT_EQ(m.largest_bytes, 256);
  EXPECT_EQ(m.buffers, 3);
  EXPECT_EQ(m.reused, 1);         // c, where a was
  EXPECT_EQ(m.overlap_pairs, 2);  // a with b, b with c
  EXPECT_EQ(m.scratch_bytes, 128);
  EXPECT_EQ(m.peak_bytes, 256 + 256 + 512 + 3 * 128);
}

TEST(Plan, MetricsWithConstantsWorkspaceAndASharedValue) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 100);
  const ir::ValueId w = builder.constant("w", 40);
  const ir::ValueId a = builder.group({x, w}, {{"a", 100}});
  const ir::ValueId b = builder.group({a, w}, {{"b", 200}});
  const ir::ValueId c = builder.group({a, b}, {{"c", 64}});
  builder.output(builder.group({c}, {{"y", 30}}));
  builder.needs[2].workspace_bytes = 10;
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const lower::LoweredGraph lowered = std::move(builder).finish();
  const ExecutionPlan plan = must_build(lowered, needs);
  const PlanMetrics& m = plan.host();
  EXPECT_EQ(class_bytes(plan, BufferClass::kHostInput), 100);
  EXPECT_EQ(class_bytes(plan, BufferClass::kParameter), 40);
  EXPECT_EQ(class_bytes(plan, BufferClass::kTemporary), 364);
  EXPECT_EQ(class_bytes(plan, BufferClass::kOutput), 30);
  EXPECT_EQ(class_bytes(plan, BufferClass::kWorkspace), 10);
  EXPECT_EQ(m.requested_bytes, 128 + 256 + 64 + 64);
  EXPECT_EQ(m.lower_bound_bytes, 512);  // a, b, c and the workspace, while g2 runs
  EXPECT_EQ(m.peak_step, 2);
  EXPECT_EQ(m.arena_bytes, 512);
  EXPECT_EQ(m.largest_bytes, 200);
  EXPECT_EQ(m.buffers, 4);
  EXPECT_EQ(m.reused, 0);
  EXPECT_EQ(m.overlap_pairs, 6);
  EXPECT_EQ(m.scratch_bytes, 0);
  EXPECT_EQ(m.peak_bytes, 100 + 40 + 30 + 512);
}

TEST(Plan, PrintsAsText) {
  Chain chain;
  chain.builder.needs[3].workspace_bytes = 64;
  const ExecutionPlan plan = must_build(chain.lowered, chain.builder.needs);
  EXPECT_EQ(print(plan), R"(instances:
  i0 host_input[0] x: 256 bytes, host, steps 0-3
  i1 temporary a: 256 bytes, host at 0, steps 0-1
  i2 temporary b: 256 bytes, host at 256, steps 1-2
  i3 temporary c: 128 bytes, host at 0, steps 2-3
  i4 output[0] y: 256 bytes, host, steps 3-3
  i5 workspace g3.workspace: 64 bytes, host at 128, steps 3-3
steps:
  0 run g0 on host reads i0 writes i1
  1 run g1 on host reads i1 writes i2
  2 run g2 on host reads i2 writes i3
  3 run g3 on host reads i3 writes i4 workspace i5
metrics of host:
  host_input 256
  parameter 0 (packed 0)
  temporary 640
  output 256
  workspace 64
  arena 512 (requested 704, lower bound 512 at step 1)
  arena instances 4 (reused 2, in place 0, largest 256, overlapping pairs 3)
  scratch 128 per thread
  peak 1152
)");
}

TEST(Plan, WithoutReuseEveryBufferHasMemoryOfItsOwn) {
  Chain chain;
  const ExecutionPlan plan = must_build(chain.lowered, chain.builder.needs, {.reuse = false});
  EXPECT_EQ(plan.host().arena_bytes, 640);
  EXPECT_EQ(plan.host().requested_bytes, 640);
  EXPECT_EQ(plan.host().lower_bound_bytes, 512);
  EXPECT_EQ(plan.host().reused, 0);
  EXPECT_EQ(find_decision(plan, "plan:placement")->reason, "reuse_off");
}

TEST(Plan, EveryPlacementIsADecision) {
  Chain chain;
  const ExecutionPlan plan = must_build(chain.lowered, chain.builder.needs);
  std::string log;
  for (const Decision& decision : plan.decisions) log += decision.to_string() + "\n";
  EXPECT_EQ(log,
            "plan:order -> program_order [only_order] arena 512 bytes\n"
            "plan:placement -> size_best_fit [reaches_lower_bound] arena 512 bytes, lower bound "
            "512, without reuse 640\n"
            "buffer:a -> offset 0 [fresh_memory] 256 bytes, steps 0-1\n"
            "buffer:b -> offset 256 [fresh_memory] 256 bytes, steps 1-2\n"
            "buffer:c -> offset 0 [reuses_memory] 128 bytes, steps 2-3, after a\n");
}

// Two branches, each of which shrinks what it got: running one after the other is cheaper than
// both side by side.
TEST(Plan, TheOrderWithTheSmallerArenaIsKept) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 64);
  const ir::ValueId a = builder.group({x}, {{"a", 1024}});
  const ir::ValueId b = builder.group({x}, {{"b", 1024}});
  const ir::ValueId small_a = builder.group({a}, {{"small_a", 64}});
  const ir::ValueId small_b = builder.group({b}, {{"small_b", 64}});
  builder.output(builder.group({small_a, small_b}, {{"y", 64}}));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const lower::LoweredGraph lowered = std::move(builder).finish();

  const ExecutionPlan plan = must_build(lowered, needs);
  std::vector<uint32_t> order;
  for (const Step& step : plan.steps) order.push_back(step.group);
  EXPECT_EQ(order, (std::vector<uint32_t>{0, 2, 1, 3, 4}));
  EXPECT_EQ(plan.host().arena_bytes, 1152);
  EXPECT_EQ(plan.decisions[0].to_string(),
            "plan:order -> memory_aware_order [smaller_arena] arena 2112 bytes in program order, "
            "1152 in memory-aware order");

  const ExecutionPlan plain = must_build(lowered, needs, {.reuse = false});
  EXPECT_EQ(plain.decisions[0].to_string(), "plan:order -> program_order [reuse_off]");
}

// Running g2 first makes more bytes than g1 but frees more.
TEST(Plan, TheMemoryAwareOrderCountsWhatAStepFrees) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 64);
  const ir::ValueId a = builder.group({x}, {{"a", 1024}, {"s", 64}});
  const ir::ValueId b = builder.group({a + 1}, {{"b", 512}});
  const ir::ValueId c = builder.group({a}, {{"c", 640}});
  builder.output(builder.group({b, c}, {{"y", 64}}));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const ExecutionPlan plan = must_build(std::move(builder).finish(), needs);
  EXPECT_EQ(plan.steps[1].group, 2U);
  EXPECT_EQ(plan.decisions[0].detail,
            "arena 2176 bytes in program order, 1728 in memory-aware order");
}

TEST(Plan, AChainOfEqualValuesTakesTurnsInTwoPlaces) {
  LoweredBuilder builder;
  ir::ValueId value = builder.input("x", 256);
  for (int i = 0; i < 10; ++i) value = builder.group({value}, {{"v" + std::to_string(i), 256}});
  builder.output(value);
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const ExecutionPlan plan = must_build(std::move(builder).finish(), needs);
  EXPECT_EQ(plan.host().arena_bytes, 512);
  EXPECT_EQ(plan.host().reused, 7);
  EXPECT_EQ(plan.host().peak_step, 1) << "the first of many";
}

// The greedy order runs g1 before g0 but gains nothing.
TEST(Plan, ProgramOrderIsKeptWhenItIsAsGood) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 64);
  const ir::ValueId a = builder.group({x}, {{"a", 256}});
  const ir::ValueId b = builder.group({x}, {{"b", 64}});
  builder.output(builder.group({a, b}, {{"y", 64}}));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const ExecutionPlan plan = must_build(std::move(builder).finish(), needs);
  EXPECT_EQ(plan.steps[0].group, 0U);
  EXPECT_EQ(plan.decisions[0].to_string(),
            "plan:order -> program_order [no_smaller_arena] arena 320 bytes in program order, 320 "
            "in memory-aware order");
}

TEST(Plan, PackedConstantsAreParametersOfTheirGroups) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 64);
  const ir::ValueId v = builder.constant("v", 100);
  const ir::ValueId w = builder.constant("w", 100);
  const ir::ValueId a = builder.group({x, v, w}, {{"a", 64}});
  const ir::ValueId b = builder.group({a, w}, {{"b", 64}});
  builder.output(builder.group({b, w}, {{"y", 64}}));
  builder.needs[0].packed = {{w, 256, "a"}, {v, 128, "a"}};
  builder.needs[1].packed = {{w, 512, "b"}};
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const lower::LoweredGraph lowered = std::move(builder).finish();
  const ExecutionPlan plan = must_build(lowered, needs);
  std::vector<std::string> parameters;
  for (const Instance& buffer : plan.instances) {
    if (buffer.cls != BufferClass::kParameter) continue;
    EXPECT_EQ(buffer.io_index, parameters.size());
    EXPECT_EQ(buffer.value, buffer.name[0] == 'w' ? w : v);
    EXPECT_EQ(buffer.packing.empty(), buffer.name == "w");
    parameters.push_back(buffer.name + " " + std::to_string(buffer.bytes));
  }
  EXPECT_EQ(parameters, (std::vector<std::string>{"w 100", "w.packed[g0] 256", "v.packed[g0] 128",
                                                  "w.packed[g1] 512"}));
  EXPECT_EQ(plan.steps[0].reads, (std::vector<uint32_t>{0, 2, 3}));
  EXPECT_EQ(class_bytes(plan, BufferClass::kParameter), 100 + 256 + 128 + 512);
}

TEST(Plan, ConstantsPackedAlikeArePackedOnce) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 64);
  const ir::ValueId w = builder.constant("w", 100);
  const ir::ValueId a = builder.group({x, w}, {{"a", 64}});
  const ir::ValueId b = builder.group({a, w}, {{"b", 64}});
  builder.output(builder.group({b, w}, {{"y", 64}}));
  builder.needs[0].packed = {{w, 256, "panels of 8"}};
  builder.needs[1].packed = {{w, 256, "panels of 16"}};
  builder.needs[2].packed = {{w, 256, "panels of 8"}};
  std::vector<lower::KernelNeeds> needs = builder.needs;
  const lower::LoweredGraph lowered = std::move(builder).finish();
  const ExecutionPlan plan = must_build(lowered, needs);
  EXPECT_EQ(class_bytes(plan, BufferClass::kParameter), 2 * 256);
  EXPECT_EQ(plan.steps[0].reads.back(), plan.steps[2].reads.back());
  EXPECT_NE(plan.steps[0].reads.back(), plan.steps[1].reads.back());
  needs[2].packed[0].bytes = 512;
  EXPECT_EQ(build_plan(lowered, needs, {}).status().message(),
            "plan: groups 'g0' and 'g2' pack 'w' alike, into 256 bytes and into 512");
  needs[2].packed[0].packing = "";
  EXPECT_EQ(build_plan(lowered, needs, {}).status().message(),
            "plan: group 'g2' does not say how it packs 'w'");
}

// x → a → b → c → y, all of 256 bytes and computed element by element.
TEST(Plan, ResultsAreWrittenInPlaceWhereThatSavesMemory) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 256);
  const ir::ValueId a = builder.elementwise({x}, "a");
  const ir::ValueId b = builder.elementwise({a}, "b");
  const ir::ValueId c = builder.elementwise({b}, "c");
  builder.output(builder.elementwise({c}, "y"));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const lower::LoweredGraph lowered = std::move(builder).finish();
  const ExecutionPlan plan = must_build(lowered, needs);
  const PlanMetrics& m = plan.host();
  EXPECT_EQ(m.arena_bytes, 256);
  EXPECT_EQ(m.lower_bound_bytes, 256);
  EXPECT_EQ(m.in_place, 2);
  EXPECT_EQ(m.reused, 2);
  EXPECT_TRUE(plan.steps[0].in_place.empty());  // x is the caller's
  EXPECT_EQ(plan.steps[1].in_place, (std::vector<loop::InPlacePair>{{1, 2}}));
  EXPECT_TRUE(plan.steps[3].in_place.empty());  // y is the caller's
  const Decision* decision = find_decision(plan, "buffer:b");
  ASSERT_NE(decision, nullptr);
  EXPECT_EQ(decision->to_string(),
            "buffer:b -> offset 0 [in_place] 256 bytes, steps 1-2, in place of a");
  EXPECT_EQ(must_build(lowered, needs, {.reuse = false}).host().in_place, 0);
}

// x → a → b → y, where b's elements are those of a from the last on, so that its kernel may not
// write it over a; unless it packs a into a workspace before.
TEST(Plan, AResultLiesWhereWhatWasPackedLay) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 256);
  const ir::ValueId a = builder.elementwise({x}, "a");
  const ir::ValueId b = builder.reversed({a}, "b");
  builder.needs.back().workspace_bytes = 256;
  builder.output(builder.elementwise({b}, "y"));
  std::vector<lower::KernelNeeds> needs = builder.needs;
  const lower::LoweredGraph lowered = std::move(builder).finish();
  EXPECT_EQ(must_build(lowered, needs).host().arena_bytes, 3 * 256);
  needs[1].read_first = {0};
  const ExecutionPlan plan = must_build(lowered, needs);
  EXPECT_EQ(plan.host().arena_bytes, 2 * 256);
  EXPECT_EQ(plan.host().lower_bound_bytes, 2 * 256);
  EXPECT_EQ(plan.steps[1].in_place, (std::vector<loop::InPlacePair>{{1, 2}}));
  // Nobody says so to the verifier.
  EXPECT_EQ(verify_schedule(lowered, plan).message(),
            "[false_in_place] step 1 (g1) writes i2 'b' in place of i1 'a': its kernel does not "
            "allow it");
  needs[1].read_first = {1};
  EXPECT_EQ(must_build(lowered, needs).host().arena_bytes, 3 * 256);
}

// Both b and d pack what they read; only what d reads is over then.
TEST(Plan, WhatIsPackedAndReadLaterIsNotWrittenOver) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 256);
  const ir::ValueId a = builder.elementwise({x}, "a");
  const ir::ValueId b = builder.reversed({a}, "b");
  builder.needs.back().workspace_bytes = 256;
  builder.needs.back().read_first = {0};
  const ir::ValueId c = builder.elementwise({a, b}, "c");
  const ir::ValueId d = builder.reversed({c}, "d");
  builder.needs.back().workspace_bytes = 512;
  builder.needs.back().read_first = {0};
  builder.output(builder.elementwise({d}, "y"));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const ExecutionPlan plan = must_build(std::move(builder).finish(), needs);
  EXPECT_TRUE(plan.steps[1].in_place.empty());
  EXPECT_EQ(plan.steps[3].in_place.size(), 1U);
  EXPECT_EQ(plan.host().arena_bytes, 768);
}

TEST(Plan, WhatIsReadLaterIsNotWrittenOver) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 256);
  const ir::ValueId a = builder.elementwise({x}, "a");
  const ir::ValueId b = builder.elementwise({a}, "b");
  builder.output(builder.elementwise({a, b}, "y"));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const ExecutionPlan plan = must_build(std::move(builder).finish(), needs);
  EXPECT_EQ(plan.host().in_place, 0);
  EXPECT_EQ(plan.host().arena_bytes, 512);
}

TEST(Plan, OutputsThatAreReadStayOutputs) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 64);
  const ir::ValueId a = builder.group({x}, {{"a", 64}});
  const ir::ValueId b = builder.group({a}, {{"b", 64}});
  builder.output(b);
  builder.output(a);
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const ExecutionPlan plan = must_build(std::move(builder).finish(), needs);
  EXPECT_EQ(plan.host().arena_bytes, 0);
  EXPECT_EQ(plan.host().buffers, 0);
  EXPECT_EQ(plan.instances[1].name, "a");
  EXPECT_EQ(plan.instances[1].cls, BufferClass::kOutput);
  EXPECT_EQ(plan.instances[1].io_index, 1U);
  EXPECT_EQ(plan.instances[2].io_index, 0U);
}

TEST(Plan, EmptyBuffersTakeOneUnit) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 0);
  const ir::ValueId a = builder.group({x}, {{"a", 0}});
  builder.output(builder.group({a}, {{"y", 0}}));
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const ExecutionPlan plan = must_build(std::move(builder).finish(), needs);
  EXPECT_EQ(plan.host().arena_bytes, 64);
  EXPECT_EQ(plan.host().peak_bytes, 64);
  EXPECT_EQ(plan.host().largest_bytes, 0);
}

TEST(Plan, ABudgetUnderThePeakIsRefusedByName) {
  Chain chain;
  const auto refused =
      build_plan(chain.lowered, chain.builder.needs, {.threads = 3, .memory_budget = 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kBudgetExceeded);
  EXPECT_EQ(
      refused.status().message(),
      "memory_budget of host: expected a peak of at most 1 bytes, found 1408: host_input 256, "
      "parameter 0, output 256, arena 512 (temporary 640 and workspace 0 before reuse), "
      "scratch 384 (3 threads of 128); the smallest budget for this plan is 1408");
  const PlanOptions exact{.threads = 3, .memory_budget = 1408};
  EXPECT_TRUE(build_plan(chain.lowered, chain.builder.needs, exact).ok());
  const PlanOptions one_less{.threads = 3, .memory_budget = 1407};
  EXPECT_FALSE(build_plan(chain.lowered, chain.builder.needs, one_less).ok());
  const PlanOptions nothing{.threads = 3, .memory_budget = 0};
  EXPECT_FALSE(build_plan(chain.lowered, chain.builder.needs, nothing).ok());
}

TEST(Plan, RefusesThreadCountsThatAreNone) {
  Chain chain;
  const auto refused = build_plan(chain.lowered, chain.builder.needs, {.threads = 0});
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
}

struct BrokenCase {
  void (*spoil)(lower::LoweredGraph& lowered, std::vector<lower::KernelNeeds>& needs);
  const char* message;
};

TEST(Plan, RefusesGroupsThatContradictOneAnother) {
  using Lowered = lower::LoweredGraph;
  using Needs = std::vector<lower::KernelNeeds>;
  const BrokenCase cases[] = {
      {[](Lowered&, Needs& n) { n.pop_back(); }, "plan: expected the needs of 4 groups, found 3"},
      {[](Lowered& l, Needs&) { l.groups[1].buffer_values.pop_back(); },
       "plan: group 'g1': expected a value for each of 2 buffers, found 1"},
      {[](Lowered& l, Needs&) { l.groups[1].buffer_values[0] = ir::kNoId; },
       "plan: group 'g1': buffer 'b' has no value"},
      {[](Lowered& l, Needs&) { l.groups[1].kernel.buffers[0].access = loop::Access::kScratch; },
       "plan: group 'g1': scratch buffer 'b' has a value"},
      {[](Lowered& l, Needs&) { l.groups[1].kernel.buffers[1].elements = 257; },
       "plan: group 'g1': the kernel takes 257 bytes of 'b', which has 256"},
      {[](Lowered&, Needs& n) { n[0].scratch_bytes = -1; },
       "plan: group 'g0': needs a negative size"},
      {[](Lowered& l, Needs&) { l.groups[0].buffer_values[1] = l.graph->inputs[0]; },
       "plan: group 'g0' writes 'x', which no node computes"},
      {[](Lowered& l, Needs&) { l.groups[1].buffer_values[1] = l.groups[0].buffer_values[1]; },
       "plan: 'a' is written by 'g0' and by 'g1'"},
      {[](Lowered& l, Needs&) { l.output_values.clear(); },
       "plan: expected storage for 1 outputs, found 0"},
      {[](Lowered& l, Needs&) { l.output_values[0] = l.graph->inputs[0]; },
       "plan: no group writes output 0"},
      {[](Lowered& l, Needs&) { std::swap(l.groups[0], l.groups[1]); },
       "plan: group 'g1' reads 'a', which no earlier group writes"},
      {[](Lowered&, Needs& n) {
         n[0].packed = {{0, 64, "a"}};
       },
       "plan: group 'g0' packs what is no constant"},
  };
  for (const BrokenCase& broken : cases) {
    Chain chain;
    broken.spoil(chain.lowered, chain.builder.needs);
    const auto refused = build_plan(chain.lowered, chain.builder.needs, {});
    ASSERT_FALSE(refused.ok()) << broken.message;
    EXPECT_EQ(refused.status().code(), Code::kInternal);
    EXPECT_EQ(refused.status().message(), broken.message);
  }
}

TEST(Plan, OneValueCannotBeTheStorageOfTwoOutputs) {
  LoweredBuilder builder;
  const ir::ValueId x = builder.input("x", 64);
  const ir::ValueId a = builder.group({x}, {{"a", 64}});
  builder.output(a);
  builder.output(a);
  const std::vector<lower::KernelNeeds> needs = builder.needs;
  const auto refused = build_plan(std::move(builder).finish(), needs, {});
  EXPECT_EQ(refused.status().to_string(),
            "internal: plan: 'a' cannot be the storage of output 0 and of output 1");
}

// The blocks of Offsets.ABoundOutOfReachIsProvenToBe, in lines, as values and workspaces.
TEST(Plan, SaysThatNoOffsetsReachTheBound) {
  LoweredBuilder b;
  const ir::ValueId x = b.input("x", 64);
  const ir::ValueId a = b.group({x}, {{"a", 6 * 64}, {"d", 2 * 64}});
  const ir::ValueId c = b.group({a}, {{"c", 1 * 64}, {"f", 4 * 64}});
  const ir::ValueId e = b.group({c, a + 1}, {{"e", 4 * 64}});
  b.output(b.group({e, c + 1}, {{"y", 64}}));
  b.needs[0].workspace_bytes = 7 * 64;
  b.needs[2].workspace_bytes = 3 * 64;
  b.needs[3].workspace_bytes = 7 * 64;
  const std::vector<lower::KernelNeeds> needs = b.needs;
  const lower::LoweredGraph lowered = std::move(b).finish();
  const auto plan = build_plan(lowered, needs, {});
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  EXPECT_EQ(plan->host().lower_bound_bytes, 15 * 64);
  EXPECT_EQ(plan->host().arena_bytes, 16 * 64);
  const auto placement = std::ranges::find(plan->decisions, "plan:placement", &Decision::what);
  ASSERT_NE(placement, plan->decisions.end());
  EXPECT_EQ(placement->reason, "proven_smallest") << placement->to_string();
}

}  // namespace
}  // namespace pyc::plan
