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
  EXPECT_EQ(schedule(), "[read_before_write] step 1 (g2) reads 'b', which step 2 (g1) writes");
}

TEST_F(Verify, ScheduleRefusesAStepThatRunsTwice) {
  plan_.steps.push_back(plan_.steps[1]);
  EXPECT_EQ(schedule(), "[duplicate_step] group 'g1' runs at step 1 and at step 4");
}

TEST_F(Verify, ScheduleRefusesAMissingStep) {
  plan_.steps.erase(plan_.steps.begin() + 2);
  EXPECT_EQ(schedule(), "[missing_step] group 'g2' never runs");
}

TEST_F(Verify, ScheduleRefusesAGroupThatIsNone) {
  plan_.steps[2].group = 9;
  EXPECT_EQ(schedule(), "[unknown_group] step 2 names group 9 of 4");
}

TEST_F(Verify, ScheduleRefusesABufferThatIsNone) {
  plan_.steps[0].reads = {17};
  EXPECT_EQ(schedule(), "[unknown_buffer] step 0 names a buffer that is none of the 6");
  EXPECT_EQ(allocation(), schedule());
}

TEST_F(Verify, ScheduleRefusesOperandsThatAreNotTheGroups) {
  plan_.steps[1].reads = {0};
  EXPECT_EQ(schedule(), "[missing_read] step 1 does not name 'a', which group 'g1' reads");
  plan_.steps[1].reads = {1};
  plan_.steps[1].writes = {3};
  EXPECT_EQ(schedule(), "[missing_write] step 1 does not name 'b', which group 'g1' writes");
}

TEST_F(Verify, ScheduleRefusesABufferWrittenTwice) {
  plan_.steps[2].writes.push_back(2);
  EXPECT_EQ(schedule(), "[double_write] steps 1 and 2 write 'b'");
}

TEST_F(Verify, ScheduleRefusesValuesWithoutOrWithTwoBuffers) {
  plan_.buffers[1].value = 100;
  EXPECT_EQ(schedule(), "[unknown_value] buffer 'a' holds no value");
  plan_.buffers[1].value = plan_.buffers[2].value;
  EXPECT_EQ(schedule(), "[duplicate_buffer] 'b' has two buffers");
}

TEST_F(Verify, ScheduleRefusesAnOutputStoredElsewhere) {
  plan_.buffers[4].cls = BufferClass::kTemporary;
  EXPECT_EQ(schedule(), "[wrong_output] the storage of output 0 is not its buffer");
}

TEST_F(Verify, AllocationRefusesOverlap) {
  plan_.buffers[2].offset = 192;
  EXPECT_EQ(allocation(), "[overlap] 'a' and 'b' share memory at offset 192 at step 1");
}

TEST_F(Verify, AllocationCountsTheUnitOfAnEmptyBuffer) {
  plan_.buffers[5].bytes = 0;
  plan_.buffers[5].offset = plan_.buffers[3].offset;
  EXPECT_EQ(allocation(), "[overlap] 'c' and 'g3.workspace' share memory at offset 0 at step 3");
}

TEST_F(Verify, AllocationRefusesMisalignment) {
  plan_.buffers[3].offset = 32;
  EXPECT_EQ(allocation(), "[misaligned] 'c' at offset 32 is not 64-byte aligned");
}

TEST_F(Verify, AllocationRefusesABufferBeyondTheArena) {
  plan_.buffers[2].offset = 320;
  EXPECT_EQ(allocation(), "[out_of_arena] 'b' takes 256 bytes at offset 320 of an arena of 512");
  plan_.buffers[2].offset = 256;
  plan_.metrics.arena_bytes = 448;
  EXPECT_EQ(allocation(), "[out_of_arena] 'b' takes 256 bytes at offset 256 of an arena of 448");
}

TEST_F(Verify, AllocationRefusesWrongClasses) {
  const struct {
    size_t buffer;
    BufferClass cls;
    const char* message;
  } cases[] = {
      {0, BufferClass::kTemporary, "[wrong_class] 'x' has class temporary but is only read"},
      {0, BufferClass::kOutput, "[wrong_class] 'x' has class output but is only read"},
      {1, BufferClass::kParameter,
       "[wrong_class] 'a' has class parameter but is written by a step"},
      {1, BufferClass::kWorkspace,
       "[wrong_class] 'a' has class workspace but is written by a step"},
      {1, BufferClass::kOutput, "[wrong_class] 'a' has class output but a place in the arena"},
      {4, BufferClass::kTemporary,
       "[wrong_class] 'y' has class temporary but no place in the arena"},
      {5, BufferClass::kTemporary,
       "[wrong_class] 'g3.workspace' has class temporary but is a workspace"},
  };
  for (const auto& c : cases) {
    const BufferClass original = std::exchange(plan_.buffers[c.buffer].cls, c.cls);
    EXPECT_EQ(allocation(), c.message);
    plan_.buffers[c.buffer].cls = original;
  }
}

TEST_F(Verify, AllocationRefusesWrongNumbersOfInputsAndOutputs) {
  plan_.buffers[4].io_index = 1;
  EXPECT_EQ(allocation(), "[wrong_index] 'y' cannot be output 1 of 1");
}

TEST_F(Verify, AllocationRefusesUseOutsideALifetime) {
  plan_.buffers[1].last_step = 0;
  EXPECT_EQ(allocation(), "[not_live] step 1 uses 'a', which lives from step 0 to step 0");
  plan_.buffers[1].last_step = 1;
  plan_.buffers[5].first_step = plan_.buffers[5].last_step = 2;
  EXPECT_EQ(allocation(),
            "[not_live] step 3 uses 'g3.workspace', which lives from step 2 to step 2");
}

TEST_F(Verify, AllocationRefusesLifetimesThatAreNone) {
  plan_.buffers[1].last_step = 4;
  EXPECT_EQ(allocation(), "[bad_lifetime] 'a' lives from step 0 to step 4 of 4");
  plan_.buffers[1].last_step = 1;
  plan_.buffers[1].first_step = -1;
  EXPECT_EQ(allocation(), "[bad_lifetime] 'a' lives from step -1 to step 1 of 4");
  plan_.buffers[1].first_step = 2;
  EXPECT_EQ(allocation(), "[bad_lifetime] 'a' lives from step 2 to step 1 of 4");
}

TEST_F(Verify, AllocationRefusesNegativeSizes) {
  plan_.buffers[0].bytes = -1;
  EXPECT_EQ(allocation(), "[negative_size] 'x' has -1 bytes");
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
    const PlanMetrics original = plan_.metrics;
    c.spoil(plan_.metrics);
    EXPECT_EQ(allocation(), c.message);
    plan_.metrics = original;
  }
}

}  // namespace
}  // namespace pyc::plan
