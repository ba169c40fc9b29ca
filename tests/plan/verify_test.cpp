#include <gtest/gtest.h>

#include <utility>

#include "lowered_builder.h"
#include "plan/plan.h"

namespace pyc::plan {
namespace {

// The chain's buffers: 0 x, 1 a (at 0), 2 b (at 256), 3 c (at 0), 4 y, 5 the workspace of g3.
class Verify : public testing::Test {
 protected:
  Verify() {
    chain_.builder.needs[3].workspace_bytes = 64;
    Result<ExecutionPlan> plan = build_plan(chain_.lowered, chain_.builder.needs, {.threads = 2});
    EXPECT_TRUE(plan.ok()) << plan.status().to_string();
    plan_ = std::move(plan).value();
  }

  std::string schedule() const {
    const Status status = verify_schedule(chain_.lowered, plan_);
    EXPECT_TRUE(status.ok() || status.code() == Code::kVerifyFailed);
    return status.message();
  }
  std::string allocation() const {
    const Status status = verify_allocation(plan_);
    EXPECT_TRUE(status.ok() || status.code() == Code::kVerifyFailed);
    return status.message();
  }

  Chain chain_;
  ExecutionPlan plan_;
};

TEST_F(Verify, AcceptsWhatBuildPlanMade) {
  EXPECT_EQ(schedule(), "");
  EXPECT_EQ(allocation(), "");
}

TEST_F(Verify, ScheduleRefusesSwappedDependentSteps) {
  std::swap(plan_.steps[1], plan_.steps[2]);
  EXPECT_EQ(schedule(), "[wrong_contents] step 1 (g2) reads i2 'b', which holds nothing yet");
}

TEST_F(Verify, ScheduleRefusesAMissingStep) {
  plan_.steps.erase(plan_.steps.begin() + 2);
  EXPECT_EQ(
      schedule(),
      "[wrong_contents] step 2 (g3) reads i3 'c', which holds what step 0 left in its memory");
  plan_.steps.pop_back();
  EXPECT_EQ(schedule(), "[missing_step] group 'g2' never runs");
}

TEST_F(Verify, ScheduleRefusesAGroupThatIsNone) {
  plan_.steps[2].group = 9;
  EXPECT_EQ(schedule(), "[unknown_group] step 2 names group 9 of 4");
}

TEST_F(Verify, ScheduleRefusesABufferThatIsNone) {
  plan_.steps[0].reads = {17};
  EXPECT_EQ(schedule(), "[unknown_instance] step 0 names an instance that is not among the 6");
  EXPECT_EQ(allocation(), schedule());
}

TEST_F(Verify, ScheduleRefusesOperandsThatAreNotTheGroups) {
  plan_.steps[1].reads = {0};
  EXPECT_EQ(schedule(), "[missing_read] step 1 (g1) does not name 'a', which its group reads");
  plan_.steps[1].reads = {1};
  plan_.steps[1].writes = {3};
  EXPECT_EQ(schedule(), "[missing_write] step 1 (g1) does not name 'b', which its group writes");
}

TEST_F(Verify, ScheduleRefusesABufferWrittenTwice) {
  plan_.steps[2].writes.push_back(2);
  EXPECT_EQ(schedule(), "[double_write] step 2 (g2) writes 2 instances, its group 1");
}

TEST_F(Verify, ScheduleRefusesInstancesOfNoOrAnotherValue) {
  const ir::ValueId a = plan_.instances[1].value;
  plan_.instances[1].value = 100;
  EXPECT_EQ(schedule(), "[unknown_value] i1 'a' holds no value");
  plan_.instances[1].value = ir::kNoId;
  EXPECT_EQ(schedule(), "[unknown_value] i1 'a' holds no value");
  plan_.instances[1].value = a;
  plan_.instances[0].value = a;
  EXPECT_EQ(schedule(), "[wrong_value] i0 'x' is no input");
}

TEST_F(Verify, ScheduleRefusesAnOutputStoredElsewhere) {
  plan_.instances[4].cls = BufferClass::kTemporary;
  EXPECT_EQ(schedule(), "[wrong_output] output 0 has no instance");
  plan_.instances[4].cls = BufferClass::kOutput;
  plan_.instances[4].place = 1;
  plan_.places.push_back({"other"});
  EXPECT_EQ(schedule(), "[wrong_place] step 3 (g3) runs on host but i4 'y' lies in other");
}

TEST_F(Verify, AllocationRefusesOverlap) {
  plan_.instances[2].offset = 192;
  EXPECT_EQ(allocation(),
            "[overlap] i1 'a' and i2 'b' share memory at offset 192: step 1 uses both");
}

TEST_F(Verify, AllocationCountsTheUnitOfAnEmptyBuffer) {
  plan_.instances[5].bytes = 0;
  plan_.instances[5].offset = plan_.instances[3].offset;
  EXPECT_EQ(allocation(),
            "[overlap] i3 'c' and i5 'g3.workspace' share memory at offset 0: step 3 uses both");
}

TEST_F(Verify, AllocationRefusesMisalignment) {
  plan_.instances[3].offset = 32;
  EXPECT_EQ(allocation(), "[misaligned] i3 'c' at offset 32 is not 64-byte aligned");
}

TEST_F(Verify, AllocationRefusesABufferBeyondTheArena) {
  plan_.instances[2].offset = 320;
  EXPECT_EQ(allocation(), "[out_of_arena] i2 'b' takes 256 bytes at offset 320 of an arena of 512");
  plan_.instances[2].offset = 256;
  plan_.host().arena_bytes = 448;
  EXPECT_EQ(allocation(), "[out_of_arena] i2 'b' takes 256 bytes at offset 256 of an arena of 448");
}

TEST_F(Verify, AllocationRefusesWrongClasses) {
  const struct {
    size_t buffer;
    BufferClass cls;
    const char* message;
  } cases[] = {
      {0, BufferClass::kTemporary, "[wrong_class] i0 'x' has class temporary but is only read"},
      {0, BufferClass::kOutput, "[wrong_class] i0 'x' has class output but is only read"},
      {1, BufferClass::kParameter,
       "[wrong_class] i1 'a' has class parameter but is written by a step"},
      {1, BufferClass::kWorkspace, "[unknown_value] i1 'a' holds no value"},
      {1, BufferClass::kOutput, "[wrong_class] i1 'a' has class output but a place in the arena"},
      {4, BufferClass::kTemporary,
       "[wrong_class] i4 'y' has class temporary but no place in the arena"},
      {5, BufferClass::kTemporary, "[unknown_value] i5 'g3.workspace' holds no value"},
  };
  for (const auto& c : cases) {
    const BufferClass original = std::exchange(plan_.instances[c.buffer].cls, c.cls);
    EXPECT_EQ(allocation(), c.message);
    plan_.instances[c.buffer].cls = original;
  }
}

TEST_F(Verify, AllocationRefusesWrongNumbersOfInputsAndOutputs) {
  plan_.instances[4].io_index = 1;
  EXPECT_EQ(allocation(), "[wrong_index] i4 'y' cannot be output 1 of 1");
}

TEST_F(Verify, AllocationRefusesUsesThatAreNotTheSteps) {
  plan_.instances[1].uses = {0};
  EXPECT_EQ(allocation(), "[wrong_uses] i1 'a' is used at steps 0 1, not at 0");
  plan_.instances[1].uses = {0, 1, 4};
  EXPECT_EQ(allocation(), "[wrong_uses] i1 'a' is used at steps 0 1, not at 0 1 4");
}

TEST_F(Verify, AllocationRefusesNegativeSizes) {
  plan_.instances[0].bytes = -1;
  EXPECT_EQ(allocation(), "[negative_size] i0 'x' has -1 bytes");
}

TEST_F(Verify, AllocationRefusesWrongMetrics) {
  const struct {
    void (*spoil)(PlanMetrics& m);
    const char* message;
  } cases[] = {
      {[](PlanMetrics& m) { m.class_bytes[0] = 0; },
       "[wrong_metrics] bytes of class host_input: expected 256, found 0"},
      {[](PlanMetrics& m) { m.class_bytes[4] = 128; },
       "[wrong_metrics] bytes of class workspace: expected 64, found 128"},
      {[](PlanMetrics& m) { m.arena_bytes = 576; },
       "[wrong_metrics] arena_bytes: expected 512, found 576"},
      {[](PlanMetrics& m) { m.requested_bytes = 0; },
       "[wrong_metrics] requested_bytes: expected 704, found 0"},
      {[](PlanMetrics& m) { m.lower_bound_bytes = 0; },
       "[wrong_metrics] lower_bound_bytes: expected 512, found 0"},
      {[](PlanMetrics& m) { m.largest_bytes = 1; },
       "[wrong_metrics] largest_bytes: expected 256, found 1"},
      {[](PlanMetrics& m) { m.buffers = 5; }, "[wrong_metrics] buffers: expected 4, found 5"},
      {[](PlanMetrics& m) { m.reused = 0; }, "[wrong_metrics] reused: expected 2, found 0"},
      {[](PlanMetrics& m) { m.in_place = 1; }, "[wrong_metrics] in_place: expected 0, found 1"},
      {[](PlanMetrics& m) { m.overlap_pairs = 0; },
       "[wrong_metrics] overlap_pairs: expected 3, found 0"},
      {[](PlanMetrics& m) { m.peak_step = 2; }, "[wrong_metrics] peak_step: expected 1, found 2"},
      {[](PlanMetrics& m) { m.peak_bytes += 64; },
       "[wrong_metrics] peak_bytes: expected 1024 and a multiple of 128, found 1344"},
      {[](PlanMetrics& m) { m.peak_bytes = 1024; },
       "[wrong_metrics] peak_bytes: expected 1024 and a multiple of 128, found 1024"},
      {[](PlanMetrics& m) { m.scratch_bytes = 0; },
       "[wrong_metrics] peak_bytes: expected 1024, found 1280"},
      {[](PlanMetrics& m) { m.scratch_bytes = 100; },
       "[wrong_metrics] scratch_bytes: expected a multiple of 64, found 100"},
  };
  for (const auto& c : cases) {
    const PlanMetrics original = plan_.host();
    c.spoil(plan_.host());
    EXPECT_EQ(allocation(), c.message);
    plan_.host() = original;
  }
}

}  // namespace
}  // namespace pyc::plan
