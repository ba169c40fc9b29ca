// Models under budgets that their parameters alone are over: these stay in a file, no bit changes,
// and the allocator hands out no byte more than the budget.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "base/allocation_meter.h"
#include "base/mapped_file.h"
#include "driver/compile.h"
#include "driver/contract.h"
#include "driver/predict.h"
#include "driver/stream_file.h"
#include "session/artifacts.h"
#include "session/cache.h"
#include "session/model.h"
#include "support/temp_folder.h"
#include "support/verified.h"
#include "tooling/seeded_run.h"

namespace pyc::driver {
namespace {

constexpr std::string_view kStreamLayers =
    R"(graph @stream_layers(%x: f32[8,256]) -> (%y) {
  %w0 = const f32[256,256] random(seed=1, lo=-0.1, hi=0.1)
  %w1 = const f32[256,256] random(seed=2, lo=-0.1, hi=0.1)
  %w2 = const f32[256,256] random(seed=3, lo=-0.1, hi=0.1)
  %w3 = const f32[256,256] random(seed=4, lo=-0.1, hi=0.1)
  %b = const f32[256] random(seed=5, lo=-0.1, hi=0.1)
  %p0 = matmul(%x, %w0)
  %s0 = add(%p0, %b)
  %h0 = relu(%s0)
  %p1 = matmul(%h0, %w1)
  %s1 = add(%p1, %b)
  %h1 = relu(%s1)
  %p2 = matmul(%h1, %w2)
  %s2 = add(%p2, %b)
  %h2 = relu(%s2)
  %y = matmul(%h2, %w3)
}
)";

ir::VerifiedGraph stream_layers() { return test::verified(parse_model(kStreamLayers).value()); }

CompileOptions streaming_on(const std::string& device, int64_t budget) {
  CompileOptions options;
  options.device = device;
  options.threads = 2;
  options.memory_budget = budget;
  options.cache = false;
  return options;
}

int64_t mapped_bytes(const runtime::MemoryReport& memory) {
  return memory.class_bytes[static_cast<size_t>(BufferClass::kMapped)];
}

struct Streamed {
  std::string digest;
  runtime::RunStats stats;
  runtime::MemoryReport memory;
};

Streamed run_streamed(runtime::Model& model) {
  auto run = tooling::SeededRun::create(model, 3);
  EXPECT_TRUE(run.ok());
  Streamed out;
  const Status status = model.run(run->inputs(), run->outputs(), &out.stats);
  EXPECT_TRUE(status.ok()) << status.to_string();
  out.digest = run->digest(0).hex();
  out.memory = model.memory();
  return out;
}

Streamed compile_streamed(const CompileOptions& options) {
  auto model = session::compile(stream_layers(), options);
  EXPECT_TRUE(model.ok()) << model.status().to_string();
  return model.ok() ? run_streamed(**model) : Streamed();
}

TEST(Stream, HalfOfThePeakIsKeptWithTheSameBits) {
  const std::string wanted = compile_streamed(streaming_on("reference", 0)).digest;
  for (const char* device : {"cpu", "reference"}) {
    SCOPED_TRACE(device);
    const Streamed free = compile_streamed(streaming_on(device, 0));
    EXPECT_EQ(free.digest, wanted);
    EXPECT_EQ(mapped_bytes(free.memory), 0);
    EXPECT_EQ(free.stats.copied_bytes, 0);
    for (const int64_t percent : {75, 50, 40}) {
      SCOPED_TRACE(percent);
      const int64_t budget = free.memory.peak_bytes * percent / 100;
      const Streamed tight = compile_streamed(streaming_on(device, budget));
      EXPECT_EQ(tight.digest, wanted);
      EXPECT_LE(tight.memory.peak_bytes, budget);
      EXPECT_GT(mapped_bytes(tight.memory), 0);
      EXPECT_EQ(tight.stats.copied_bytes, mapped_bytes(tight.memory));  // each is read by one step
    }
  }
}

TEST(Stream, TheSmallestBudgetThatARefusalNamesWorks) {
  const Streamed free = compile_streamed(streaming_on("cpu", 0));
  const auto least = predict(stream_layers(), streaming_on("cpu", 0), true);
  ASSERT_TRUE(least.ok()) << least.status().to_string();
  EXPECT_LT(least->peak_bytes, free.memory.peak_bytes * 2 / 5);
  const Streamed tight = compile_streamed(streaming_on("cpu", least->peak_bytes));
  EXPECT_EQ(tight.memory.peak_bytes, least->peak_bytes);
  EXPECT_EQ(tight.digest, free.digest);
  const auto refused =
      session::compile(stream_layers(), streaming_on("cpu", least->peak_bytes - 1));
  ASSERT_EQ(refused.status().code(), Code::kBudgetExceeded);
  EXPECT_TRUE(refused.status().message().ends_with("the smallest budget for this plan is " +
                                                   std::to_string(least->peak_bytes)))
      << refused.status().message();
}

// What is packed for a program is memory until it is in the file, then it goes.
TEST(Stream, TheAllocatorHandsOutNoMoreThanTheBudget) {
  const int64_t peak = compile_streamed(streaming_on("cpu", 0)).memory.peak_bytes;
  const ir::VerifiedGraph graph = stream_layers();
  const int64_t budget = peak / 2;
  const int64_t before = allocated_now();
  auto model = session::compile(graph, streaming_on("cpu", budget));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  auto run = tooling::SeededRun::create(**model, 3);
  ASSERT_TRUE(run.ok());
  take_allocated_peak();
  ASSERT_TRUE((*model)->run(run->inputs(), run->outputs()).ok());
  const int64_t held = take_allocated_peak() - before;
  EXPECT_GT(held, 0);
  EXPECT_LE(held, budget);
}

TEST(Stream, IsInThePredictedTimeAndTheContract) {
  const auto free = predict(stream_layers(), streaming_on("cpu", 0));
  const auto least = predict(stream_layers(), streaming_on("cpu", 0), true);
  ASSERT_TRUE(free.ok() && least.ok());
  EXPECT_GT(least->run_ns, free->run_ns);
  CompileOptions options;
  ASSERT_TRUE(add_contract(options, "threads = 2\nmemory_budget = " +
                                        std::to_string(free->peak_bytes / 2) + "\n")
                  .ok());
  options.cache = false;
  auto model = session::compile(stream_layers(), options);
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  const auto answer =
      std::ranges::find((*model)->decisions(), "contract:memory_budget", &Decision::what);
  ASSERT_NE(answer, (*model)->decisions().end());
  EXPECT_EQ(answer->chosen, "kept");
  options.latency_target_us = 1;
  EXPECT_EQ(session::compile(stream_layers(), options).status().code(), Code::kBudgetExceeded);
}

TEST(Stream, LatencyFirstRefusesIt) {
  const auto free = predict(stream_layers(), streaming_on("cpu", 0));
  ASSERT_TRUE(free.ok());
  CompileOptions options = streaming_on("cpu", free->peak_bytes / 2);
  options.mode = kLatencyFirst;
  EXPECT_EQ(session::compile(stream_layers(), options).status().code(), Code::kBudgetExceeded);
}

// An artefact is the file itself.
TEST(Stream, AnArtefactStreamsFromItself) {
  const Streamed free = compile_streamed(streaming_on("cpu", 0));
  const int64_t budget = free.memory.peak_bytes / 2;
  const auto made = session::compile_artifact(stream_layers(), streaming_on("cpu", budget));
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const TempFolder folder;
  const std::string path = folder.file("layers.pycm");
  ASSERT_TRUE(session::write_artifact(*made, path).ok());
  auto file = map_file(path);
  ASSERT_TRUE(file.ok());
  CompileOptions options;
  options.threads = 2;
  options.memory_budget = budget;
  auto loaded = session::load_artifact(std::move(*file), options);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  const Streamed ran = run_streamed(*loaded->model);
  EXPECT_EQ(ran.digest, free.digest);
  EXPECT_LE(ran.memory.peak_bytes, budget);
  EXPECT_EQ(ran.stats.copied_bytes, mapped_bytes(ran.memory));
  EXPECT_GT(ran.stats.copied_bytes, 0);
}

TEST(Stream, ProgramsFromAFolderDoItToo) {
  const Streamed free = compile_streamed(streaming_on("cpu", 0));
  const TempFolder folder;
  CompileOptions options = streaming_on("cpu", free.memory.peak_bytes / 2);
  options.cache_dir = folder.path();
  const Streamed made = compile_streamed(options);
  const Streamed found = compile_streamed(options);
  EXPECT_EQ(made.digest, free.digest);
  EXPECT_EQ(found.digest, free.digest);
  EXPECT_EQ(found.stats.copied_bytes, made.stats.copied_bytes);
  EXPECT_GT(found.stats.copied_bytes, 0);
}

// A state and parameters in a file both need copies; the state's stays where it is.
TEST(Stream, BesideAState) {
  constexpr std::string_view kText =
      R"(graph @grown(%x: f32[8,256], %h: f32[8,256]) -> (%y, %n) {
  %w0 = const f32[256,256] random(seed=1, lo=-0.1, hi=0.1)
  %w1 = const f32[256,256] random(seed=2, lo=-0.1, hi=0.1)
  %p = matmul(%x, %w0)
  %n = add(%p, %h)
  %y = matmul(%n, %w1)
}
)";
  const auto two_runs = [&](int64_t budget) {
    CompileOptions options = streaming_on("cpu", budget);
    options.states = {{"h", "n"}};
    auto model = session::compile(test::verified(parse_model(kText).value()), options);
    EXPECT_TRUE(model.ok()) << model.status().to_string();
    if (!model.ok()) return Streamed();
    run_streamed(**model);
    return run_streamed(**model);
  };
  const Streamed free = two_runs(0);
  const Streamed tight = two_runs(free.memory.peak_bytes * 3 / 4);
  EXPECT_EQ(tight.digest, free.digest);
  EXPECT_GT(mapped_bytes(tight.memory), 0);
}

TEST(Stream, AFolderThatCannotBeWrittenIsNamed) {
  const auto free = predict(stream_layers(), streaming_on("cpu", 0));
  ASSERT_TRUE(free.ok());
  auto compiled = compile_program(stream_layers(), streaming_on("cpu", free->peak_bytes / 2));
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  const auto refused = with_streamed_in_file(compiled->program, "/proc/no/such/folder");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("/proc/no/such/folder"), std::string::npos);
  EXPECT_NE(refused.status().message().find("TMPDIR"), std::string::npos);
}

TEST(Stream, ParametersThatAreInAFileStayThere) {
  const auto free = predict(stream_layers(), streaming_on("cpu", 0));
  ASSERT_TRUE(free.ok());
  auto compiled = compile_program(stream_layers(), streaming_on("cpu", free->peak_bytes / 2));
  ASSERT_TRUE(compiled.ok()) << compiled.status().to_string();
  const TempFolder folder;
  const auto moved = with_streamed_in_file(compiled->program, folder.path());
  ASSERT_TRUE(moved.ok()) << moved.status().to_string();
  const std::vector<bool> streamed = runtime::streamed_parameters(**moved);
  for (size_t p = 0; p < streamed.size(); ++p) {
    EXPECT_EQ((*moved)->parameters[p].in_file, streamed[p]);
    const runtime::Parameter& before = compiled->program->parameters[p];
    const runtime::Parameter& after = (*moved)->parameters[p];
    ASSERT_EQ(before.bytes, after.bytes);
    EXPECT_EQ(before.data == after.data, !streamed[p]);
    EXPECT_TRUE(std::equal(static_cast<const std::byte*>(before.data),
                           static_cast<const std::byte*>(before.data) + before.bytes,
                           static_cast<const std::byte*>(after.data)));
  }
  const auto again = with_streamed_in_file(*moved, "/proc/no/such/folder");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(*again, *moved);
}

}  // namespace
}  // namespace pyc::driver
