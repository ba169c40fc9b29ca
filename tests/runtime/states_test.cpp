// What a model keeps from one run to the next.

#include "runtime/states.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <limits>
#include <thread>

#include "programs.h"

namespace pyc::runtime {
namespace {

// buffers: x, the state, y; the state grows by x, and y is what it becomes. Fails where x is
// negative, after the row was written.
void accumulate_rows(const pyc_kernel_args* args, int64_t begin, int64_t end) {
  const auto* x = static_cast<const float*>(args->buffers[0]);
  auto* state = static_cast<float*>(args->buffers[1]);
  auto* y = static_cast<float*>(args->buffers[2]);
  for (int64_t i = begin * kColumns; i < end * kColumns; ++i) {
    state[i] += x[i];
    y[i] = state[i];
    if (x[i] < 0.0F) *args->fault = 1;
  }
}

std::shared_ptr<Program> make_accumulator() {
  auto program = make_empty_program();
  program->inputs = {tensor_spec("x")};
  program->outputs = {tensor_spec("y")};
  program->states = {{tensor_spec("sum"), "sum.next"}};
  program->steps = {
      make_step("g0", {accumulate_rows, nullptr},
                {{Where::kInput, 0, 0}, {Where::kState, 0, 0}, {Where::kOutput, 0, 0}}, kRows)};
  program->steps[0].kernel().faults = {{.message = "x is negative"}};
  return program;
}

class Accumulator : public testing::Test {
 protected:
  Status run(float x) {
    std::fill(tensors_.x.begin(), tensors_.x.end(), x);
    return model_->run(tensors_.inputs, tensors_.outputs, &stats_);
  }
  float first() const { return tensors_.y[0]; }
  TensorView view(std::vector<float>& data) const {
    return {data.data(), DType::kF32, kShape, kTensorBytes};
  }

  std::shared_ptr<Program> program_ = make_accumulator();
  std::unique_ptr<Model> model_ = make_model(program_, make_pool(2));
  Tensors tensors_;
  RunStats stats_;
};

TEST_F(Accumulator, BeginsAsZerosAndGoesOn) {
  ASSERT_TRUE(run(2.0F).ok());
  EXPECT_EQ(first(), 2.0F);
  ASSERT_TRUE(run(3.0F).ok());
  EXPECT_EQ(first(), 5.0F);
  EXPECT_EQ(stats_.copied_bytes, 0);
  EXPECT_EQ(stats_.allocations, 0);
  EXPECT_EQ(model_->memory().measured_state_bytes, kTensorBytes);
  ASSERT_EQ(model_->state_specs().size(), 1u);
  EXPECT_EQ(model_->state_specs()[0].output, "sum.next");
}

TEST_F(Accumulator, IsSetReadAndCleared) {
  std::vector<float> values(kElements, 7.0F);
  ASSERT_TRUE(model_->states().set(0, view(values)).ok());
  ASSERT_TRUE(run(1.0F).ok());
  EXPECT_EQ(first(), 8.0F);
  ASSERT_TRUE(model_->states().get(0, view(values)).ok());
  EXPECT_EQ(values[kElements - 1], 8.0F);
  ASSERT_TRUE(model_->states().clear(0).ok());
  ASSERT_TRUE(run(1.0F).ok());
  EXPECT_EQ(first(), 1.0F);
}

TEST_F(Accumulator, TakesViewsOfAnyOrder) {
  std::vector<float> columns(kElements);
  for (int64_t i = 0; i < kElements; ++i) columns[static_cast<size_t>(i)] = static_cast<float>(i);
  const std::array<int64_t, 2> strides = {1, kRows};
  TensorView turned{columns.data(), DType::kF32, kShape, kTensorBytes};
  turned.strides = strides;
  ASSERT_TRUE(model_->states().set(0, turned).ok());
  std::vector<float> rows(kElements);
  ASSERT_TRUE(model_->states().get(0, view(rows)).ok());
  EXPECT_EQ(rows[1], static_cast<float>(kRows));
  std::vector<float> back(kElements);
  turned.data = back.data();
  ASSERT_TRUE(model_->states().get(0, turned).ok());
  EXPECT_EQ(back, columns);
}

TEST_F(Accumulator, EveryNanBecomesTheOne) {
  std::vector<float> values(kElements, -std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE(model_->states().set(0, view(values)).ok());
  ASSERT_TRUE(model_->states().get(0, view(values)).ok());
  EXPECT_EQ(std::bit_cast<uint32_t>(values[3]), 0x7FC00000U);
}

TEST_F(Accumulator, OtherViewsAreRefused) {
  std::vector<float> values(kElements);
  TensorView other = view(values);
  other.dtype = DType::kI32;
  EXPECT_EQ(model_->states().set(0, other).to_string(),
            "dtype_mismatch: state 'sum': expected f32[8,64], found i32[8,64]");
  const std::array<int64_t, 1> flat = {kElements};
  EXPECT_EQ(model_->states().get(0, {values.data(), DType::kF32, flat, kTensorBytes}).to_string(),
            "rank_mismatch: state 'sum': expected f32[8,64], found f32[512]");
  EXPECT_EQ(model_->states().set(0, {nullptr, DType::kF32, kShape, kTensorBytes}).code(),
            Code::kNullPointer);
  EXPECT_EQ(model_->states().set(1, view(values)).to_string(),
            "invalid_argument: state 1 does not exist: the model has 1");
  EXPECT_EQ(model_->states().clear(1).code(), Code::kInvalidArgument);
}

TEST_F(Accumulator, IsVoidAfterAFailedRun) {
  ASSERT_TRUE(run(1.0F).ok());
  EXPECT_EQ(run(-1.0F).code(), Code::kRuntimeFailed);
  const Status refused = run(1.0F);
  EXPECT_EQ(refused.to_string(),
            "invalid_argument: state 'sum' is void since a run failed: set or clear it before the "
            "next run");
  EXPECT_EQ(refused.node(), "sum");
  std::vector<float> values(kElements);
  EXPECT_EQ(model_->states().get(0, view(values)).to_string(),
            "invalid_argument: state 'sum' is void since a run failed: set or clear it");
  ASSERT_TRUE(model_->states().clear(0).ok());
  ASSERT_TRUE(run(4.0F).ok());
  EXPECT_EQ(first(), 4.0F);
  EXPECT_EQ(run(-1.0F).code(), Code::kRuntimeFailed);
  ASSERT_TRUE(model_->states().set(0, view(values)).ok());
  ASSERT_TRUE(run(5.0F).ok());
  EXPECT_EQ(model_->stats().failed_runs, 3);
  EXPECT_EQ(model_->refusals().size(), 3u);
}

// What no step could have written yet keeps its value.
TEST(TwoSteps, OnlyWhatMayBeWrittenIsVoid) {
  const auto program = make_accumulator();
  Step after = program->steps[0];
  program->states.push_back({tensor_spec("later"), "later.next", 1});
  after.kernel().buffers[1].index = 1;
  program->steps.push_back(after);
  const auto model = make_model(program, make_pool(1));
  Tensors tensors;
  std::fill(tensors.x.begin(), tensors.x.end(), 1.0F);
  ASSERT_TRUE(model->run(tensors.inputs, tensors.outputs).ok());
  tensors.x[0] = -1.0F;
  EXPECT_EQ(model->run(tensors.inputs, tensors.outputs).code(), Code::kRuntimeFailed);
  std::vector<float> values(kElements);
  const TensorView view{values.data(), DType::kF32, kShape, kTensorBytes};
  EXPECT_FALSE(model->states().get(0, view).ok());
  ASSERT_TRUE(model->states().get(1, view).ok());
  EXPECT_EQ(values[0], 1.0F);
}

TEST_F(Accumulator, StaysWhenARunIsRefusedAtEntry) {
  ASSERT_TRUE(run(1.0F).ok());
  EXPECT_EQ(model_->run({}, tensors_.outputs).code(), Code::kInvalidArgument);
  ASSERT_TRUE(run(1.0F).ok());
  EXPECT_EQ(first(), 2.0F);
}

// A run that waits until it is told to end.
struct Gate {
  std::atomic<bool> entered{false};
  std::atomic<bool> open{false};
};

void wait_at_gate(const pyc_kernel_args* args, int64_t, int64_t) {
  auto* gate = static_cast<Gate*>(const_cast<void*>(args->self));
  gate->entered = true;
  gate->entered.notify_all();
  gate->open.wait(false);
}

TEST(States, LetOneRunAtATimeHaveThem) {
  Gate gate;
  auto program = make_one_step_program(wait_at_gate, &gate, 1);
  program->states = {{tensor_spec("sum"), "sum.next"}};
  const auto model = make_model(program, make_pool(1));
  Tensors first;
  Tensors second;
  Status ran(Code::kInternal, "did not run");
  std::thread other([&] { ran = model->run(first.inputs, first.outputs); });
  gate.entered.wait(false);
  const std::string in_use =
      "invalid_argument: the model's state is in use: its runs go one at a time, wait for the "
      "other to end";
  EXPECT_EQ(model->run(second.inputs, second.outputs).to_string(), in_use);
  EXPECT_EQ(model->states().set(0, first.inputs[0]).to_string(), in_use);
  EXPECT_EQ(model->states().get(0, first.outputs[0]).to_string(), in_use);
  EXPECT_EQ(model->states().clear(0).to_string(), in_use);
  gate.open = true;
  gate.open.notify_all();
  other.join();
  EXPECT_TRUE(ran.ok()) << ran.to_string();
  EXPECT_EQ(model->stats().contexts, 1);
  EXPECT_TRUE(model->states().clear(0).ok());
}

// sum.next = x · 3 in the arena, copied home.
TEST(States, ACopyStepBringsThemHomeAndIsCounted) {
  auto program = make_two_step_program();
  program->states = {{tensor_spec("last"), "last.next"}};
  Step copy;
  copy.name = "copy.last.next";
  copy.work = Copy{{{{Where::kArena, 0, 64}, {Where::kState, 0, 0}}}, kTensorBytes};
  program->steps.push_back(copy);
  const auto model = make_model(program, make_pool(2));
  Tensors tensors;
  RunStats stats;
  ASSERT_TRUE(model->run(tensors.inputs, tensors.outputs, &stats).ok());
  EXPECT_EQ(tensors.wrong(), 0);
  EXPECT_EQ(stats.steps, 3);
  EXPECT_EQ(stats.copied_bytes, kTensorBytes);
  std::vector<float> last(kElements);
  ASSERT_TRUE(model->states().get(0, {last.data(), DType::kF32, kShape, kTensorBytes}).ok());
  for (size_t i = 0; i < last.size(); ++i) ASSERT_EQ(last[i], tensors.x[i] * kScale) << i;
}

// More than one unit of a copy, and a last one that is not full.
TEST(States, LargeOnesAreCopiedWhole) {
  constexpr int64_t kMany = 50'001;
  auto program = make_empty_program();
  const IoSpec large{"x", DType::kF32, {kMany}, kMany * 4};
  program->inputs = {large};
  program->states = {{{"state", DType::kF32, {kMany}, kMany * 4}, "next"}};
  Step copy;
  copy.name = "copy";
  copy.work = Copy{{{{Where::kInput, 0, 0}, {Where::kState, 0, 0}}}, kMany * 4};
  program->steps = {copy};
  const auto model = make_model(program, make_pool(2));
  std::vector<float> x(kMany);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::array<int64_t, 1> shape = {kMany};
  const TensorView in{x.data(), DType::kF32, shape, kMany * 4};
  ASSERT_TRUE(model->run(std::span(&in, 1), {}).ok());
  std::vector<float> state(kMany);
  ASSERT_TRUE(model->states().get(0, {state.data(), DType::kF32, shape, kMany * 4}).ok());
  EXPECT_EQ(state, x);
}

TEST(States, ProgramsThatCannotRunAreRefused) {
  const auto with_copy = [](BufferRef from, BufferRef to, int64_t bytes) {
    auto program = make_accumulator();
    program->arena_bytes = kTensorBytes;
    Step step;
    step.name = "c";
    step.work = Copy{{from, to}, bytes};
    program->steps.push_back(step);
    return check_program(*program).to_string();
  };
  const BufferRef arena{Where::kArena, 0, 0};
  const BufferRef state{Where::kState, 0, 0};
  EXPECT_EQ(with_copy(arena, state, kTensorBytes), "ok");
  const std::string none = "internal: program: step 'c': buffer 1 does not exist";
  EXPECT_EQ(with_copy(arena, {Where::kState, 1, 0}, 4), none);
  EXPECT_EQ(with_copy(arena, {Where::kState, 0, -4}, 4), none);
  const std::string not_copied = "internal: program: step 'c': its buffers cannot be copied";
  EXPECT_EQ(with_copy(arena, state, kTensorBytes + 1), not_copied);
  EXPECT_EQ(with_copy(arena, {Where::kState, 0, 4}, kTensorBytes), not_copied);
  EXPECT_EQ(with_copy({Where::kArena, 0, 64}, state, kTensorBytes), not_copied);
  EXPECT_EQ(with_copy(arena, state, -1), not_copied);
  EXPECT_EQ(with_copy(state, {Where::kInput, 0, 0}, 4), not_copied);
  EXPECT_EQ(with_copy(state, {Where::kState, 0, 64}, 65), not_copied);
  EXPECT_EQ(with_copy(state, {Where::kState, 0, 64}, 64), "ok");
  auto program = make_accumulator();
  program->states[0].input.bytes = 4;
  EXPECT_EQ(check_program(*program).to_string(),
            "internal: program: state 'sum': its shape does not have 4 bytes");
}

TEST(States, OfAnotherSizeThanPlannedAreRefused) {
  const auto program = make_accumulator();
  auto engine = load(program);
  ASSERT_TRUE(engine.ok());
  MemoryReport memory = planned_memory(*program, 1);
  memory.class_bytes[static_cast<size_t>(BufferClass::kState)] -= 64;
  EXPECT_EQ(Model::create(*engine, make_pool(1), {}, memory).status().to_string(),
            "internal: memory of the states: planned 1984 bytes, allocated 2048");
}

}  // namespace
}  // namespace pyc::runtime
