// Budgets of the device "cuda" that are met by values that wait on the host,
// over the fake driver.

#include <algorithm>

#include "cuda/models_on_fake.h"
#include "session/artifacts.h"
#include "support/verified.h"

namespace pyc::test {
namespace {

// `kept` is read again behind the largest step, and its kernel writes an
// output: it cannot run again.
constexpr const char* kModel = R"(graph @m(%x: f32[64,64]) -> (%y, %out) {
  %w1 = const f32[64,256] random(seed=1, lo=-0.5, hi=0.5)
  %w2 = const f32[256,256] random(seed=2, lo=-0.1, hi=0.1)
  %w3 = const f32[256,64] random(seed=3, lo=-0.1, hi=0.1)
  %kept = tanh(%x)
  %out = neg(%kept)
  %a = matmul(%kept, %w1)
  %b = matmul(%a, %w2)
  %c = matmul(%b, %w3)
  %y = add(%c, %kept)
}
)";
constexpr int64_t kKeptBytes = 64 * 64 * 4;

class CudaOffloadTest : public testing::Test {
 protected:
  static driver::CompileOptions within(int64_t budget) {
    driver::CompileOptions options = on_device("cuda");
    options.memory_budget = budget;
    return options;
  }
  static int64_t free_peak() {
    return compile_text(kModel, on_device("cuda")).value()->memory().peak_bytes;
  }
  static TensorBytes expected_of(const TensorBytes& inputs) {
    TensorBytes outputs;
    const auto model = compile_text(kModel, on_device("reference")).value();
    EXPECT_TRUE(run_on(*model, inputs, outputs).ok());
    return outputs;
  }

  FakesChosen fakes_;
  FakeDriver fake_;
};

TEST_F(CudaOffloadTest, ValuesMoveOutAndBackWithEqualBits) {
  const int64_t peak = free_peak();
  const auto model = compile_text(kModel, within(peak - kKeptBytes));
  ASSERT_TRUE(model.ok()) << model.status().to_string();
  EXPECT_LE((*model)->memory().peak_bytes, peak - kKeptBytes);
  const auto moved = std::ranges::find((*model)->decisions(), "offload:kept.out", &Decision::what);
  ASSERT_NE(moved, (*model)->decisions().end());
  EXPECT_EQ(moved->reason, "no_room_on_device");
  const TensorBytes inputs = ramp_inputs((*model)->inputs());
  const TensorBytes expected = expected_of(inputs);
  for (int run = 0; run < 10; ++run) {
    const int64_t sent = fake_.sent();
    const int64_t fetched = fake_.fetched();
    const int64_t waits = fake_.waits();
    TensorBytes found;
    runtime::RunStats stats;
    const Status status = run_on(**model, inputs, found, &stats);
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_EQ(found, expected) << "run " << run;
    EXPECT_EQ(stats.copied_bytes, 2 * kKeptBytes);
    EXPECT_EQ(fake_.sent() - sent, stats.sent_bytes + kKeptBytes);
    EXPECT_EQ(fake_.fetched() - fetched, stats.fetched_bytes + kKeptBytes);
    EXPECT_EQ(fake_.waits() - waits, 1);
    EXPECT_EQ(stats.steps, static_cast<int64_t>((*model)->program().steps.size()));
  }
}

TEST_F(CudaOffloadTest, LessIsRefusedWithTheSmallestBudget) {
  const int64_t smallest = free_peak() - kKeptBytes;
  const auto refused = compile_text(kModel, within(smallest - 1));
  ASSERT_EQ(refused.status().code(), Code::kBudgetExceeded);
  EXPECT_NE(refused.status().message().find(std::to_string(smallest)), std::string::npos)
      << refused.status().to_string();
}

TEST_F(CudaOffloadTest, AnArtefactMovesThemToo) {
  driver::CompileOptions options = within(free_peak() - kKeptBytes);
  options.target = "sm_90a";
  const auto made =
      session::compile_artifact(test::verified(driver::parse_model(kModel).value()), options);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  const auto pieces = artifact::encode(*made);
  ASSERT_TRUE(pieces.ok());
  std::vector<std::byte> file;
  for (const SharedBytes& piece : *pieces) file.insert(file.end(), piece.begin(), piece.end());
  driver::CompileOptions loading;
  loading.threads = 1;
  const auto loaded = session::load_artifact(SharedBytes(std::move(file)), loading);
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  const TensorBytes inputs = ramp_inputs(loaded->model->inputs());
  TensorBytes found;
  runtime::RunStats stats;
  ASSERT_TRUE(run_on(*loaded->model, inputs, found, &stats).ok());
  EXPECT_EQ(found, expected_of(inputs));
  EXPECT_EQ(stats.copied_bytes, 2 * kKeptBytes);
}

}  // namespace
}  // namespace pyc::test
