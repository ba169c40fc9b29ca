// Runs over views that kernels cannot take as they are.

#include <cstring>

#include "programs.h"

namespace pyc::runtime {
namespace {

// The tensors of a two-step run, column-major and shifted by two bytes.
struct Turned {
  explicit Turned(const Tensors& plain)
      : in(static_cast<size_t>(kTensorBytes) + 2), out(static_cast<size_t>(kTensorBytes) + 2) {
    inputs[0].data = in.data();
    outputs[0].data = out.data();
    scatter(reinterpret_cast<const std::byte*>(plain.x.data()), inputs[0]);
  }
  std::vector<float> result() const {
    std::vector<float> y(kElements);
    gather(outputs[0], reinterpret_cast<std::byte*>(y.data()));
    return y;
  }

  std::vector<std::byte> in;
  std::vector<std::byte> out;
  std::vector<int64_t> strides = {1, kRows};
  std::vector<TensorView> inputs = {{nullptr, DType::kF32, kShape, kTensorBytes + 2, strides, 2}};
  std::vector<TensorView> outputs = inputs;
};

TEST(Staging, OtherOrdersGiveTheSameResults) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(2));
  Tensors t(3);
  ASSERT_TRUE(model->run(t.inputs, t.outputs).ok());
  Turned turned(t);
  RunStats stats;
  const Status status = model->run(turned.inputs, turned.outputs, &stats);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(turned.result(), t.y);
  EXPECT_EQ(stats.staged_views, 2);
  EXPECT_EQ(stats.staged_bytes, 2 * kTensorBytes);
  EXPECT_EQ(stats.allocations, 1);
  EXPECT_EQ(model->memory().staging_bytes, 2 * kTensorBytes);
}

TEST(Staging, MemoryIsMadeOnceAndOnlyWhenNeeded) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(1));
  Tensors t;
  RunStats stats;
  ASSERT_TRUE(model->run(t.inputs, t.outputs, &stats).ok());
  EXPECT_EQ(stats.staged_views, 0);
  EXPECT_EQ(model->memory().staging_bytes, 0);
  Turned turned(t);
  // An input alone, then both: the memory grows once more and stays.
  ASSERT_TRUE(model->run(turned.inputs, t.outputs, &stats).ok());
  EXPECT_EQ(t.wrong(), 0);
  EXPECT_EQ(stats.staged_views, 1);
  EXPECT_EQ(model->memory().staging_bytes, kTensorBytes);
  for (const int64_t allocations : {1, 0, 0}) {
    ASSERT_TRUE(model->run(turned.inputs, turned.outputs, &stats).ok());
    EXPECT_EQ(stats.allocations, allocations);
    EXPECT_EQ(stats.staged_bytes, 2 * kTensorBytes);
  }
  EXPECT_EQ(model->memory().staging_bytes, 2 * kTensorBytes);
}

TEST(Staging, AnAddressThatIsNotAlignedIsCopied) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(1));
  Tensors t;
  std::vector<std::byte> memory(static_cast<size_t>(kTensorBytes) + 1);
  std::memcpy(memory.data() + 1, t.x.data(), static_cast<size_t>(kTensorBytes));
  t.inputs[0].data = memory.data() + 1;
  RunStats stats;
  ASSERT_TRUE(model->run(t.inputs, t.outputs, &stats).ok());
  EXPECT_EQ(t.wrong(), 0);
  EXPECT_EQ(stats.staged_views, 1);
}

// One row for all: strides of 0 read it again and again.
TEST(Staging, InputsMayRepeatElements) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(1));
  Tensors t;
  const std::vector<int64_t> strides = {0, 1};
  t.inputs[0].strides = strides;
  t.inputs[0].bytes = kColumns * 4;
  ASSERT_TRUE(model->run(t.inputs, t.outputs).ok());
  for (int64_t i = kColumns; i < kElements; ++i) {
    t.x[static_cast<size_t>(i)] = t.x[static_cast<size_t>(i % kColumns)];
  }
  EXPECT_EQ(t.wrong(), 0);
}

TEST(Staging, StridesOfRowMajorMemoryCostNothing) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(1));
  Tensors t;
  const std::vector<int64_t> strides = {kColumns, 1};
  t.inputs[0].strides = strides;
  t.outputs[0].strides = strides;
  RunStats stats;
  ASSERT_TRUE(model->run(t.inputs, t.outputs, &stats).ok());
  EXPECT_EQ(stats.staged_views, 0);
  EXPECT_EQ(stats.allocations, 0);
  EXPECT_EQ(t.wrong(), 0);
}

TEST(Staging, AnOffsetIsNoReasonToCopy) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(1));
  Tensors t;
  std::vector<float> memory(kElements + 16);
  std::copy(t.x.begin(), t.x.end(), memory.begin() + 16);
  t.inputs[0].data = memory.data();
  t.inputs[0].byte_offset = 64;
  t.inputs[0].bytes = kTensorBytes + 64;
  RunStats stats;
  ASSERT_TRUE(model->run(t.inputs, t.outputs, &stats).ok());
  EXPECT_EQ(stats.staged_views, 0);
  EXPECT_EQ(t.wrong(), 0);
}

struct StrictCase {
  const char* name;
  std::vector<int64_t> strides;
  int64_t offset;
  Code code;
  const char* message;
};

TEST(Staging, StrictModelsRefuseInstead) {
  const std::unique_ptr<Model> model =
      make_model(make_two_step_program(), make_pool(1), {}, nullptr, {.strict_views = true});
  Tensors t;
  ASSERT_TRUE(model->run(t.inputs, t.outputs).ok());
  std::vector<std::byte> memory(static_cast<size_t>(kTensorBytes) + 4);
  const StrictCase cases[] = {
      {"Strides",
       {1, kRows},
       0,
       Code::kInvalidArgument,
       "input 'x': expected row-major elements (strict_views) for f32[8,64], found dims [8,64] "
       "with strides [1,8]"},
      {"Alignment",
       {},
       2,
       Code::kMisaligned,
       "input 'x': expected elements at a multiple of 4 bytes (strict_views) for f32[8,64], found "
       "an address 2 past one"},
  };
  for (const StrictCase& c : cases) {
    SCOPED_TRACE(c.name);
    const std::vector<TensorView> inputs = {
        {memory.data(), DType::kF32, kShape, kTensorBytes + 4, c.strides, c.offset}};
    const Status status = model->run(inputs, t.outputs);
    EXPECT_EQ(status.code(), c.code);
    EXPECT_EQ(status.message(), c.message);
  }
  EXPECT_EQ(model->stats().guard_misses, 2);
  EXPECT_EQ(model->memory().staging_bytes, 0);
  ASSERT_TRUE(model->run(t.inputs, t.outputs).ok());
}

TEST(Staging, CountsAgainstTheBudget) {
  const auto program = make_two_step_program();
  MemoryReport memory = planned_memory(*program, 1);
  memory.peak_bytes = 3 * kTensorBytes;
  for (const int64_t budget : {4 * kTensorBytes - 1, 4 * kTensorBytes}) {
    auto model =
        Model::create(*load(program), make_pool(1), {}, memory, nullptr, {.memory_budget = budget});
    ASSERT_TRUE(model.ok());
    Tensors t;
    Turned turned(t);
    const Status status = (*model)->run(turned.inputs, t.outputs);
    EXPECT_EQ(status.ok(), budget == 4 * kTensorBytes) << status.to_string();
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), Code::kBudgetExceeded);
    EXPECT_EQ(t.y, std::vector<float>(kElements, -1.0F));
    EXPECT_EQ((*model)->memory().staging_bytes, 0);
    EXPECT_TRUE((*model)->run(t.inputs, t.outputs).ok()) << "the model stays usable";
  }
}

TEST(Staging, OutputsThatOverlapThemselvesOrOthersAreRefused) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(1));
  Tensors t;
  const std::vector<int64_t> same_row = {0, 1};
  t.outputs[0].strides = same_row;
  Status status = model->run(t.inputs, t.outputs);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "output 'y': expected strides that keep all elements apart for f32[8,64], found dims "
            "[8,64] with strides [0,1]");
  // Backwards from the input's last element.
  const std::vector<int64_t> backwards = {-kColumns, -1};
  t.outputs[0] = t.inputs[0];
  t.outputs[0].strides = backwards;
  t.outputs[0].byte_offset = kTensorBytes - 4;
  status = model->run(t.inputs, t.outputs);
  EXPECT_EQ(status.message(),
            "output 'y': expected memory of its own, found memory shared with input 'x'");
}

void fail(const pyc_kernel_args* args, int64_t, int64_t) { *args->fault = 1; }

TEST(Staging, AFailedRunLeavesStagedOutputsUntouched) {
  const auto program = make_one_step_program(fail, nullptr, 1);
  program->steps[0].kernel().faults = {{.message = "it fails"}};
  const std::unique_ptr<Model> model = make_model(program, make_pool(1));
  Tensors t;
  Turned turned(t);
  const std::vector<std::byte> before = turned.out;
  EXPECT_EQ(model->run(turned.inputs, turned.outputs).code(), Code::kRuntimeFailed);
  EXPECT_EQ(turned.out, before);
}

}  // namespace
}  // namespace pyc::runtime
