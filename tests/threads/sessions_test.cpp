// Sessions, caches and compiles from many threads at once. Also what the preset tsan-all is for:
// the thread sanitizer over everything but libLLVM (tsan.supp) and generated code.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "driver/compile.h"
#include "onnx/run_model.h"
#include "session/cache.h"
#include "session/model.h"
#include "support/temp_folder.h"
#include "tooling/seeded_run.h"

namespace pyc::onnx::test {
namespace {

constexpr int kThreads = 16;

void on_threads(const std::function<void(int)>& work, int count = kThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
}

std::string layer(int64_t rows) {
  return "graph @g(%x: f32[" + std::to_string(rows) +
         ",8]) -> (%y) {\n  %w = const f32[8,8] random(seed=1, lo=-1, hi=1)\n"
         "  %h = matmul(%x, %w)\n  %y = softmax(%h) {axis=-1}\n}\n";
}

std::string digest_of(int64_t rows, const driver::CompileOptions& options) {
  auto graph = driver::parse_model(layer(rows));
  if (!graph.ok()) return graph.status().to_string();
  const auto model = session::compile(std::move(*graph), options);
  if (!model.ok()) return model.status().to_string();
  const auto data = tooling::SeededRun::create(**model, 1);
  if (!data.ok()) return data.status().to_string();
  const Status ran = (*model)->run(data->inputs(), data->outputs());
  return ran.ok() ? data->digest(0).hex() : ran.to_string();
}

// Equal and different graphs at once, while another thread empties the cache.
void compile_at_once(const driver::CompileOptions& options) {
  driver::CompileOptions alone;
  alone.cache = false;
  std::vector<std::string> expected;
  for (int64_t rows = 1; rows <= 4; ++rows) expected.push_back(digest_of(rows, alone));
  std::atomic<int> wrong = 0;
  on_threads([&](int t) {
    for (int i = 0; i < 8; ++i) {
      const int64_t rows = (t + i) % 4;
      if (digest_of(rows + 1, options) != expected[static_cast<size_t>(rows)]) ++wrong;
      if (t == 0) session::cache_clear();
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, CompileAtOnce) { compile_at_once({}); }

TEST(Threads, CompileThroughOneFolder) {
  const TempFolder folder;
  driver::CompileOptions options;
  options.cache = false;
  options.cache_dir = folder.path();
  compile_at_once(options);
}

// Rows picked by what they hold: two segments and a host function, per number of rows.
Bytes picking_model() {
  return model({.inputs = {value("x", tensor_type(kF32, {named("rows"), fixed(4)}))},
                .outputs = {unshaped("y", kF32), unshaped("z", kI64)},
                .nodes = {node("Neg", {"x"}, {"n"}), node("NonZero", {"n"}, {"z"}),
                          node("Exp", {"n"}, {"y"})}});
}

std::vector<DynValue> rows_of(int64_t rows) {
  return {f32({rows, 4}, std::vector<float>(static_cast<size_t>(rows * 4), 1.0F))};
}

// All threads meet all shapes of one session. A budget may refuse a run, never break one.
void run_at_once(const std::string& device, int64_t budget) {
  const auto imported = read(picking_model());
  ASSERT_TRUE(imported.ok()) << imported.status().to_string();
  driver::CompileOptions options;
  options.device = device;
  options.threads = 2;
  options.memory_budget = budget;
  const auto made = session::Session::create(imported->graph, options);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  std::atomic<int> wrong = 0;
  std::atomic<int> ran = 0;
  on_threads([&](int t) {
    for (int i = 0; i < 16; ++i) {
      const int64_t rows = 1 + (t + i) % 8;
      const auto y = (*made)->run(rows_of(rows));
      const bool over = !y.ok() && y.status().code() == Code::kBudgetExceeded;
      const bool right = y.ok() && (*y)[0].shape == Ints{rows, 4} && (*y)[1].shape[1] == rows * 4;
      if (!right && !(budget > 0 && over)) ++wrong;
      if (right) ++ran;
      (void)(*made)->stats();
      (void)(*made)->memory();
      (void)(*made)->log().size();
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(ran, 0);
  EXPECT_EQ((*made)->stats().runs, kThreads * 16);
}

TEST(Threads, RunAtOnce) {
  run_at_once("cpu", 0);
  run_at_once("reference", 0);
}

TEST(Threads, RunAtOnceWithinABudget) { run_at_once("reference", 4096); }

// Compiles that stay where they are until they may go on, by the rows they are for.
class HeldCompiles {
 public:
  // Where the compile of one shape waits.
  void enter(int64_t rows) {
    std::unique_lock lock(mutex_);
    ++entered_[rows];
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  // Whether that many shapes are being compiled at the same time, which nobody lets go on yet.
  bool await_shapes(size_t shapes) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return entered_.size() == shapes; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  std::map<int64_t, int> entered() {
    const std::scoped_lock lock(mutex_);
    return entered_;
  }

 private:
  static constexpr std::chrono::seconds kLong{120};  // only a test that fails takes so long
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, int> entered_;
  bool open_ = false;
};

// 64 threads bring 8 new shapes to one open model. All 8 are compiled at the same time, each once;
// meanwhile runs of a shape that is ready come to their end.
TEST(Threads, NoRunWaitsForTheCompileOfAnotherShape) {
  constexpr int kRuns = 64;
  constexpr int64_t kShapes = 8;
  constexpr int64_t kReady = kShapes + 1;
  const auto imported =
      read(model({.inputs = {value("x", tensor_type(kF32, {named("rows"), fixed(4)}))},
                  .outputs = {unshaped("y", kF32)},
                  .nodes = {node("Neg", {"x"}, {"n"}), node("Exp", {"n"}, {"y"})}}));
  ASSERT_TRUE(imported.ok()) << imported.status().to_string();
  driver::CompileOptions options;
  options.device = "reference";
  options.threads = 1;
  HeldCompiles compiles;
  const auto compile = session::executor_options(options).compile;
  const auto made = session::Session::create(
      imported->graph, options, [&](ir::Graph graph, int64_t budget) -> Result<exec::SegmentCode> {
        const int64_t rows = graph.type(graph.inputs[0]).shape[0];
        if (rows != kReady) compiles.enter(rows);
        return compile(std::move(graph), budget);
      });
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto run = [&](int64_t rows) {
    const auto y = (*made)->run(rows_of(rows));
    return y.ok() && (*y)[0].shape == Ints{rows, 4};
  };
  ASSERT_TRUE(run(kReady));
  std::atomic<int> right = 0;
  std::atomic<int> ended_early = 0;
  std::atomic<bool> held = true;
  std::thread runs([&] {
    on_threads(
        [&](int t) {
          right += run(1 + t % kShapes) ? 1 : 0;
          ended_early += held ? 1 : 0;
        },
        kRuns);
  });
  EXPECT_TRUE(compiles.await_shapes(kShapes)) << "one compile waits for another";
  EXPECT_TRUE(run(kReady));
  held = false;
  compiles.open();
  runs.join();
  EXPECT_EQ(right, kRuns);
  EXPECT_EQ(ended_early, 0);
  std::map<int64_t, int> once;
  for (int64_t rows = 1; rows <= kShapes; ++rows) once[rows] = 1;
  EXPECT_EQ(compiles.entered(), once);
}

}  // namespace
}  // namespace pyc::onnx::test
