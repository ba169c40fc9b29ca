// Launches and objects that the backend did not write are refused, never believed.

#include "backends/cuda/launch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backends/cuda/loader.h"
#include "cuda/models_on_fake.h"
#include "driver/devices.h"

namespace pyc::test {
namespace {

using cuda::Launch;
using runtime::Where;

Launch sound_launch() {
  return {.shape = {4, 128},
          .workspace_bytes = 64,
          .buffers = {{.bytes = 128, .written = false, .aligned = true},
                      {.bytes = 64, .written = true, .aligned = false}}};
}

runtime::Program sound_program() {
  runtime::Program program;
  program.places = {{.backend = "cuda"}};
  program.inputs = {{"x", DType::kF32, {36}, 144}};
  program.outputs = {{"y", DType::kF32, {17}, 68}};
  program.arena_bytes = 128;
  runtime::Kernel& kernel = program.steps.emplace_back().kernel();
  kernel.buffers = {{Where::kInput, 0, 16}, {Where::kOutput, 0, 4}, {Where::kArena, 0, 64}};
  return program;
}

Status check(const Launch& launch, const runtime::Program& program) {
  return cuda::check_launch(launch, program, program.steps[0].kernel());
}

TEST(CudaLaunch, IsReadAsItWasWritten) {
  const auto read = cuda::decode_launch(cuda::encode(sound_launch()));
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->shape.blocks, 4U);
  EXPECT_EQ(read->shape.threads, 128U);
  EXPECT_EQ(read->workspace_bytes, 64);
  ASSERT_EQ(read->buffers.size(), 2U);
  EXPECT_EQ(read->buffers[0].bytes, 128);
  EXPECT_TRUE(read->buffers[1].written);
  EXPECT_FALSE(read->buffers[1].aligned);
  EXPECT_TRUE(check(*read, sound_program()).ok());
}

TEST(CudaLaunch, CutOrLongerIsRefused) {
  const std::string whole = cuda::encode(sound_launch());
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_EQ(cuda::decode_launch(whole.substr(0, n)).status().code(), Code::kParseError) << n;
  }
  EXPECT_EQ(cuda::decode_launch(whole + "x").status().code(), Code::kParseError);
}

TEST(CudaLaunch, ShapesNoDeviceHasAreRefused) {
  const auto refused = [](auto change) {
    Launch launch = sound_launch();
    change(launch);
    return cuda::decode_launch(cuda::encode(launch)).status().code() == Code::kParseError;
  };
  EXPECT_TRUE(refused([](Launch& l) { l.shape.threads = 0; }));
  EXPECT_TRUE(refused([](Launch& l) { l.shape.threads = 1025; }));
  EXPECT_TRUE(refused([](Launch& l) { l.shape.blocks = 1U << 31; }));
  EXPECT_TRUE(refused([](Launch& l) { l.shape.shared_bytes = 1 << 20; }));
  EXPECT_TRUE(refused([](Launch& l) { l.workspace_bytes = -1; }));
  EXPECT_TRUE(refused([](Launch& l) { l.buffers[0].bytes = -8; }));
  EXPECT_TRUE(refused([](Launch& l) { l.buffers.resize(510); }));
}

TEST(CudaLaunch, MapsThatReachOutsideAreRefused) {
  // Eight rows of 16 bytes from the begin of a buffer of 128.
  Launch sound = sound_launch();
  sound.buffers[0] = {.bytes = 128, .written = false, .aligned = true};
  sound.maps = {
      {.buffer = 0, .columns = 8, .rows = 8, .box_rows = 8, .row_bytes = 16, .offset_bytes = 0}};
  const auto read = cuda::decode_launch(cuda::encode(sound));
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->maps, sound.maps);
  EXPECT_EQ(read->shape.maps, 1U);
  const auto refused = [&](auto change) {
    Launch launch = sound;
    change(launch.maps[0]);
    return cuda::decode_launch(cuda::encode(launch)).status().code() == Code::kParseError;
  };
  using cuda::TensorMap;
  EXPECT_TRUE(refused([](TensorMap& m) { m.buffer = 100; }));
  EXPECT_TRUE(refused([](TensorMap& m) { m.columns = 9; }));
  EXPECT_TRUE(refused([](TensorMap& m) { m.rows = 9; }));
  EXPECT_TRUE(refused([](TensorMap& m) { m.rows = 0; }));
  EXPECT_TRUE(refused([](TensorMap& m) { m.box_rows = 257; }));
  EXPECT_TRUE(refused([](TensorMap& m) { m.row_bytes = 24; }));
  EXPECT_TRUE(refused([](TensorMap& m) { m.row_bytes = -16; }));
  EXPECT_TRUE(refused([](TensorMap& m) { m.row_bytes = int64_t{1} << 50; }));
  EXPECT_TRUE(refused([](TensorMap& m) { m.offset_bytes = 16; }));
  EXPECT_TRUE(refused([](TensorMap& m) { m.offset_bytes = -16; }));
  Launch unaligned = sound;
  unaligned.buffers[0].aligned = false;
  EXPECT_FALSE(cuda::decode_launch(cuda::encode(unaligned)).ok());
}

TEST(CudaLaunch, BuffersThatAreNotThereAreRefused) {
  const auto refused = [](auto change) {
    Launch launch = sound_launch();
    runtime::Program program = sound_program();
    change(launch, program.steps[0].kernel().buffers);
    return check(launch, program).code() == Code::kParseError;
  };
  EXPECT_TRUE(refused([](Launch& l, auto&) { l.buffers[0].bytes = 129; })) << "144 less 16";
  EXPECT_TRUE(refused([](Launch& l, auto&) { l.buffers[1].bytes = 65; }));
  EXPECT_TRUE(refused([](Launch& l, auto&) { l.buffers[0].written = true; })) << "an input";
  EXPECT_TRUE(refused([](Launch& l, auto&) { l.buffers[1].aligned = true; })) << "at byte 4";
  EXPECT_TRUE(refused([](Launch& l, auto&) { l.workspace_bytes = 65; }));
  EXPECT_TRUE(refused([](Launch& l, auto&) { l.workspace_bytes = 0; })) << "a buffer too many";
  EXPECT_TRUE(refused([](Launch&, auto& b) { b[2] = {Where::kInput, 0, 0}; }));
  EXPECT_TRUE(refused([](Launch&, auto& b) { b[0] = {Where::kScratch, 0, 0}; }));
  EXPECT_TRUE(refused([](Launch&, auto& b) { b.pop_back(); }));
}

// The object of a small program, and what the loader says of other bytes in its place.
class CudaObjects : public testing::Test {
 protected:
  void SetUp() override {
    auto model =
        compile_text("graph @g(%x: f32[8]) -> (%y) {\n  %y = relu(%x)\n}\n", on_device("cuda"));
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    program_ = (*model)->program();
    object_ = *program_.steps[0].kernel().object;
  }
  Status load(const std::string& object, const std::string& symbol = "pyc_kernel") {
    auto program = std::make_shared<runtime::Program>(program_);
    program->steps[0].kernel().object = std::make_shared<const std::string>(object);
    program->steps[0].kernel().symbol = symbol;
    return (*driver::find_backend("cuda"))->loader().load(program, 0).status();
  }

  FakesChosen fakes_;
  FakeDriver fake_;
  runtime::Program program_;
  std::string object_;
};

TEST_F(CudaObjects, ThatAreCutAreRefusedBeforeTheDriverSeesThem) {
  ASSERT_TRUE(load(object_).ok());
  const int64_t calls = fake_.calls();
  for (size_t n = 0; n < object_.size(); n += 97) {
    ASSERT_EQ(cuda::check_image(object_.substr(0, n)).code(), Code::kParseError) << n;
  }
  EXPECT_EQ(fake_.calls(), calls);
  EXPECT_EQ(load("").code(), Code::kParseError);
  EXPECT_EQ(load("not a cubin").code(), Code::kParseError);
}

TEST_F(CudaObjects, WithoutTheFunctionAreRefused) {
  const Status status = load(object_, "another");
  EXPECT_EQ(status.code(), Code::kParseError) << status.to_string();
}

// Any change of the header and the tables is refused or lies within the file.
TEST_F(CudaObjects, WithOtherHeadersNeverPointOutside) {
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string changed = object_;
    changed[random() % 64] = static_cast<char>(random());
    refused += cuda::check_image(changed).ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace pyc::test
