#include <functional>
#include <string>

#include "programs.h"

namespace pyc::runtime {
namespace {

struct Case {
  const char* name;
  std::function<void(Tensors&)> spoil;
  Code code;
  const char* message;
};

std::byte* moved(void* data, int64_t bytes) { return static_cast<std::byte*>(data) + bytes; }

const std::vector<int64_t> kFlat = {kElements};
const std::vector<int64_t> kManyOnes(100'000, 1);
const std::vector<int64_t> kNarrow = {8, 32};
const std::vector<int64_t> kTurned = {64, 8};
const std::vector<int64_t> kNegative = {8, -64};

const Case kCases[] = {
    {"NoInputs", [](Tensors& t) { t.inputs.clear(); }, Code::kInvalidArgument,
     "expected 1 inputs, found 0: the inputs are x"},
    {"TwoInputs", [](Tensors& t) { t.inputs.push_back(t.inputs[0]); }, Code::kInvalidArgument,
     "expected 1 inputs, found 2: the inputs are x"},
    {"NoOutputs", [](Tensors& t) { t.outputs.clear(); }, Code::kInvalidArgument,
     "expected 1 outputs, found 0: the outputs are y"},
    {"NullInput", [](Tensors& t) { t.inputs[0].data = nullptr; }, Code::kNullPointer,
     "input 'x': expected f32[8,64], found a null pointer"},
    {"NullOutput", [](Tensors& t) { t.outputs[0].data = nullptr; }, Code::kNullPointer,
     "output 'y': expected f32[8,64], found a null pointer"},
    {"InputDtype", [](Tensors& t) { t.inputs[0].dtype = DType::kI32; }, Code::kDtypeMismatch,
     "input 'x': expected f32[8,64], found i32[8,64]"},
    {"OutputDtype", [](Tensors& t) { t.outputs[0].dtype = DType::kF64; }, Code::kDtypeMismatch,
     "output 'y': expected f32[8,64], found f64[8,64]"},
    {"NoSuchDtype", [](Tensors& t) { t.inputs[0].dtype = static_cast<DType>(200); },
     Code::kDtypeMismatch, "input 'x': expected f32[8,64], found dtype 200[8,64]"},
    {"InputRank", [](Tensors& t) { t.inputs[0].shape = kFlat; }, Code::kRankMismatch,
     "input 'x': expected f32[8,64], found f32[512]"},
    {"HugeRank", [](Tensors& t) { t.inputs[0].shape = kManyOnes; }, Code::kRankMismatch,
     "input 'x': expected f32[8,64], found f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,...]"},
    {"OutputRank", [](Tensors& t) { t.outputs[0].shape = {}; }, Code::kRankMismatch,
     "output 'y': expected f32[8,64], found f32[]"},
    {"InputShape", [](Tensors& t) { t.inputs[0].shape = kNarrow; }, Code::kShapeMismatch,
     "input 'x': expected f32[8,64], found f32[8,32]"},
    {"OutputShape", [](Tensors& t) { t.outputs[0].shape = kTurned; }, Code::kShapeMismatch,
     "output 'y': expected f32[8,64], found f32[64,8]"},
    {"NegativeDim", [](Tensors& t) { t.inputs[0].shape = kNegative; }, Code::kShapeMismatch,
     "input 'x': expected f32[8,64], found f32[8,-64]"},
    {"InputSize", [](Tensors& t) { t.inputs[0].bytes = 1024; }, Code::kSizeMismatch,
     "input 'x': expected 2048 bytes for f32[8,64], found 1024"},
    {"OutputSize", [](Tensors& t) { t.outputs[0].bytes = -1; }, Code::kSizeMismatch,
     "output 'y': expected 2048 bytes for f32[8,64], found -1"},
    {"OutputIsInput", [](Tensors& t) { t.outputs[0].data = t.inputs[0].data; },
     Code::kInvalidArgument,
     "output 'y': expected memory of its own, found memory shared with input 'x'"},
    {"OutputEndsInInput",
     [](Tensors& t) { t.outputs[0].data = moved(t.inputs[0].data, 4 - kTensorBytes); },
     Code::kInvalidArgument,
     "output 'y': expected memory of its own, found memory shared with input 'x'"},
    {"OutputStartsInInput",
     [](Tensors& t) { t.outputs[0].data = moved(t.inputs[0].data, kTensorBytes - 4); },
     Code::kInvalidArgument,
     "output 'y': expected memory of its own, found memory shared with input 'x'"},
};

TEST(Guards, RefuseByCodeAndMessageAndLeaveTheModelUsable) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(2));
  int64_t refused = 0;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Tensors bad;
    c.spoil(bad);
    RunStats stats;
    const Status status = model->run(bad.inputs, bad.outputs, &stats);
    EXPECT_EQ(status.code(), c.code);
    EXPECT_EQ(status.message(), c.message);
    EXPECT_EQ(stats.steps, 0);
    EXPECT_EQ(bad.y, std::vector<float>(kElements, -1.0F)) << "outputs are untouched";
    EXPECT_EQ(model->stats().guard_misses, ++refused);

    Tensors good;
    ASSERT_TRUE(model->run(good.inputs, good.outputs).ok());
    EXPECT_EQ(good.wrong(), 0);
  }
  EXPECT_EQ(model->stats().runs, 2 * refused);
  EXPECT_EQ(model->stats().failed_runs, refused);
}

void copy_rows(const pyc_kernel_args* args, int64_t begin, int64_t end) {
  const auto* x = static_cast<const float*>(args->buffers[0]);
  auto* y = static_cast<float*>(args->buffers[1]);
  for (int64_t i = begin * kColumns; i < end * kColumns; ++i) y[i] = x[i];
}

TEST(Guards, OutputsMayNotOverlapOneAnother) {
  const auto program = make_one_step_program(copy_rows, nullptr, kRows);
  program->outputs.push_back(tensor_spec("z"));
  const std::unique_ptr<Model> model = make_model(program, make_pool(1));
  Tensors t;
  std::vector<float> memory(2 * kElements);
  t.outputs.push_back(t.outputs[0]);
  t.outputs[0].data = memory.data();
  t.outputs[1].data = memory.data() + 16;
  const Status status = model->run(t.inputs, t.outputs);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "output 'z': expected memory of its own, found memory shared with output 'y'");
}

// Neighbours share no byte.
TEST(Guards, TouchingTensorsAreApart) {
  const auto program = make_one_step_program(copy_rows, nullptr, kRows);
  const std::unique_ptr<Model> model = make_model(program, make_pool(1));
  std::vector<float> memory(2 * kElements, 5.0F);
  Tensors t;
  for (const int64_t first : {int64_t{0}, kElements}) {
    t.inputs[0].data = memory.data() + first;
    t.outputs[0].data = memory.data() + (kElements - first);
    EXPECT_TRUE(model->run(t.inputs, t.outputs).ok());
  }
}

TEST(Guards, InputsMayOverlap) {
  const auto program = make_one_step_program(copy_rows, nullptr, kRows);
  program->inputs.push_back(tensor_spec("x2"));
  const std::unique_ptr<Model> model = make_model(program, make_pool(1));
  Tensors t;
  t.inputs.push_back(t.inputs[0]);
  EXPECT_TRUE(model->run(t.inputs, t.outputs).ok());
}

// Of inputs; outputs are as the model declares them.
TEST(Guards, OneElementIsTakenForAScalar) {
  const auto program = make_one_step_program(copy_rows, nullptr, 0);
  program->inputs[0] = {"x", DType::kF32, {}, 4};
  program->outputs[0] = {"y", DType::kF32, {}, 4};
  const std::unique_ptr<Model> model = make_model(program, make_pool(2));
  float x = 1.0F;
  float y = 0.0F;
  const auto run = [&](const std::vector<int64_t>& in, int64_t bytes,
                       const std::vector<int64_t>& out) {
    const std::vector<TensorView> inputs = {{&x, DType::kF32, in, bytes}};
    const std::vector<TensorView> outputs = {{&y, DType::kF32, out, 4}};
    return model->run(inputs, outputs).code();
  };
  EXPECT_EQ(run({}, 4, {}), Code::kOk);
  EXPECT_EQ(run({1}, 4, {}), Code::kOk);
  EXPECT_EQ(run({2}, 4, {}), Code::kRankMismatch);
  EXPECT_EQ(run({1, 1}, 4, {}), Code::kRankMismatch);
  EXPECT_EQ(run({1}, 3, {}), Code::kSizeMismatch);
  EXPECT_EQ(run({}, 4, {1}), Code::kRankMismatch);
}

TEST(Guards, EmptyTensorsNeedNoMemory) {
  const auto program = make_one_step_program(copy_rows, nullptr, 0);
  program->inputs[0] = {"x", DType::kF32, {0, kColumns}, 0};
  program->outputs[0] = {"y", DType::kF32, {0, kColumns}, 0};
  const std::unique_ptr<Model> model = make_model(program, make_pool(2));
  const std::vector<int64_t> shape = {0, kColumns};
  const std::vector<TensorView> nothing = {{nullptr, DType::kF32, shape, 0}};
  EXPECT_TRUE(model->run(nothing, nothing).ok());
  std::byte byte{};
  const std::vector<TensorView> anything = {{&byte, DType::kF32, shape, 0}};
  EXPECT_TRUE(model->run(anything, anything).ok());
}

}  // namespace
}  // namespace pyc::runtime
