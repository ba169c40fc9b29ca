// Whole models on the device "cuda" over the fake driver: bits, memory, transfers, tensors on the
// device, run-time checks and several threads.

#include <array>
#include <thread>

#include "cuda/models_on_fake.h"
#include "driver/devices.h"
#include "session/artifacts.h"
#include "support/verified.h"

namespace pyc::test {
namespace {

using runtime::DeviceId;
using runtime::TensorView;

// Two products with epilogues, a reduction and a row operation: an arena, parameters, a workspace.
constexpr const char* kModel = R"(graph @m(%x: f32[4,32]) -> (%y, %s) {
  %w = const f32[32,48] random(seed=1, lo=-0.5, hi=0.5)
  %v = const f32[48,40] random(seed=2, lo=-0.5, hi=0.5)
  %a = matmul(%x, %w)
  %b = relu(%a)
  %c = matmul(%b, %v)
  %y = softmax(%c) {axis=1}
  %s = reduce_sum(%b) {axes=[1]}
}
)";

class CudaEngineTest : public testing::Test {
 protected:
  std::unique_ptr<runtime::Model> model_of(const std::string& text,
                                           const std::string& device = "cuda") {
    auto model = compile_text(text, on_device(device));
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    return model.ok() ? std::move(*model) : nullptr;
  }
  TensorBytes expected_of(const std::string& text, const TensorBytes& inputs) {
    TensorBytes outputs;
    const auto model = model_of(text, "reference");
    const Status status = run_on(*model, inputs, outputs);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return outputs;
  }

  FakesChosen fakes_;
  FakeDriver fake_;
};

TEST_F(CudaEngineTest, ReplaysGiveTheBitsOfTheReference) {
  const auto model = model_of(kModel);
  ASSERT_NE(model, nullptr);
  const TensorBytes inputs = ramp_inputs(model->inputs());
  const TensorBytes expected = expected_of(kModel, inputs);
  for (int run = 0; run < 100; ++run) {
    TensorBytes found;
    const Status status = run_on(*model, inputs, found);
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_EQ(found, expected) << "run " << run;
  }
}

TEST_F(CudaEngineTest, ARunWaitsOnceAllocatesNothingAndCountsItsTransfers) {
  const auto model = model_of(kModel);
  ASSERT_NE(model, nullptr);
  const TensorBytes inputs = ramp_inputs(model->inputs());
  TensorBytes found;
  const int64_t waits = fake_.waits();
  const int64_t allocations = fake_.allocations();
  const int64_t sent = fake_.sent();
  const int64_t fetched = fake_.fetched();
  const int64_t launches = fake_.launches();
  const int64_t early = fake_.early_launches();
  const int64_t calls = fake_.calls();
  runtime::RunStats stats;
  ASSERT_TRUE(run_on(*model, inputs, found, &stats).ok());
  EXPECT_EQ(fake_.waits() - waits, 1);
  EXPECT_EQ(fake_.allocations() - allocations, 0);
  EXPECT_EQ(stats.allocations, 0);
  EXPECT_EQ(fake_.sent() - sent, stats.sent_bytes);
  EXPECT_EQ(fake_.fetched() - fetched, stats.fetched_bytes);
  EXPECT_EQ(stats.sent_bytes, 4 * 32 * 4);
  EXPECT_EQ(stats.steps, static_cast<int64_t>(model->program().steps.size()));
  EXPECT_EQ(fake_.launches() - launches, stats.steps);
  EXPECT_EQ(fake_.early_launches() - early, stats.steps - 1) << "all but the first";
  EXPECT_EQ(fake_.calls() - calls, 4) << "a copy, a graph, a copy, a wait";
}

int64_t parameter_bytes(const runtime::Program& program) {
  int64_t bytes = 0;
  for (const runtime::Parameter& p : program.parameters) bytes += p.bytes;
  return bytes;
}

TEST_F(CudaEngineTest, TheArenaIsAllocatedAsPlanned) {
  const int64_t before = fake_.allocated();
  const auto model = model_of(kModel);
  ASSERT_NE(model, nullptr);
  const runtime::Program& program = model->program();
  ASSERT_GT(program.arena_bytes, 0);
  EXPECT_EQ(model->memory().measured_arena_bytes, program.arena_bytes);
  // The passage: an input and two outputs, each at a multiple of 256.
  constexpr int64_t kPassage = 512 + 768 + 256;
  EXPECT_EQ(fake_.allocated() - before, program.arena_bytes + parameter_bytes(program) + kPassage);
}

// Constants of the same bytes but other shapes are parameters of their own: the device has
// as many bytes as the plan says, and a second model of the same shares all of them.
TEST_F(CudaEngineTest, EqualParametersOfAProgramAreAllocatedAsPlanned) {
  constexpr const char* kAlike = R"(graph @m(%x: f32[4,32]) -> (%y, %z) {
  %token = const f32[1,32] random(seed=7, lo=-0.5, hi=0.5)
  %bias = const f32[32] random(seed=7, lo=-0.5, hi=0.5)
  %s = add(%x, %bias)
  %y = relu(%s)
  %z = concat(%token, %x) {axis=0}
}
)";
  const int64_t before = fake_.allocated();
  const auto model = model_of(kAlike);
  ASSERT_NE(model, nullptr);
  const runtime::Program& program = model->program();
  EXPECT_EQ(parameter_bytes(program), 2 * 32 * 4);
  constexpr int64_t kPassage = 512 + 512 + 768;
  EXPECT_EQ(fake_.allocated() - before, program.arena_bytes + parameter_bytes(program) + kPassage);
  const int64_t sent = fake_.sent();
  const auto second = model_of(kAlike);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(fake_.sent(), sent) << "nothing is uploaded again";
}

TEST_F(CudaEngineTest, ParametersAreThereOncePerContent) {
  const auto first = model_of(kModel);
  ASSERT_NE(first, nullptr);
  const int64_t sent = fake_.sent();
  const auto second = model_of(kModel);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(fake_.sent(), sent) << "nothing is uploaded again";
  TensorBytes found;
  const TensorBytes inputs = ramp_inputs(first->inputs());
  ASSERT_TRUE(run_on(*second, inputs, found).ok());
  EXPECT_EQ(found, expected_of(kModel, inputs));
}

TEST_F(CudaEngineTest, NothingIsLeftBehind) {
  const int64_t alive = fake_.alive();
  {
    const auto model = model_of(kModel);
    ASSERT_NE(model, nullptr);
    EXPECT_GT(fake_.alive(), alive);
  }
  EXPECT_EQ(fake_.alive(), alive);
}

// A model's tensors in device memory, `shift` bytes behind where they are aligned.
class OnDevice {
 public:
  explicit OnDevice(const std::vector<runtime::IoSpec>& specs, size_t shift = 0) : shift_(shift) {
    for (const runtime::IoSpec& spec : specs) {
      auto made = device_->allocate(static_cast<size_t>(spec.bytes) + shift);
      memory_.push_back(std::move(*made));
      auto* data = reinterpret_cast<void*>(memory_.back().get() + shift);
      views_.push_back({.data = data,
                        .dtype = spec.dtype,
                        .shape = spec.shape,
                        .bytes = spec.bytes,
                        .device = {DeviceId::kCuda, 0}});
    }
  }
  void write(const TensorBytes& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      ASSERT_TRUE(stream_->copy_in(memory_[i].get() + shift_, bytes[i]).ok());
    }
    ASSERT_TRUE(stream_->synchronize().ok());
  }
  TensorBytes read() {
    TensorBytes out;
    for (size_t i = 0; i < memory_.size(); ++i) {
      out.emplace_back(static_cast<size_t>(views_[i].bytes));
      EXPECT_TRUE(stream_->copy_out(out.back(), memory_[i].get() + shift_).ok());
    }
    EXPECT_TRUE(stream_->synchronize().ok());
    return out;
  }
  std::span<const TensorView> views() const { return views_; }

 private:
  size_t shift_;
  cuda::DevicePtr device_ = *cuda::Device::open(*cuda::Driver::load(kFakeDriver));
  Result<cuda::Stream> stream_ = cuda::Stream::create(device_);
  std::vector<cuda::DeviceMemory> memory_;
  std::vector<TensorView> views_;
};

TEST_F(CudaEngineTest, TensorsOnTheDeviceAreTakenWhereTheyLie) {
  const auto model = model_of(kModel);
  ASSERT_NE(model, nullptr);
  for (const float first : {0.25F, 1.5F}) {  // the second pair lies elsewhere
    const TensorBytes inputs = ramp_inputs(model->inputs(), first);
    OnDevice in(model->inputs());
    OnDevice out(model->outputs());
    in.write(inputs);
    const int64_t sent = fake_.sent();
    runtime::RunStats stats;
    for (int run = 0; run < 2; ++run) {
      const int64_t calls = fake_.calls();
      const Status status = model->run(in.views(), out.views(), &stats);
      ASSERT_TRUE(status.ok()) << status.to_string();
      if (run > 0) {
        EXPECT_EQ(fake_.calls() - calls, 2) << "a graph, a wait";
      }
      EXPECT_EQ(stats.sent_bytes, 0);
      EXPECT_EQ(stats.fetched_bytes, 0);
    }
    EXPECT_EQ(fake_.sent() - sent, 0);
    EXPECT_EQ(out.read(), expected_of(kModel, inputs));
  }
  // And back to the host's.
  TensorBytes found;
  const TensorBytes inputs = ramp_inputs(model->inputs());
  ASSERT_TRUE(run_on(*model, inputs, found).ok());
  EXPECT_EQ(found, expected_of(kModel, inputs));
}

TEST_F(CudaEngineTest, TensorsOnTheDeviceThatKernelsCannotTakeAreCopiedThere) {
  const auto model = model_of(kModel);
  ASSERT_NE(model, nullptr);
  const TensorBytes inputs = ramp_inputs(model->inputs());
  OnDevice in(model->inputs(), 4);
  OnDevice out(model->outputs(), 8);
  in.write(inputs);
  const Status status = model->run(in.views(), out.views());
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(out.read(), expected_of(kModel, inputs));
}

TEST_F(CudaEngineTest, OtherMemoryAndOrderAreRefused) {
  const auto model = model_of(kModel);
  ASSERT_NE(model, nullptr);
  TensorBytes outputs = room_for(model->outputs());
  const auto out = views_of(model->outputs(), outputs);
  OnDevice in(model->inputs());
  std::vector<TensorView> views(in.views().begin(), in.views().end());
  views[0].device.id = 1;
  EXPECT_EQ(model->run(views, out).code(), Code::kUnsupported) << "another GPU";
  views[0].device = {DeviceId::kCuda, 0};
  const std::array<int64_t, 2> strides = {1, 4};
  views[0].strides = strides;
  EXPECT_EQ(model->run(views, out).code(), Code::kUnsupported) << "column-major";
  views[0].strides = {};
  views[0].bytes = 8;
  EXPECT_EQ(model->run(views, out).code(), Code::kSizeMismatch);
  const auto host = model_of(kModel, "reference");
  EXPECT_EQ(host->run(in.views(), out).code(), Code::kUnsupported) << "the host's engine";
}

// Rows of whole and of broken blocks, of one super-block and of two.
// Rows that a cluster of blocks has room for are reduced by one.
TEST_F(CudaEngineTest, FewLongRowsAreReducedByTheWholeDevice) {
  const std::pair<std::string, std::string> cases[] = {{"f32[1049600]", "reduce_max"},
                                                       {"f32[2,1050001]", "reduce_sum"},
                                                       {"bf16[1049600]", "reduce_sum"}};
  for (const auto& [type, op] : cases) {
    const std::string text =
        "graph @m(%x: " + type + ") -> (%s) {\n  %s = " + op + "(%x) {axes=[-1]}\n}\n";
    const auto model = model_of(text);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->program().steps.size(), 3U) << type << ": blocks, super-blocks, the rest";
    const TensorBytes inputs = ramp_inputs(model->inputs());
    TensorBytes found;
    const Status status = run_on(*model, inputs, found);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(found, expected_of(text, inputs)) << type;
  }
}

// Blocks that are whole and broken, one super-block and two.
TEST_F(CudaEngineTest, RunningSumsAreTakenByManyThreads) {
  const std::pair<std::string, size_t> cases[] = {
      {"f32[70000]", 3}, {"f32[3,2,15001]", 3}, {"f32[1050000]", 4}};
  for (const auto& [type, steps] : cases) {
    const std::string text =
        "graph @m(%x: " + type + ") -> (%y) {\n  %y = cumsum(%x) {axis=-1}\n}\n";
    const auto model = model_of(text);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(model->program().steps.size(), steps) << type;
    const TensorBytes inputs = ramp_inputs(model->inputs());
    TensorBytes found;
    const Status status = run_on(*model, inputs, found);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(found, expected_of(text, inputs)) << type;
  }
}

// Equal elements, zeros of both signs, NaN; rows of one warp and of several.
TEST_F(CudaEngineTest, RowsAreSortedByABlock) {
  for (const char* type : {"f32[3,128]", "f32[2,2,1000]", "f32[1,3333]"}) {
    const std::string text = std::string("graph @m(%x: ") + type + R"() -> (%a, %i, %b, %j) {
  %positive = relu(%x)
  %zeros = mul(%positive, %x)
  %logs = log(%x)
  %a, %i = sort(%logs)
  %b, %j = sort(%zeros) {descending=true}
}
)";
    const auto model = model_of(text);
    ASSERT_NE(model, nullptr);
    const auto& log = model->decisions();
    const auto sorts = [](const Decision& d) {
      return d.what.starts_with("kernel:") && d.chosen == "f32_sort";
    };
    EXPECT_EQ(std::count_if(log.begin(), log.end(), sorts), 2) << type;
    const TensorBytes inputs = ramp_inputs(model->inputs());
    TensorBytes found;
    const Status status = run_on(*model, inputs, found);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(found, expected_of(text, inputs)) << type;
  }
}

constexpr const char* kGather = R"(graph @g(%x: f32[6,4], %i: i64[3]) -> (%y) {
  %z = relu(%x)
  %y = gather(%z, %i) {axis=0}
}
)";

TEST_F(CudaEngineTest, AFailedCheckSaysWhatTheCpuSays) {
  const auto cuda = model_of(kGather);
  const auto cpu = model_of(kGather, "cpu");
  ASSERT_NE(cuda, nullptr);
  const auto run = [](runtime::Model& model, int64_t index, runtime::RunStats* stats = nullptr) {
    TensorBytes inputs = ramp_inputs({model.inputs()[0]});
    const std::array<int64_t, 3> indices = {1, index, 0};
    const auto bytes = std::as_bytes(std::span(indices));
    inputs.emplace_back(bytes.begin(), bytes.end());
    TensorBytes outputs;
    return run_on(model, inputs, outputs, stats);
  };
  const Status expected = run(*cpu, 77);
  ASSERT_EQ(expected.code(), Code::kRuntimeFailed);
  EXPECT_EQ(run(*cuda, 77).to_string(), expected.to_string());
  EXPECT_NE(expected.message().find("77 at [1]"), std::string::npos) << expected.to_string();
  EXPECT_TRUE(run(*cuda, 5).ok()) << "the model stays usable";
}

TEST_F(CudaEngineTest, ProfilesEveryStep) {
  const auto model = model_of(kModel);
  ASSERT_NE(model, nullptr);
  TensorBytes inputs = ramp_inputs(model->inputs());
  TensorBytes outputs = room_for(model->outputs());
  const auto times =
      model->profile(views_of(model->inputs(), inputs), views_of(model->outputs(), outputs));
  ASSERT_TRUE(times.ok()) << times.status().to_string();
  EXPECT_EQ(times->size(), model->program().steps.size());
  for (const int64_t ns : *times) EXPECT_GT(ns, 0);
  EXPECT_EQ(outputs, expected_of(kModel, inputs));
}

TEST_F(CudaEngineTest, EightThreadsOnOneModel) {
  const auto model = model_of(kModel);
  ASSERT_NE(model, nullptr);
  constexpr int kThreads = 8;
  std::array<TensorBytes, kThreads> inputs;
  std::array<TensorBytes, kThreads> expected;
  for (int t = 0; t < kThreads; ++t) {
    inputs[t] = ramp_inputs(model->inputs(), 0.125F * static_cast<float>(t));
    expected[t] = expected_of(kModel, inputs[t]);
  }
  std::array<int, kThreads> wrong{};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int run = 0; run < 20; ++run) {
          TensorBytes found;
          const Status status = run_on(*model, inputs[t], found);
          if (!status.ok() || found != expected[t]) ++wrong[t];
        }
      });
    }
  }
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(wrong[t], 0) << "thread " << t;
}

TEST_F(CudaEngineTest, AnArtefactRunsWithoutTheCompiler) {
  driver::CompileOptions options = on_device("cuda");
  options.target = "sm_90a";
  auto graph = driver::parse_model(kModel);
  ASSERT_TRUE(graph.ok());
  auto made = session::compile_artifact(test::verified(std::move(*graph)), options);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto pieces = artifact::encode(*made);
  ASSERT_TRUE(pieces.ok());
  std::vector<std::byte> file;
  for (const SharedBytes& piece : *pieces) file.insert(file.end(), piece.begin(), piece.end());
  unsetenv("PYC_NVRTC");
  driver::CompileOptions loading;
  loading.threads = 1;
  auto loaded = session::load_artifact(SharedBytes(std::move(file)), loading);
  setenv("PYC_NVRTC", kFakeNvrtc, 1);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  const TensorBytes inputs = ramp_inputs(loaded->model->inputs());
  TensorBytes found;
  ASSERT_TRUE(run_on(*loaded->model, inputs, found).ok());
  EXPECT_EQ(found, expected_of(kModel, inputs));
}

TEST_F(CudaEngineTest, CodeForAnotherArchitectureIsRefused) {
  const auto model = model_of(kModel);
  ASSERT_NE(model, nullptr);
  auto program = std::make_shared<runtime::Program>(model->program());
  program->places[0].target = "sm_80";
  const auto backend = driver::find_backend("cuda");
  const auto engine = (*backend)->loader().load(program, 0);
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().code(), Code::kUnsupported);
  EXPECT_NE(engine.status().message().find("sm_80"), std::string::npos);
}

}  // namespace
}  // namespace pyc::test
