#include "runtime/model.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/fp_state.h"
#include "base/sanitizers.h"
#include "programs.h"

namespace pyc::runtime {
namespace {

TEST(Model, RunsItsStepsOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 7, 16}) {
    const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(threads));
    Tensors t(threads);
    RunStats stats;
    ASSERT_TRUE(model->run(t.inputs, t.outputs, &stats).ok());
    EXPECT_EQ(t.wrong(), 0);
    EXPECT_EQ(stats.steps, 2);
    EXPECT_EQ(stats.allocations, 0);
    EXPECT_GT(stats.wall_ns, 0);
  }
}

TEST(Model, TellsInputsOutputsAndProgram) {
  const auto program = make_two_step_program();
  const std::unique_ptr<Model> model = make_model(program, make_pool(1));
  ASSERT_EQ(model->inputs().size(), 1U);
  EXPECT_EQ(model->inputs()[0].name, "x");
  ASSERT_EQ(model->outputs().size(), 1U);
  EXPECT_EQ(model->outputs()[0].bytes, kTensorBytes);
  EXPECT_EQ(&model->program(), program.get());
}

TEST(Model, CountsRunsAndKeepsCompileStatistics) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(2));
  EXPECT_EQ(model->stats().runs, 0);
  EXPECT_EQ(model->stats().contexts, 1) << "the first is made with the model";
  model->set_compile_stats(1234, true);
  Tensors t;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(model->run(t.inputs, t.outputs).ok());
  const ModelStats stats = model->stats();
  EXPECT_EQ(stats.runs, 3);
  EXPECT_EQ(stats.failed_runs, 0);
  EXPECT_EQ(stats.guard_misses, 0);
  EXPECT_EQ(stats.contexts, 1);
  EXPECT_EQ(stats.compile_ns, 1234);
  EXPECT_TRUE(stats.cache_hit);
}

TEST(Model, MeasuredMemoryIsThePlannedOne) {
  for (const int threads : {1, 3}) {
    const auto program = make_two_step_program();
    program->scratch_bytes = 100 * 4;  // each thread's share is rounded up to 448
    const std::unique_ptr<Model> model = make_model(program, make_pool(threads));
    EXPECT_EQ(model->memory().measured_arena_bytes, 64 + kTensorBytes + 448 * threads);
    EXPECT_EQ(model->memory().measured_arena_bytes,
              model->memory().arena_bytes + model->memory().scratch_bytes);
  }
}

TEST(Model, RefusesAnAccountThatIsNotWhatItAllocates) {
  const auto program = make_two_step_program();
  MemoryReport memory = planned_memory(*program, 1);
  memory.arena_bytes -= 64;
  const auto model = Model::create(*load(program), make_pool(1), {}, memory);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), Code::kInternal);
  EXPECT_EQ(model.status().message(),
            "memory of a run: planned 2304 bytes (arena 2048, scratch 256), allocated 2368");
}

TEST(Model, RefusesMissingParts) {
  EXPECT_EQ(Model::create(nullptr, make_pool(1), {}, {}).status().code(), Code::kNullPointer);
  EXPECT_EQ(Model::create(*load(make_two_step_program()), nullptr, {}, {}).status().code(),
            Code::kNullPointer);
}

TEST(Model, NoMemoryIsAStatus) {
  if (kSanitized) GTEST_SKIP() << "sanitizers abort on huge allocations";
  const auto program = make_two_step_program();
  program->arena_bytes = int64_t{1} << 52;
  const auto model = Model::create(*load(program), make_pool(1), {}, planned_memory(*program, 1));
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), Code::kOutOfMemory);
}

TEST(LoadEngine, RefusesBrokenPrograms) {
  struct Broken {
    void (*spoil)(Program& program);
    const char* message;
  };
  const Broken programs[] = {
      {[](Program& p) { p.places.clear(); }, "program: it has no place to run in"},
      {[](Program& p) { p.places[0].space = "moon"; },
       "program: its first place is in the space 'moon', expected 'host'"},
      {[](Program& p) { p.steps[1].place = 1; }, "program: step 'g1': place 1 of 1 does not exist"},
      {[](Program& p) { p.steps[0].kernel().object = nullptr; }, "program: step 'g0': no code"},
      {[](Program& p) { p.steps[0].kernel().buffers[0].index = 1; },
       "program: step 'g0': buffer 0 does not exist"},
      {[](Program& p) { p.steps[0].kernel().buffers[0].offset = kTensorBytes + 4; },
       "program: step 'g0': buffer 0 does not exist"},
      {[](Program& p) { p.steps[0].kernel().buffers[1].offset = -4; },
       "program: step 'g0': buffer 1 does not exist"},
      {[](Program& p) { p.steps[0].kernel().buffers[1].index = 1; },
       "program: step 'g0': buffer 1 does not exist"},
      {[](Program& p) { p.steps[1].kernel().buffers[1].index = 7; },
       "program: step 'g1': buffer 1 does not exist"},
      {[](Program& p) { p.steps[1].kernel().buffers[0].offset = p.arena_bytes; },
       "program: step 'g1': buffer 0 does not exist"},
      {[](Program& p) { p.steps[1].kernel().buffers[0].offset = -64; },
       "program: step 'g1': buffer 0 does not exist"},
      {[](Program& p) { p.parameters[0].data = nullptr; }, "program: parameter 0 has no data"},
      {[](Program& p) { p.inputs[0].bytes = 1; },
       "program: input 'x': its shape does not have 1 bytes"},
      {[](Program& p) {
         p.outputs[0].shape = {-8, -64};
       },
       "program: output 'y': its shape does not have 2048 bytes"},
      {[](Program& p) {
         p.outputs[0].shape = {int64_t{1} << 40, int64_t{1} << 40};
       },
       "program: output 'y': its shape does not have 2048 bytes"},
      {[](Program& p) { p.scratch_bytes = -1; }, "program: arena of 2112 bytes, scratch of -1"},
  };
  for (const Broken& broken : programs) {
    const auto program = make_two_step_program();
    broken.spoil(*program);
    const auto engine = load(program);
    ASSERT_FALSE(engine.ok()) << broken.message;
    EXPECT_EQ(engine.status().code(), Code::kInternal);
    EXPECT_EQ(engine.status().message(), broken.message);
  }
}

TEST(LoadEngine, RefusesWhatItsLoaderDidNotWrite) {
  struct Broken {
    void (*spoil)(Program& program);
    Code code;
    const char* message;
  };
  const Broken programs[] = {
      {[](Program& p) { p.places[0].backend = "abacus"; }, Code::kUnsupported,
       "the program needs the engine 'abacus', which is not here; there are: functions"},
      {[](Program& p) { p.places.push_back({.backend = "functions"}); }, Code::kUnsupported,
       "the program runs at 2 places, engines run at one"},
      {[](Program& p) { p.steps[1].kernel().launch.pop_back(); }, Code::kParseError,
       "step 'g1': its launch has 7 bytes, expected 8 and as many for each size"},
      {[](Program& p) { p.steps[1].kernel().launch = host_launch(-1); }, Code::kParseError,
       "step 'g1': its launch has -1 parallel iterations"},
      {[](Program& p) { p.steps[0].kernel().symbol = "g"; }, Code::kParseError,
       "step 'g0': its object has no function 'g'"},
      {[](Program& p) { p.steps[0].kernel().object = std::make_shared<const std::string>("x"); },
       Code::kParseError, "step 'g0': no function"},
  };
  for (const Broken& broken : programs) {
    const auto program = make_two_step_program();
    broken.spoil(*program);
    const auto engine = load(program);
    ASSERT_FALSE(engine.ok()) << broken.message;
    EXPECT_EQ(engine.status().code(), broken.code);
    EXPECT_EQ(engine.status().message(), broken.message);
  }
  EXPECT_EQ(load(nullptr).status().code(), Code::kNullPointer);
}

// Counts what it loads; the code of all of them is one function.
class CountingLoader final : public HostLoader {
 public:
  std::string_view backend() const override { return "functions"; }
  mutable int loaded = 0;

 private:
  Result<std::unique_ptr<const HostCode>> load_object(const std::string&) const override {
    ++loaded;
    return std::unique_ptr<const HostCode>(
        std::make_unique<FunctionCode>(HostFunction{scale_rows, nullptr}));
  }
};

TEST(LoadEngine, LoadsASharedObjectOnceForAllModels) {
  const CountingLoader loader;
  const Loader* const loaders[] = {&loader};
  const auto program = make_two_step_program();
  program->steps[1].kernel() = program->steps[0].kernel();
  const auto engine = load_engine(program, loaders);
  ASSERT_TRUE(engine.ok()) << engine.status().to_string();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Model::create(*engine, make_pool(1), {}, planned_memory(*program, 1)).ok());
  }
  EXPECT_EQ(loader.loaded, 1);
  EXPECT_EQ((*engine)->parallel(1), kRows);
}

void must_not_run(const pyc_kernel_args*, int64_t, int64_t) { ADD_FAILURE() << "no points"; }

TEST(Model, AStepWithoutPointsRunsNothing) {
  const std::unique_ptr<Model> model =
      make_model(make_one_step_program(must_not_run, nullptr, 0), make_pool(3));
  Tensors t;
  RunStats stats;
  EXPECT_TRUE(model->run(t.inputs, t.outputs, &stats).ok());
  EXPECT_EQ(stats.steps, 1);
}

struct Calls {
  std::atomic<int> count{0};
  pyc_kernel_args args{};

  static void kernel(const pyc_kernel_args* args, int64_t begin, int64_t end) {
    auto* self = static_cast<Calls*>(const_cast<void*>(args->self));
    ++self->count;
    self->args = *args;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 1);
  }
};

TEST(Model, AStepWithOnePointRunsOnce) {
  Calls calls;
  const std::unique_ptr<Model> model =
      make_model(make_one_step_program(Calls::kernel, &calls, 1), make_pool(3));
  Tensors t;
  ASSERT_TRUE(model->run(t.inputs, t.outputs).ok());
  EXPECT_EQ(calls.count, 1);
  EXPECT_EQ(calls.args.thread, 0);
  EXPECT_EQ(calls.args.threads, 3);
  EXPECT_EQ(calls.args.scratch, nullptr) << "none is needed";
  EXPECT_EQ(calls.args.dims, nullptr);
}

// No thread goes on before all four have come.
struct ScratchRecord {
  std::atomic<std::byte*> of_thread[4] = {};

  bool complete() const {
    return std::ranges::all_of(of_thread, [](const auto& at) { return at.load() != nullptr; });
  }
  static void kernel(const pyc_kernel_args* args, int64_t, int64_t) {
    auto* self = static_cast<ScratchRecord*>(const_cast<void*>(args->self));
    self->of_thread[args->thread] = static_cast<std::byte*>(args->scratch);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!self->complete() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
  }
};

TEST(Model, EveryThreadHasScratchMemoryOfItsOwn) {
  ScratchRecord record;
  const auto program = make_one_step_program(ScratchRecord::kernel, &record, kRows);
  program->scratch_bytes = 100;
  const std::unique_ptr<Model> model = make_model(program, make_pool(4));
  Tensors t;
  ASSERT_TRUE(model->run(t.inputs, t.outputs).ok());
  for (int thread = 0; thread < 4; ++thread) {
    EXPECT_EQ(record.of_thread[thread].load(), record.of_thread[0].load() + thread * 128);
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(record.of_thread[0].load()) % 64, 0U);
}

TEST(Model, AProgramWithoutStepsRuns) {
  const auto program = make_empty_program();
  const std::unique_ptr<Model> model = make_model(program, make_pool(1));
  EXPECT_TRUE(model->run({}, {}).ok());
  EXPECT_EQ(model->memory().measured_arena_bytes, 0);
}

// Element 0 of x is the fault code that row `begin` of every part sets; 0: none.
void fault_as_told(const pyc_kernel_args* args, int64_t begin, int64_t) {
  const auto* x = static_cast<const float*>(args->buffers[0]);
  const auto code = static_cast<int32_t>(x[begin * kColumns]);
  if (code != 0) *args->fault = code;
}

class Faults : public testing::Test {
 protected:
  Faults() {
    const auto program = make_one_step_program(fault_as_told, nullptr, kRows);
    program->steps[0].kernel().faults = {{.message = "node 'gather': index out of range"},
                                         {.message = "node 'slice': bad step"}};
    program->steps.push_back(program->steps[0]);
    program->steps[1].name = "g1";
    model_ = make_model(program, make_pool(4));
  }

  // The outcome of a run in which row r sets codes[r].
  Status run(const std::vector<float>& codes, RunStats* stats = nullptr) {
    Tensors t;
    std::fill(t.x.begin(), t.x.end(), 0.0F);
    for (size_t r = 0; r < codes.size(); ++r) t.x[r * kColumns] = codes[r];
    return model_->run(t.inputs, t.outputs, stats);
  }

  std::unique_ptr<Model> model_;
};

TEST_F(Faults, FailTheRunWithTheStepAndItsMessage) {
  RunStats stats;
  const Status first = run({1}, &stats);
  EXPECT_EQ(first.to_string(), "runtime_failed: step 'g0': node 'gather': index out of range");
  EXPECT_EQ(stats.steps, 0) << "the steps after it are not run";
  EXPECT_EQ(run({2}).to_string(), "runtime_failed: step 'g0': node 'slice': bad step");
  EXPECT_EQ(model_->stats().failed_runs, 2);
  EXPECT_EQ(model_->stats().guard_misses, 0);
}

TEST_F(Faults, TheModelStaysUsable) {
  EXPECT_FALSE(run({1}).ok());
  RunStats stats;
  EXPECT_TRUE(run({0}, &stats).ok());
  EXPECT_EQ(stats.steps, 2);
}

TEST_F(Faults, OfSeveralPiecesTheFirstCounts) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(run({0, 0, 2, 0, 1, 0, 1, 0}).message(), "step 'g0': node 'slice': bad step");
  }
}

TEST_F(Faults, CodesOfBrokenKernelsAreInternalErrors) {
  EXPECT_EQ(run({-1}).to_string(), "internal: step 'g0': out of bounds access");
  EXPECT_EQ(run({3}).to_string(), "internal: step 'g0': unknown fault code 3");
  EXPECT_EQ(run({-2}).to_string(), "internal: step 'g0': unknown fault code -2");
}

void throw_something(const pyc_kernel_args* /*args*/, int64_t begin, int64_t) {
  if (begin >= kRows / 2) throw std::runtime_error("never seen");
}

TEST(Model, NoExceptionOfAKernelEscapes) {
  const std::unique_ptr<Model> model =
      make_model(make_one_step_program(throw_something, nullptr, kRows), make_pool(4));
  Tensors t;
  EXPECT_EQ(model->run(t.inputs, t.outputs).to_string(),
            "internal: step 'g0': the kernel threw an exception");
  EXPECT_EQ(model->profile(t.inputs, t.outputs).status().code(), Code::kInternal);
}

struct ThrowingClock final : Clock {
  int64_t now_ns() override { throw std::runtime_error("no time"); }
};

TEST(Model, NoOtherExceptionEscapes) {
  const std::unique_ptr<Model> model =
      make_model(make_two_step_program(), make_pool(1), {}, std::make_shared<ThrowingClock>());
  Tensors t;
  EXPECT_EQ(model->run(t.inputs, t.outputs).to_string(), "internal: no time");
  EXPECT_EQ(model->stats().failed_runs, 1);
}

#if defined(__x86_64__)
constexpr uint64_t kFlushToZero = 0x8040;
constexpr uint64_t kStickyFlags = 0x3F;
#else
constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
constexpr uint64_t kStickyFlags = 0;
#endif

// y = x / 2 and, per row, whether the thread flushes to zero.
void halve(const pyc_kernel_args* args, int64_t begin, int64_t end) {
  const auto* x = static_cast<const volatile float*>(args->buffers[0]);
  auto* y = static_cast<volatile float*>(args->buffers[1]);
  for (int64_t i = begin * kColumns; i < end * kColumns; ++i) y[i] = x[i] * 0.5F;
  if ((read_fp_control() & kFlushToZero) != 0) *args->fault = 1;
}

TEST(Model, FloatingPointStateIsSetForTheRunAndGivenBack) {
  const auto program = make_one_step_program(halve, nullptr, kRows);
  program->steps[0].kernel().faults = {{.message = "flushes to zero"}};
  const std::unique_ptr<Model> model = make_model(program, make_pool(3));
  Tensors t;
  std::fill(t.x.begin(), t.x.end(), std::numeric_limits<float>::min());
  const uint64_t original = read_fp_control();
  write_fp_control(original | kFlushToZero);
  const uint64_t before = read_fp_control();
  const Status status = model->run(t.inputs, t.outputs);
  const uint64_t after = read_fp_control();
  write_fp_control(original);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(after & ~kStickyFlags, before & ~kStickyFlags);
  EXPECT_EQ(t.y, std::vector<float>(kElements, 0x1p-127F));
}

struct FakeClock final : Clock {
  std::atomic<int64_t> time{1'000'000};
  int64_t now_ns() override { return time; }
};

// Each run of the kernel takes as many nanoseconds as x[0] says.
void pass_time(const pyc_kernel_args* args, int64_t, int64_t) {
  auto* clock = static_cast<FakeClock*>(const_cast<void*>(args->self));
  clock->time += static_cast<int64_t>(*static_cast<const float*>(args->buffers[0]));
}

TEST(Model, TimesAreThoseOfTheClockHandedIn) {
  const auto clock = std::make_shared<FakeClock>();
  const auto program = make_one_step_program(pass_time, clock.get(), 1);
  program->steps.push_back(program->steps[0]);
  program->steps[1].kernel().launch = host_launch(3);
  const std::unique_ptr<Model> model = make_model(program, make_pool(1), {}, clock);
  Tensors t;
  t.x[0] = 7;
  RunStats stats;
  ASSERT_TRUE(model->run(t.inputs, t.outputs, &stats).ok());
  EXPECT_EQ(stats.wall_ns, 14);

  t.x[0] = 100;
  const Result<std::vector<int64_t>> profile = model->profile(t.inputs, t.outputs);
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(*profile, (std::vector<int64_t>{100, 100}));
  EXPECT_EQ(model->stats().runs, 2);

  t.inputs.clear();
  EXPECT_FALSE(model->run(t.inputs, t.outputs, &stats).ok());
  EXPECT_EQ(stats.wall_ns, 0) << "the statistics are of this run";
}

std::string text(const DecisionLog& log) {
  std::string all;
  for (const Decision& decision : log) all += decision.to_string() + "\n";
  return all;
}

// A fixed trace of good, refused and failing runs; gives what the model logged.
std::string replay() {
  const auto program = make_one_step_program(fault_as_told, nullptr, kRows);
  program->steps[0].kernel().faults = {{.message = "node 'gather': index out of range"}};
  const DecisionLog log = {{"kernel:g0", "plain", "only_candidate", "", {}}};
  const std::unique_ptr<Model> model = make_model(program, make_pool(2), log);
  for (int i = 0; i < 3; ++i) {
    Tensors t;
    std::fill(t.x.begin(), t.x.end(), i == 1 ? 1.0F : 0.0F);
    static_cast<void>(model->run(t.inputs, t.outputs));
    const std::vector<int64_t> narrower = {kRows, i};
    t.inputs[0].shape = narrower;
    static_cast<void>(model->run(t.inputs, t.outputs));
  }
  return text(model->decisions()) + text(model->refusals());
}

TEST(Model, TheDecisionLogIsTheSameOnReplay) {
  const std::string first = replay();
  EXPECT_EQ(first,
            "kernel:g0 -> plain [only_candidate]\n"
            "run -> refused [shape_mismatch] input 'x': expected f32[8,64], found f32[8,0]\n"
            "run -> refused [runtime_failed] step 'g0': node 'gather': index out of range\n"
            "run -> refused [shape_mismatch] input 'x': expected f32[8,64], found f32[8,1]\n"
            "run -> refused [shape_mismatch] input 'x': expected f32[8,64], found f32[8,2]\n");
  EXPECT_EQ(replay(), first);
}

TEST(Model, KeepsTheLatestRefusalsOnly) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(1));
  Tensors t;
  for (size_t i = 0; i < Model::kMaxRefusals + 10; ++i) {
    t.inputs[0].bytes = static_cast<int64_t>(i);
    EXPECT_FALSE(model->run(t.inputs, t.outputs).ok());
  }
  const DecisionLog refusals = model->refusals();
  ASSERT_EQ(refusals.size(), Model::kMaxRefusals);
  EXPECT_EQ(refusals.front().detail, "input 'x': expected 2048 bytes for f32[8,64], found 10");
}

}  // namespace
}  // namespace pyc::runtime
