#include <atomic>
#include <thread>

#include "base/sanitizers.h"
#include "programs.h"

namespace pyc::runtime {
namespace {

constexpr int kCallers = 8;

// kCallers threads run `model` with inputs of their own; gives the number of wrong results.
int64_t run_from_many_threads(Model& model, int runs) {
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&model, &wrong, runs, c] {
      for (int i = 0; i < runs; ++i) {
        Tensors t(c * 1000 + i);
        if (!model.run(t.inputs, t.outputs).ok()) ++wrong;
        wrong += t.wrong();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  return wrong;
}

TEST(Concurrency, EightThreadsRunOneModel) {
  const int runs = kSanitized ? 50 : 100;
  for (const int threads : {1, 3}) {
    const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(threads));
    EXPECT_EQ(run_from_many_threads(*model, runs), 0);
    const ModelStats stats = model->stats();
    EXPECT_EQ(stats.runs, kCallers * runs);
    EXPECT_EQ(stats.failed_runs, 0);
    EXPECT_LE(stats.contexts, kCallers);
  }
}

TEST(Concurrency, ModelsShareAPool) {
  const std::shared_ptr<ThreadPool> pool = make_pool(2);
  std::vector<std::unique_ptr<Model>> models;
  for (int i = 0; i < 4; ++i) models.push_back(make_model(make_two_step_program(), pool));
  std::atomic<int64_t> wrong{0};
  std::vector<std::thread> callers;
  for (size_t c = 0; c < models.size(); ++c) {
    callers.emplace_back([&, c] {
      for (int i = 0; i < 50; ++i) {
        Tensors t(static_cast<int>(c) + i);
        if (!models[c]->run(t.inputs, t.outputs).ok()) ++wrong;
        wrong += t.wrong();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Concurrency, RefusalsFromManyThreadsAreCounted) {
  const std::unique_ptr<Model> model = make_model(make_two_step_program(), make_pool(2));
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&model] {
      for (int i = 0; i < 20; ++i) {
        Tensors t;
        t.inputs[0].bytes = 0;
        EXPECT_FALSE(model->run(t.inputs, t.outputs).ok());
        EXPECT_LE(model->refusals().size(), Model::kMaxRefusals);
        EXPECT_GE(model->stats().guard_misses, 1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(model->stats().guard_misses, kCallers * 20);
}

// A kernel that returns only when `expected` runs are inside it.
struct Meeting {
  std::atomic<int> inside{0};
  int expected = 2;

  static void kernel(const pyc_kernel_args* args, int64_t, int64_t) {
    auto* self = static_cast<Meeting*>(const_cast<void*>(args->self));
    int now = ++self->inside;
    self->inside.notify_all();
    while (now < self->expected) {
      self->inside.wait(now);
      now = self->inside;
    }
  }
};

TEST(Concurrency, OverlappingRunsGetContextsOfTheirOwnOnce) {
  Meeting meeting;
  const auto program = make_one_step_program(Meeting::kernel, &meeting, 1);
  program->arena_bytes = 256;
  program->scratch_bytes = 64;
  const std::unique_ptr<Model> model = make_model(program, make_pool(1));
  for (int round = 0; round < 3; ++round) {
    meeting.inside = 0;
    RunStats stats[2];
    const auto call = [&model](RunStats* out) {
      Tensors t;
      EXPECT_TRUE(model->run(t.inputs, t.outputs, out).ok());
    };
    std::thread other(call, &stats[0]);
    call(&stats[1]);
    other.join();
    // Tables, arena and scratch, for the second of the first round alone.
    EXPECT_EQ(stats[0].allocations + stats[1].allocations, round == 0 ? 3 : 0);
    EXPECT_EQ(model->stats().contexts, 2);
  }
}

}  // namespace
}  // namespace pyc::runtime
